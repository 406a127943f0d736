//! `kubelith man`: the manual page, in roff, made of the tables of commands and flags.

use super::COMMANDS;
use crate::flags::{Flag, SECTIONS};
use crate::version;
use std::fmt::Write;

pub const HELP: &str = "\
Writes the manual page kubelith(1).

Usage:
  kubelith man

Flags:
  -h, --help             Shows this help.

Examples:
  kubelith man | man -l -
  kubelith man | gzip > /usr/share/man/man1/kubelith.1.gz
";

const DESCRIPTION: &str = "\
Kubelith is the Kubernetes API server in one program: the API, the flags and the stored data of kube-apiserver, with storage \
built in. Without any flag it keeps objects in ./kubelith-data, makes the certificates that it needs there, listens on port \
6443 and writes a kubeconfig for its administrator. With --etcd-servers it takes the place of a kube-apiserver in front of \
etcd.";

/// Runs the words behind `man`.
pub fn run(words: &[String]) -> Result<String, String> {
    match words.first().map(String::as_str) {
        None => Ok(page()),
        Some("-h" | "--help") => Ok(HELP.to_owned()),
        Some(word) => Err(format!("unknown word: {word}\n\n{HELP}")),
    }
}

fn page() -> String {
    let info = version::info();
    let day = info.build_date.split('T').next().unwrap_or_default();
    let mut out = format!(
        ".TH KUBELITH 1 \"{day}\" \"Kubelith {}\" \"User Commands\"\n.SH NAME\nkubelith \\- Kubernetes API server in one \
         program\n.SH SYNOPSIS\n.B kubelith\n.RI [ flags ]\n",
        version::KUBELITH
    );
    for command in COMMANDS {
        let words = if command.words.is_empty() { String::new() } else { format!(" {}", command.words.join("|")) };
        let _ = writeln!(out, ".br\n.B kubelith {}{}\n.RI [ flags ]", command.name, roff(&words));
    }
    let _ = writeln!(out, ".SH DESCRIPTION\n{}\n.SH COMMANDS", roff(DESCRIPTION));
    for command in COMMANDS {
        let _ = writeln!(out, ".SS kubelith {}\n.nf\n{}\n.fi", command.name, lines(command.help));
    }
    for section in SECTIONS.iter().filter(|section| !section.title.is_empty()) {
        let _ = writeln!(out, ".SH {}", roff(&section.title.to_uppercase()));
        section.flags.iter().for_each(|flag| write_flag(&mut out, flag));
    }
    out.push_str(FILES);
    out
}

fn write_flag(out: &mut String, flag: &Flag) {
    let kind = flag.kind.name();
    let name = roff(&format!("--{}", flag.name));
    let _ = match kind {
        "" => writeln!(out, ".TP\n.B {name}"),
        kind => writeln!(out, ".TP\n.BI \"{name} \" {}", roff(kind)),
    };
    let default = if flag.default.is_empty() { String::new() } else { format!(" Default: {}.", flag.default) };
    let _ = writeln!(out, "{}", lines(&format!("{}{default}", flag.help)));
}

const FILES: &str = "\
.SH FILES
.TP
.I kubelith\\-data/admin.kubeconfig
Credentials of the administrator.
.TP
.I kubelith\\-data/store
The embedded store.
.TP
.I kubelith\\-data/pki
Certificates and keys that Kubelith made.
.TP
.I /etc/default/kubelith
Flags of the service, where the package of a distribution installed one.
.SH SIGNALS
SIGTERM and SIGINT end it in order; a second one ends it at once.
.SH EXIT STATUS
0 after an ordered end, 1 if it could not start or was ended at once.
.SH SEE ALSO
.BR kubectl (1)
";

/// Dashes that can be copied, and nothing that roff takes for its own.
fn roff(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// Lines that begin with a dot or a quote are orders to roff.
fn lines(text: &str) -> String {
    let guarded = text.lines().map(|line| match line.starts_with(['.', '\'']) {
        true => format!("\\&{}", roff(line)),
        false => roff(line),
    });
    guarded.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_flag_and_is_roff() {
        let page = page();
        for flag in SECTIONS.iter().filter(|s| !s.title.is_empty()).flat_map(|s| s.flags) {
            assert!(page.contains(&roff(&format!("--{}", flag.name))), "{}", flag.name);
        }
        const KNOWN: [&str; 12] = [".TH", ".SH", ".SS", ".TP", ".B", ".BI", ".BR", ".RI", ".I", ".br", ".nf", ".fi"];
        for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
            let order = line.split(' ').next().unwrap_or_default();
            assert!(KNOWN.contains(&order), "{line}");
        }
    }
}
