//! `kubelith completion`: scripts by which shells complete commands, flags and their values. Made of the tables of commands
//! and flags, so that they know every flag that there is.

use super::{COMMANDS, Command, Takes, takes};
use crate::flags::{Flag, SECTIONS};
use std::fmt::Write;

pub const HELP: &str = "\
Writes a script by which a shell completes the commands and flags of kubelith.

Usage:
  kubelith completion bash|zsh|fish

Flags:
  -h, --help             Shows this help.

Examples:
  source <(kubelith completion bash)
  kubelith completion bash > /etc/bash_completion.d/kubelith
  kubelith completion zsh  > \"${fpath[1]}/_kubelith\"
  kubelith completion fish > ~/.config/fish/completions/kubelith.fish
";

/// Runs the words behind `completion`.
pub fn run(words: &[String]) -> Result<String, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["bash"] => Ok(bash()),
        ["zsh"] => Ok(zsh()),
        ["fish"] => Ok(fish()),
        [] | ["-h" | "--help"] => Ok(HELP.to_owned()),
        _ => Err(format!("no completions for {:?}: bash, zsh and fish have some\n\n{HELP}", words.join(" "))),
    }
}

/// The server's flags that the help has.
fn server_flags() -> impl Iterator<Item = &'static Flag> {
    SECTIONS.iter().filter(|section| !section.title.is_empty()).flat_map(|section| section.flags)
}

/// A flag as a word to complete: with the sign that a value follows.
fn word(name: &str, takes: Takes) -> String {
    if takes == Takes::Nothing { name.to_owned() } else { format!("{name}=") }
}

