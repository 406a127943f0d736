//! `kubelith store …`: what an operator does with the folder of the embedded store.

use crate::commands::Words;
use crate::storage::{self, live_backup};
use crate::{failure, progress, store_export};
use kubelith_store::StoreError;
use kubelith_store::embedded::{self, CheckReport, FolderStats};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Revisions that a restore skips by default: more than a server makes between two backups.
const SKIP_REVISIONS: u64 = 1_000_000;

pub const HELP: &str = "\
Looks after the embedded store of a data folder.

Usage:
  kubelith store check   [--data-dir DIR]
      Reads everything and compares it with itself. Changes nothing. No server may run on the folder.
  kubelith store stats   [--data-dir DIR]
      Shows revisions, sizes, and objects by resource. No server may run on the folder.
  kubelith store backup  [--data-dir DIR] FILE
      Writes a snapshot to a new file. A server may run on the folder: then it writes the file.
  kubelith store restore [--data-dir DIR] [--skip-revisions N] FILE
      Makes the store of a new data folder from a backup. Revisions go on N later (default 1000000), so
      that no client meets one again that it has seen with other contents.
  kubelith store export  [--data-dir DIR] FILE
      Writes every object to a new file, a line of JSON for each, to be read, searched and changed. No server
      may run on the folder. Objects that are encrypted stay so.
  kubelith store import  [--data-dir DIR] [--skip-revisions N] FILE
      Makes the store of a new data folder from such a file. Revisions go on as after a restore.

Flags:
  --data-dir DIR         The data folder of the server (default \"kubelith-data\").
  --skip-revisions N     See restore.
  -h, --help             Shows this help.

Examples:
  kubelith store backup /backup/kubelith-$(date +%F).db
  kubelith store restore --data-dir restored /backup/kubelith-2026-11-17.db
";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Help,
    Check,
    Stats,
    Backup(PathBuf),
    Restore { from: PathBuf, skip: u64 },
    Export(PathBuf),
    Import { from: PathBuf, skip: u64 },
}

/// Runs the words behind `store`; what is to be shown, or why it failed.
pub fn run(words: &[String]) -> Result<String, String> {
    let (command, data_dir) = parse(words)?;
    let folder = storage::folder(&data_dir);
    let outcome = match command {
        Command::Help => return Ok(HELP.into()),
        Command::Check => {
            let report = progress::shown("checking", || None, || embedded::check(&folder));
            return show_check(&folder, report.map_err(|e| explain(e, &folder))?);
        }
        Command::Stats => {
            progress::shown("counting", || None, || embedded::stats(&folder)).map(|stats| show_stats(&folder, &stats))
        }
        Command::Backup(to) => {
            let part = || progress::grown(&unfinished(&to), &folder);
            return progress::shown("copying", part, || backup(&folder, &to));
        }
        Command::Restore { from, skip } => {
            let whole = || std::fs::metadata(&from).ok().map(|data| data.len() as f64);
            let part = || Some(progress::folder_size(&folder) as f64 / whole().filter(|size| *size > 0.0)?);
            progress::shown("restoring", part, || embedded::restore(&from, &folder, skip)).map(|revision| {
                format!("restored {} from {} at revision {revision}\n", folder.display(), from.display())
            })
        }
        Command::Export(to) => {
            let count = store_export::export(&folder, &to).map_err(|error| error.text(|e| explain(e, &folder)))?;
            return Ok(format!("wrote {count} objects to {}\n", to.display()));
        }
        Command::Import { from, skip } => {
            let made = store_export::import(&from, &folder, skip).map_err(|e| e.text(|e| explain(e, &folder)))?;
            return Ok(format!("imported {} from {} at revision {made}\n", folder.display(), from.display()));
        }
    };
    outcome.map_err(|error| explain(error, &folder))
}

fn parse(words: &[String]) -> Result<(Command, PathBuf), String> {
    let mut data_dir = PathBuf::from("kubelith-data");
    let mut skip = None;
    let mut rest: Vec<&str> = Vec::new();
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "-h" | "--help" => return Ok((Command::Help, data_dir)),
            "--data-dir" => data_dir = words.value()?.into(),
            "--skip-revisions" => {
                let text = words.value()?;
                skip = Some(text.parse().map_err(|_| format!("--skip-revisions: {text:?} is no number"))?);
            }
            flag if flag.starts_with('-') => return Err(format!("unknown flag: {flag}\n\n{HELP}")),
            _ => rest.push(word),
        }
    }
    let command = match rest[..] {
        [] => Command::Help,
        ["check"] => Command::Check,
        ["stats"] => Command::Stats,
        ["backup", to] => Command::Backup(to.into()),
        ["export", to] => Command::Export(to.into()),
        ["import", from] => Command::Import { from: from.into(), skip: skip.unwrap_or(SKIP_REVISIONS) },
        ["restore", from] => Command::Restore { from: from.into(), skip: skip.unwrap_or(SKIP_REVISIONS) },
        _ => return Err(format!("unknown command: store {}\n\n{HELP}", rest.join(" "))),
    };
    if skip.is_some() && !matches!(command, Command::Restore { .. } | Command::Import { .. }) {
        return Err("--skip-revisions is for restore and import".into());
    }
    Ok((command, data_dir))
}

