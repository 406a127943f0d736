//! Webhooks and policies from files. What is in the folder that a plugin's configuration names holds from the first request
//! on, before what is stored, also for the configuration of admission itself; nobody can change it by the API. The folder is
//! read again while the server runs: what can be used replaces what was, what cannot is told and changes nothing.

mod files;
mod objects;

use crate::config::Config;
use crate::observe::Observer;
use arc_swap::{ArcSwap, Guard};
use files::Files;
use kubelith_codec::config::{Format, Malformed, Shape, Unknown};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, Path as FieldPath};
use kubelith_registry::Objects;
use kubelith_rules::Env;
use objects::{Kinds, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const GATE: &str = "ManifestBasedAdmissionControlConfig";
pub const GROUP: &str = "admissionregistration.k8s.io";

/// The plugins that take manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    ValidatingWebhooks,
    MutatingWebhooks,
    ValidatingPolicies,
    MutatingPolicies,
}

impl Of {
    const fn plugin(self) -> &'static str {
        match self {
            Of::ValidatingWebhooks => "ValidatingAdmissionWebhook",
            Of::MutatingWebhooks => "MutatingAdmissionWebhook",
            Of::ValidatingPolicies => "ValidatingAdmissionPolicy",
            Of::MutatingPolicies => "MutatingAdmissionPolicy",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Of::ValidatingWebhooks | Of::MutatingWebhooks => "webhook",
            Of::ValidatingPolicies | Of::MutatingPolicies => "policy",
        }
    }
}

/// The manifests of one plugin.
pub struct Manifests {
    of: Of,
    folder: PathBuf,
    objects: Arc<Objects>,
    env: Env,
    observer: Arc<dyn Observer>,
    current: ArcSwap<Loaded>,
    /// The hash of what was read last, whether it could be used or not. Held while the folder is read.
    seen: Mutex<Option<String>>,
}

/// What is in force.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Of each state another one.
    pub number: u64,
    /// Configurations of webhooks, or policies, in the order of their names.
    pub objects: Vec<Value>,
    pub bindings: Vec<Value>,
}

impl Manifests {
    pub fn new(of: Of, folder: PathBuf, config: &Config) -> Arc<Manifests> {
        let (objects, observer) = (config.objects.clone(), config.observer.clone());
        // Rules of this group depend on no feature.
        let env = Env { expressions: config.expressions.clone(), ..Env::default() };
        Arc::new(Manifests { of, folder, objects, env, observer, current: ArcSwap::default(), seen: Mutex::default() })
    }

    pub fn current(&self) -> Guard<Arc<Loaded>> {
        self.current.load()
    }

    /// Reads the folder for the first time, once the server knows its resources. Without it no server may start.
    pub fn load(&self) -> Result<(), String> {
        self.read().map_err(|why| {
            let (plugin, word, folder) = (self.of.plugin(), self.of.word(), self.folder.display());
            format!(
                "failed to initialize admission plugin \"{plugin}\": failed to load static {word} manifests from \
                 \"{folder}\": {why}"
            )
        })
    }

    /// Reads the folder again, and takes what is new.
    pub fn reload(&self) -> Result<(), String> {
        let read = self.read();
        if read.is_err() {
            self.observer.manifests_read(self.of.plugin(), None);
        }
        read
    }

    pub fn plugin(&self) -> &'static str {
        self.of.plugin()
    }

    fn read(&self) -> Result<(), String> {
        let mut seen = self.seen.lock().expect("no panic under this lock");
        let files = Files::read(&self.folder)?;
        if seen.as_ref() == Some(&files.hash) {
            return Ok(());
        }
        *seen = Some(files.hash.clone());
        let Read { objects, bindings } = Kinds::of(self.of).read(&files.documents, &self.objects, &self.env)?;
        let number = self.current.load().number + 1;
        self.current.store(Arc::new(Loaded { number, objects, bindings }));
        tracing::info!(plugin = self.of.plugin(), folder = %self.folder.display(), "manifests are in force");
        self.observer.manifests_read(self.of.plugin(), Some(&files.hash));
        Ok(())
    }
}

/// `staticManifestsDir` of a plugin's configuration.
pub fn folder(config: &Value, gates: &dyn Fn(&str) -> bool) -> Result<Option<PathBuf>, String> {
    let given = config.str_at(&["staticManifestsDir"]);
    if given.is_empty() {
        return Ok(None);
    }
    let field = FieldPath::new("staticManifestsDir");
    let invalid = |why: &str| Err(Error::invalid(&field, given, why).to_string());
    if !gates(GATE) {
        let why = "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled";
        return Err(Error::forbidden(&field, why).to_string());
    }
    let path = Path::new(given);
    if !path.is_absolute() {
        return invalid("must be an absolute file path");
    }
    match std::fs::metadata(path) {
        Err(e) => invalid(&format!("unable to read: stat {given}: {}", crate::configuration::os_error(&e))),
        Ok(found) if !found.is_dir() => invalid("must be a directory"),
        Ok(_) => Ok(Some(path.to_owned())),
    }
}

const fn policy_format(kind: &'static str) -> Format {
    let fields = &[("staticManifestsDir", Shape::Text)];
    Format {
        group: "apiserver.config.k8s.io",
        versions: &["v1"],
        kind,
        fields,
        unknown: Unknown::Refused,
        scheme: None,
    }
}

/// What the configuration file has for the plugins of policies.
pub fn of_policies(of: Of, text: Option<&[u8]>, gates: &dyn Fn(&str) -> bool) -> Result<Option<PathBuf>, String> {
    const KINDS: [&str; 2] = ["ValidatingAdmissionPolicyConfiguration", "MutatingAdmissionPolicyConfiguration"];
    let Some(text) = text else { return Ok(None) };
    let (own, other) = if of == Of::ValidatingPolicies { (KINDS[0], KINDS[1]) } else { (KINDS[1], KINDS[0]) };
    match policy_format(own).read(text) {
        Ok(document) => folder(&document, gates),
        Err(Malformed::Kind(_)) if policy_format(other).read(text).is_ok() => {
            Err(format!("unexpected type: *policyconfig.{other}"))
        }
        Err(why) => Err(why.to_string()),
    }
}