fn bash() -> String {
    let mut values: Vec<(String, Takes)> =
        server_flags().map(|flag| (format!("--{}", flag.name), takes(flag))).collect();
    for flag in COMMANDS.iter().flat_map(|command| command.flags) {
        // What a command takes behind a name is the same for all of them, or a test fails.
        if !values.iter().any(|(name, _)| name == flag.name) {
            values.push((flag.name.to_owned(), flag.takes));
        }
    }
    let of_kind = |kind: Takes| {
        let names: Vec<&str> =
            values.iter().filter(|(_, takes)| *takes == kind).map(|(name, _)| name.as_str()).collect();
        names.join("|")
    };
    let mut out = String::from(
        "# bash completion for kubelith: source <(kubelith completion bash)\n\n_kubelith() {\n    \
         local current=\"${COMP_WORDS[COMP_CWORD]}\" flag=\"${COMP_WORDS[COMP_CWORD-1]}\" words\n    \
         COMPREPLY=()\n    # bash takes --flag=value for three words.\n    \
         if [[ $current == = ]]; then\n        current=\n    \
         elif [[ $flag == = ]]; then\n        flag=\"${COMP_WORDS[COMP_CWORD-2]}\"\n    fi\n    case \"$flag\" in\n",
    );
    for (name, takes) in &values {
        if let Takes::OneOf(words) = takes {
            let _ = writeln!(
                out,
                "        {name}) COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;",
                words.join(" ")
            );
        }
    }
    let _ = writeln!(out, "        {}) COMPREPLY=($(compgen -f -- \"$current\")); return ;;", of_kind(Takes::File));
    let _ = writeln!(out, "        {}) COMPREPLY=($(compgen -d -- \"$current\")); return ;;", of_kind(Takes::Folder));
    let _ = writeln!(out, "        {}) return ;;\n    esac", of_kind(Takes::Text));
    let _ = writeln!(out, "    case \"${{COMP_WORDS[1]}}\" in");
    for command in COMMANDS {
        let flags = command.flags.iter().map(|flag| word(flag.name, flag.takes));
        let words: Vec<String> = command.words.iter().map(|word| (*word).to_owned()).chain(flags).collect();
        let _ = writeln!(out, "        {}) words=\"{}\" ;;", command.name, words.join(" "));
    }
    let commands: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    let flags: Vec<String> = server_flags().map(|flag| word(&format!("--{}", flag.name), takes(flag))).collect();
    let _ = writeln!(out, "        help) words=\"{}\" ;;", commands.join(" "));
    let _ = writeln!(out, "        *) words=\"{}\" ;;\n    esac", flags.join(" "));
    let _ = writeln!(
        out,
        "    if [[ $COMP_CWORD -eq 1 ]]; then\n        words=\"{} help {}\"\n    fi",
        commands.join(" "),
        flags.join(" ")
    );
    out.push_str(
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n    \
         if [[ ${#COMPREPLY[@]} -eq 0 && $current != -* && $COMP_CWORD -gt 1 ]]; then\n        \
         COMPREPLY=($(compgen -f -- \"$current\"))\n    fi\n    \
         if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then\n        compopt -o nospace 2>/dev/null\n    \
         fi\n}\n\ncomplete -o filenames -F _kubelith kubelith\n",
    );
    out
}

fn zsh() -> String {
    let action = |takes: Takes| match takes {
        Takes::Nothing => String::new(),
        Takes::File => ":file:_files".to_owned(),
        Takes::Folder => ":folder:_files -/".to_owned(),
        Takes::OneOf(words) => format!(":value:({})", words.join(" ").replace(',', "\\,")),
        Takes::Text => ":value:".to_owned(),
    };
    let spec = |name: &str, takes: Takes, help: &str| {
        let sign = if takes == Takes::Nothing { "" } else { "=" };
        format!("'{name}{sign}[{}]{}'", zsh_text(help), action(takes))
    };
    let mut out = String::from(
        "#compdef kubelith\n# zsh completion for kubelith\n\n_kubelith() {\n    local -a commands\n    commands=(\n",
    );
    for command in COMMANDS {
        let _ = writeln!(out, "        '{}:{}'", command.name, zsh_text(command.summary));
    }
    out.push_str(
        "        'help:show the help of a command'\n    )\n    if (( CURRENT == 2 )); then\n        \
         _describe -t commands command commands\n    fi\n    case \"$words[2]\" in\n",
    );
    for command in COMMANDS {
        let _ = writeln!(
            out,
            "        {})\n            shift words; (( CURRENT-- ))\n            _arguments \\",
            command.name
        );
        for flag in command.flags {
            let _ = writeln!(
                out,
                "                {} \\",
                spec(flag.name, flag.takes, first_sentence(command.about(flag)))
            );
        }
        match command.words {
            [] => out.push_str("                '*:file:_files'\n"),
            words => {
                let _ = writeln!(out, "                '1:word:({})' '*:file:_files'", words.join(" "));
            }
        }
        out.push_str("            ;;\n");
    }
    let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    let _ = writeln!(out, "        help)\n            _values command {}\n            ;;", names.join(" "));
    out.push_str("        *)\n            _arguments \\\n");
    for flag in server_flags() {
        let _ = writeln!(
            out,
            "                {} \\",
            spec(&format!("--{}", flag.name), takes(flag), first_sentence(flag.help))
        );
    }
    out.push_str(
        "                '*: :'\n            ;;\n    esac\n}\n\n\
         if [[ $funcstack[1] == _kubelith ]]; then\n    _kubelith \"$@\"\nelse\n    compdef _kubelith kubelith\nfi\n",
    );
    out
}

/// For a text between brackets and single quotes.
fn zsh_text(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "'\\''").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:")
}

fn fish() -> String {
    let text = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    let rest = |takes: Takes| match takes {
        Takes::Nothing => String::new(),
        Takes::File => " -r -F".to_owned(),
        Takes::Folder => " -x -a '(__fish_complete_directories)'".to_owned(),
        Takes::OneOf(words) => format!(" -x -a '{}'", words.join(" ")),
        Takes::Text => " -x".to_owned(),
    };
    let mut out = String::from("# fish completion for kubelith\n\ncomplete -c kubelith -f\n");
    for Command { name, summary, .. } in COMMANDS {
        let _ = writeln!(out, "complete -c kubelith -n __fish_use_subcommand -a {name} -d '{}'", text(summary));
    }
    let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    let _ = writeln!(
        out,
        "complete -c kubelith -n __fish_use_subcommand -a help -d 'show the help of a command'\n\
         complete -c kubelith -n '__fish_seen_subcommand_from help' -a '{}'",
        names.join(" ")
    );
    for command in COMMANDS {
        let seen = format!("complete -c kubelith -n '__fish_seen_subcommand_from {}'", command.name);
        match command.words {
            [] => {}
            words => {
                let _ = writeln!(out, "{seen} -a '{}'", words.join(" "));
            }
        }
        if matches!(command.name, "store" | "cel") {
            let _ = writeln!(out, "{seen} -F");
        }
        for flag in command.flags {
            let about = text(first_sentence(command.about(flag)));
            let _ = writeln!(out, "{seen} -l {}{} -d '{about}'", flag.name.trim_start_matches('-'), rest(flag.takes));
        }
    }
    for flag in server_flags() {
        let _ = writeln!(
            out,
            "complete -c kubelith -n __fish_use_subcommand -l {}{} -d '{}'",
            flag.name,
            rest(takes(flag)),
            text(first_sentence(flag.help))
        );
    }
    out
}

/// Lists have room for little.
fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command as Program;

    /// What a name takes does not depend on the command, which the script for bash relies on.
    #[test]
    fn flags_of_the_same_name_take_the_same() {
        let mut seen: Vec<(String, Takes)> = server_flags().map(|f| (format!("--{}", f.name), takes(f))).collect();
        for flag in COMMANDS.iter().flat_map(|command| command.flags) {
            match seen.iter().find(|(name, _)| name == flag.name) {
                Some((name, takes)) => assert_eq!(*takes, flag.takes, "{name}"),
                None => seen.push((flag.name.to_owned(), flag.takes)),
            }
        }
    }

    /// Runs the script as bash does when the tab key is pressed.
    #[test]
    fn bash_completes() {
        let complete = |line: &[&str]| {
            let words: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
            let script = format!(
                "{}\nCOMP_WORDS=(kubelith {}); COMP_CWORD={}; _kubelith; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
                bash(),
                words.join(" "),
                line.len()
            );
            let output = Program::new("bash").args(["--norc", "-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stderr), "");
            String::from_utf8(output.stdout).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(complete(&["st"]), ["store"]);
        assert_eq!(complete(&["store", "b"]), ["backup"]);
        assert_eq!(complete(&["store", "check", "--d"]), ["--data-dir="]);
        assert_eq!(complete(&["--storage-b"]), ["--storage-backend="]);
        assert_eq!(complete(&["--storage-backend", "=", "m"]), ["memory"]);
        assert_eq!(complete(&["--storage-backend", "="]), ["embedded", "memory", "etcd3"]);
        assert_eq!(complete(&["completion", ""]), ["bash", "zsh", "fish", "--help"]);
        assert_eq!(complete(&["help", "ce"]), ["cel"]);
        assert_eq!(complete(&["--secure-port", ""]), [""; 0]);
    }

    #[test]
    fn scripts_know_every_flag_and_command() {
        for (script, before) in [(bash(), "--"), (zsh(), "--"), (fish(), "-l ")] {
            for flag in server_flags() {
                assert!(script.contains(&format!("{before}{}", flag.name)), "{}", flag.name);
            }
            for command in COMMANDS {
                assert!(script.contains(command.name) && !script.contains("{}"), "{}", command.name);
            }
        }
        assert!(run(&["ksh".to_owned()]).unwrap_err().starts_with("no completions for \"ksh\""));
    }
}
