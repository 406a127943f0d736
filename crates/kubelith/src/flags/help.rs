//! `--help`: the table in sections, wrapped for reading.

use super::{Effect, Flag, FlagKind, SECTIONS};
use std::fmt::Write;

const WIDTH: usize = 100;
const INDENT: usize = 16;

const INTRODUCTION: &str = "\
Kubelith is a Kubernetes API server in one binary: the API, the flags and the stored data of
kube-apiserver, with storage built in. It runs without any flag.

Usage:
  kubelith [flags]            serve
  kubelith <command> [flags]  see kubelith help <command>

Commands:
";

const EXAMPLES: &str = "
Examples:
  # Serve, with objects and certificates in ./kubelith-data
  kubelith

  # For a test: nothing is kept
  kubelith --storage-backend=memory --data-dir=$(mktemp -d)

  # In front of etcd, as kube-apiserver
  kubelith --etcd-servers=https://127.0.0.1:2379 --etcd-cafile=ca.crt --authorization-mode=Node,RBAC

  # Let kubectl know it
  kubelith kubeconfig --merge
";

/// The whole text; `commands` are names of commands with a line about each.
pub fn help<'a>(commands: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::from(INTRODUCTION);
    for (name, summary) in commands {
        let _ = writeln!(out, "  {name:12}{summary}");
    }
    out.push_str(EXAMPLES);
    for section in SECTIONS.iter().filter(|s| !s.title.is_empty()) {
        let _ = writeln!(out, "\n{}:\n", section.title);
        for flag in section.flags {
            write_flag(&mut out, flag);
        }
    }
    out
}

fn write_flag(out: &mut String, flag: &Flag) {
    let short = match flag.name {
        "v" => "-v, ",
        "help" => "-h, ",
        _ => "    ",
    };
    let kind = flag.kind.name();
    let space = if kind.is_empty() || flag.kind == FlagKind::Version { "" } else { " " };
    let name = if flag.kind == FlagKind::Version { "version[=true]" } else { flag.name };
    let kind = if flag.kind == FlagKind::Version { "" } else { kind };
    let default = match (flag.kind, flag.default) {
        // An empty list is said to be one where the reference does.
        (FlagKind::NamedCertKey | FlagKind::TextMap | FlagKind::Int32List, "") => " (default [])".to_owned(),
        (_, "") => String::new(),
        (FlagKind::Text, default) => format!(" (default \"{default}\")"),
        (FlagKind::List, default) => format!(" (default [{default}])"),
        (_, default) => format!(" (default {default})"),
    };
    let effect = match flag.effect {
        Effect::Applies => "",
        Effect::NoUse => " Accepted for compatibility, without effect.",
    };
    let deprecated = flag.deprecated.map(|why| format!(" (DEPRECATED: {why})")).unwrap_or_default();
    let _ = writeln!(out, "  {short}--{name}{space}{kind}");
    wrap(out, &format!("{}{effect}{default}{deprecated}", flag.help));
}

fn wrap(out: &mut String, text: &str) {
    let mut column = 0;
    for word in text.split_whitespace() {
        if column == 0 || column + 1 + word.len() > WIDTH {
            if column > 0 {
                out.push('\n');
            }
            let _ = write!(out, "{:INDENT$}", "");
            column = INDENT;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out.push('\n');
}
