//! What the program does besides serving: one table of commands, from which the help, the completions of shells and the
//! manual are made.

mod completion;
mod health;
mod kubeconfig;
mod manual;
mod words;

pub use words::Words;

use crate::{cel_command, flags, store_command, version};
use std::process::ExitCode;

/// A command: `kubelith <name> …`.
pub struct Command {
    pub name: &'static str,
    /// One line, for lists.
    pub summary: &'static str,
    pub help: &'static str,
    /// Words that may follow the name.
    pub words: &'static [&'static str],
    pub flags: &'static [CommandFlag],
    run: Run,
}

/// A flag of a command.
pub struct CommandFlag {
    /// With its dashes.
    pub name: &'static str,
    pub takes: Takes,
}

impl Command {
    /// What the help says of a flag, on its first line.
    fn about(&self, flag: &CommandFlag) -> &'static str {
        let lines = self.help.split("\nFlags:\n").nth(1).unwrap_or_default().lines();
        let told = lines
            .map(str::trim_start)
            .find_map(|line| line.trim_start_matches("-h, ").trim_start_matches("-o, ").strip_prefix(flag.name));
        told.and_then(|rest| rest.split_once("  ")).map_or("", |(_, text)| text.trim())
    }
}

/// What stands behind a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    File,
    Folder,
    OneOf(&'static [&'static str]),
    Text,
}

enum Run {
    /// What to show, or why it failed.
    Text(fn(&[String]) -> Result<String, String>),
    Code(fn(&[String]) -> ExitCode),
}

const fn flag(name: &'static str, takes: Takes) -> CommandFlag {
    CommandFlag { name, takes }
}

pub const COMMANDS: &[Command] = &[
    Command {
        name: "kubeconfig",
        summary: "show the administrator's kubeconfig, merge it into your own, make one for another user",
        help: kubeconfig::HELP,
        words: &[],
        flags: &[
            flag("--data-dir", Takes::Folder),
            flag("--merge", Takes::Nothing),
            flag("--kubeconfig", Takes::File),
            flag("--name", Takes::Text),
            flag("--keep-context", Takes::Nothing),
            flag("--server", Takes::Text),
            flag("--user", Takes::Text),
            flag("--group", Takes::Text),
            flag("--days", Takes::Text),
            flag("--help", Takes::Nothing),
        ],
        run: Run::Text(kubeconfig::run),
    },
    Command {
        name: "store",
        summary: "check, measure, back up, restore, export and import the embedded store",
        help: store_command::HELP,
        words: &["check", "stats", "backup", "restore", "export", "import"],
        flags: &[
            flag("--data-dir", Takes::Folder),
            flag("--skip-revisions", Takes::Text),
            flag("--help", Takes::Nothing),
        ],
        run: Run::Text(store_command::run),
    },
    Command {
        name: "cel",
        summary: "check, price and try expressions in CEL, without a server",
        help: cel_command::HELP,
        words: &["check", "cost", "eval"],
        flags: &[
            flag("--object", Takes::File),
            flag("--old-object", Takes::File),
            flag("--params", Takes::File),
            flag("--help", Takes::Nothing),
        ],
        run: Run::Code(cel_command::run),
    },
    Command {
        name: "health",
        summary: "ask a server on this machine whether it is well, for scripts and containers",
        help: health::HELP,
        words: &[],
        flags: &[
            flag("--server", Takes::Text),
            flag("--path", Takes::OneOf(&["/livez", "/readyz", "/healthz"])),
            flag("--timeout", Takes::Text),
            flag("--help", Takes::Nothing),
        ],
        run: Run::Text(health::run),
    },
    Command {
        name: "completion",
        summary: "write the completions of a shell",
        help: completion::HELP,
        words: &["bash", "zsh", "fish"],
        flags: &[flag("--help", Takes::Nothing)],
        run: Run::Text(completion::run),
    },
    Command {
        name: "man",
        summary: "write the manual page",
        help: manual::HELP,
        words: &[],
        flags: &[flag("--help", Takes::Nothing)],
        run: Run::Text(manual::run),
    },
    Command {
        name: "version",
        summary: "show the version, the commit and the release of Kubernetes",
        help: version::HELP,
        words: &[],
        flags: &[flag("--output", Takes::OneOf(&["text", "json"])), flag("--help", Takes::Nothing)],
        run: Run::Text(version::command),
    },
];

