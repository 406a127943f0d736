//! kubectl in a namespace of its own.

use super::process::{self, Background, Output};
use super::{Context, Outcome, ensure};
use std::path::Path;
use std::process::Command;

pub struct Kubectl<'a> {
    context: &'a Context,
    namespace: String,
    environment: Vec<(String, String)>,
}

impl<'a> Kubectl<'a> {
    /// Makes the namespace, and the service account that pods need, unless they are there.
    pub fn new(context: &'a Context, namespace: &str) -> Result<Kubectl<'a>, String> {
        let kubectl = Kubectl { context, namespace: namespace.to_owned(), environment: Vec::new() };
        let mut made = context.namespaces.lock().map_err(|error| error.to_string())?;
        if made.insert(namespace.to_owned()) {
            for words in [&["create", "namespace", namespace][..], &["create", "serviceaccount", "default"]] {
                let output = kubectl.run(words)?;
                ensure!(
                    output.success || output.stderr.contains("already exists"),
                    "{}: {}",
                    output.command,
                    output.stderr
                );
            }
        }
        drop(made);
        Ok(kubectl)
    }

    /// Without a namespace of its own, for what needs none.
    pub fn plain(context: &'a Context) -> Kubectl<'a> {
        Kubectl { context, namespace: "default".to_owned(), environment: Vec::new() }
    }

    pub fn with_env(mut self, name: &str, value: &str) -> Kubectl<'a> {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.context.program("kubectl"));
        command.arg("--kubeconfig").arg(&self.context.kubeconfig).arg("--namespace").arg(&self.namespace);
        command.args(words).env("HOME", &self.context.home).env_remove("KUBECONFIG").envs(process::SHORT_LIVED);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run(&self, words: &[&str]) -> Result<Output, String> {
        process::run(self.command(words), "")
    }

    /// Succeeds and gives what it printed.
    pub fn ok(&self, words: &[&str]) -> Result<String, String> {
        self.run(words)?.ok()
    }

    /// Succeeds with this on its input.
    pub fn feed(&self, words: &[&str], input: &str) -> Result<String, String> {
        process::run(self.command(words), input)?.ok()
    }

    pub fn feed_any(&self, words: &[&str], input: &str) -> Result<Output, String> {
        process::run(self.command(words), input)
    }

    /// Succeeds and prints all of these.
    pub fn says(&self, words: &[&str], expected: &[&str]) -> Outcome {
        let printed = self.ok(words)?;
        for part in expected {
            ensure!(
                printed.contains(part),
                "kubectl {} should print {part:?}, but printed:\n{printed}",
                words.join(" ")
            );
        }
        Ok(())
    }

    /// Fails and complains of all of these.
    pub fn refuses(&self, words: &[&str], expected: &[&str]) -> Outcome {
        let printed = self.run(words)?.err()?;
        for part in expected {
            ensure!(
                printed.contains(part),
                "kubectl {} should complain of {part:?}, but said:\n{printed}",
                words.join(" ")
            );
        }
        Ok(())
    }

    /// The value at a JSONPath of an object.
    pub fn field(&self, object: &str, path: &str) -> Result<String, String> {
        self.ok(&["get", object, "-o", &format!("jsonpath={path}")])
    }

    /// Has this value there.
    pub fn has(&self, object: &str, path: &str, expected: &str) -> Outcome {
        let value = self.field(object, path)?;
        ensure!(value == expected, "{object} has {value:?} at {path}, not {expected:?}");
        Ok(())
    }

    pub fn background(&self, words: &[&str]) -> Result<Background, String> {
        Background::start(self.command(words))
    }

    pub fn create(&self, manifest: &Path) -> Result<String, String> {
        let file = manifest.to_string_lossy();
        self.ok(&["create", "-f", &file, "-o", "name"]).map(|name| name.trim().to_owned())
    }
}