/// What a backup is called until it is whole.
fn unfinished(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}

fn backup(folder: &Path, to: &Path) -> Result<String, String> {
    let absolute = std::path::absolute(to).map_err(|e| e.to_string())?;
    let revision = match embedded::backup(folder, &absolute) {
        Ok(revision) => revision.0,
        Err(StoreError::Locked(by)) => match live_backup::request(folder, &absolute) {
            Some(answer) => answer?,
            None => return Err(explain(StoreError::Locked(by), folder)),
        },
        Err(error) => return Err(explain(error, folder)),
    };
    Ok(format!("wrote {} at revision {revision}\n", to.display()))
}

fn explain(error: StoreError, folder: &Path) -> String {
    let advice = match &error {
        // There is another folder to name, or none is needed.
        StoreError::Corrupt(_) => None,
        error => failure::store_advice(error, folder),
    };
    let message = match error {
        StoreError::Locked(by) => format!("{} is in use by another process: {by}", folder.display()),
        StoreError::Corrupt(why) => format!("{} is damaged: {why}", folder.display()),
        error => error.to_string(),
    };
    advice.map_or(message.clone(), |advice| format!("{message}\n\n{advice}."))
}

fn show_check(folder: &Path, report: CheckReport) -> Result<String, String> {
    let stats = &report.stats;
    if report.problem_count == 0 {
        return Ok(format!(
            "{} is sound: {} keys, {} versions, revision {}\n",
            folder.display(),
            stats.keys.unwrap_or_default(),
            report.versions,
            stats.revision
        ));
    }
    let mut text = format!("{} is damaged, {} problems:\n", folder.display(), report.problem_count);
    for problem in &report.problems {
        let _ = writeln!(text, "  {problem}");
    }
    Err(text)
}

fn show_stats(folder: &Path, found: &FolderStats) -> String {
    let stats = &found.stats;
    let mut text = format!(
        "folder               {}\nrevision             {}\noldest revision      {}\nfile bytes           {}\n\
         keys                 {}\nversions of the past {}\n\n{:>10} {:>14}  resource\n",
        folder.display(),
        stats.revision,
        stats.compacted,
        stats.size,
        stats.keys.unwrap_or_default(),
        found.history_versions,
        "keys",
        "bytes",
    );
    for (resource, figures) in &found.resources {
        let _ = writeln!(text, "{:>10} {:>14}  {resource}", figures.keys, figures.bytes);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let parse = |line: &str| parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let ok = |line: &str| parse(line).map(|(command, dir)| (command, dir.display().to_string()));
        let default = "kubelith-data".to_owned();
        assert_eq!(ok(""), Ok((Command::Help, default.clone())));
        assert_eq!(ok("check"), Ok((Command::Check, default.clone())));
        assert_eq!(ok("check --data-dir=/d"), Ok((Command::Check, "/d".into())));
        assert_eq!(ok("--data-dir /d stats"), Ok((Command::Stats, "/d".into())));
        assert_eq!(ok("backup f"), Ok((Command::Backup("f".into()), default.clone())));
        let restore = |skip| Ok((Command::Restore { from: "f".into(), skip }, default.clone()));
        assert_eq!(ok("restore f"), restore(SKIP_REVISIONS));
        assert_eq!(ok("restore f --skip-revisions 0"), restore(0));
        for (line, why) in [
            ("backup", "unknown command: store backup"),
            ("backup a b", "unknown command: store backup a b"),
            ("nonsense", "unknown command: store nonsense"),
            ("check --force", "unknown flag: --force"),
            ("check --data-dir", "flag needs an argument: --data-dir"),
            ("check --skip-revisions 1", "--skip-revisions is for restore and import"),
            ("restore f --skip-revisions x", "--skip-revisions: \"x\" is no number"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.starts_with(why), "{line}: {error}");
        }
    }
}