/// Runs the command that the first word names. `None`: it names none, and the server is meant.
pub fn run(words: &[String]) -> Option<ExitCode> {
    let (first, rest) = words.split_first()?;
    if first == "help" {
        return Some(shown(help(rest)));
    }
    let command = COMMANDS.iter().find(|command| command.name == first)?;
    Some(match command.run {
        Run::Text(run) => shown(run(rest)),
        Run::Code(run) => run(rest),
    })
}

/// What `--help` shows.
pub fn overview() -> String {
    flags::help(COMMANDS.iter().map(|command| (command.name, command.summary)))
}

fn help(words: &[String]) -> Result<String, String> {
    let Some(name) = words.first() else { return Ok(overview()) };
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => Ok(command.help.to_owned()),
        None => Err(format!("there is no command {name:?}; kubelith help shows those there are")),
    }
}

fn shown(outcome: Result<String, String>) -> ExitCode {
    match outcome {
        Ok(text) => {
            // Whoever reads may have seen enough: `kubelith help | head`.
            let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("Error: {}", error.trim_end());
            ExitCode::FAILURE
        }
    }
}

/// Flags that name files and do not end with that word.
const FILES: [&str; 5] =
    ["config", "debug-socket-path", "audit-log-path", "encryption-provider-config", "allow-metric-labels-manifest"];

/// What stands behind a flag of the server, by its name.
pub fn takes(flag: &flags::Flag) -> Takes {
    match flag.name {
        "help" | "version" => Takes::Nothing,
        "storage-backend" => Takes::OneOf(&["embedded", "memory", "etcd3"]),
        "logging-format" => Takes::OneOf(&["text", "json"]),
        "audit-log-format" => Takes::OneOf(&["json", "legacy"]),
        "audit-log-mode" | "audit-webhook-mode" => Takes::OneOf(&["batch", "blocking", "blocking-strict"]),
        "endpoint-reconciler-type" => Takes::OneOf(&["lease", "master-count", "none"]),
        "tls-min-version" => Takes::OneOf(&["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"]),
        "authorization-mode" => {
            Takes::OneOf(&["Node,RBAC", "AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"])
        }
        _ if flag.kind == flags::FlagKind::Bool => Takes::Nothing,
        name if name.ends_with("-dir") => Takes::Folder,
        name if name.ends_with("file") || FILES.contains(&name) => Takes::File,
        _ => Takes::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table and the texts tell of the same flags and words.
    #[test]
    fn helps_have_what_the_table_has() {
        for command in COMMANDS {
            assert!(command.help.contains(&format!("kubelith {}", command.name)), "{}", command.name);
            for word in command.words {
                assert!(command.help.contains(word), "{} {word}", command.name);
            }
            let section = command.help.split("\nFlags:\n").nth(1).unwrap_or_default();
            let section = section.split("\n\n").next().unwrap_or_default();
            let told: Vec<&str> = section.split([' ', ',', '\n']).filter(|word| word.starts_with("--")).collect();
            let known: Vec<&str> = command.flags.iter().map(|flag| flag.name).collect();
            assert_eq!(told, known, "{}", command.name);
            for flag in command.flags {
                assert!(command.about(flag).len() > 10, "{} {}", command.name, flag.name);
            }
            assert!(command.help.lines().all(|line| line.chars().count() <= 110), "{}", command.name);
        }
    }

    #[test]
    fn names_of_flags_are_those_of_the_table() {
        for name in FILES {
            let flag = flags::find(name).unwrap_or_else(|| panic!("--{name} is not in the table"));
            assert_eq!(takes(flag), Takes::File, "--{name}");
        }
        for (name, value) in
            [("storage-backend", "memory"), ("tls-min-version", "VersionTLS12"), ("logging-format", "json")]
        {
            let flag = flags::find(name).unwrap_or_else(|| panic!("--{name} is not in the table"));
            assert!(matches!(takes(flag), Takes::OneOf(values) if values.contains(&value)), "--{name}");
        }
    }

    #[test]
    fn what_is_no_command_is_left_to_the_flags() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(run(&words("")).is_none());
        assert!(run(&words("--storage-backend=memory")).is_none());
        assert!(run(&words("nonsense")).is_none());
        assert!(help(&words("store")).unwrap().starts_with("Looks after the embedded store"));
        assert!(help(&words("nonsense")).is_err());
    }
}
