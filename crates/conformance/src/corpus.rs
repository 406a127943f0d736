//! The recorded files on disk: finds them, selects some, and replays them, several at a time.

use crate::harness::{Launch, Server};
use crate::http::Address;
use crate::known::{Known, StepId};
use crate::replay::{Patience, StepOutcome, Tokens, replay};
use crate::transcript::Transcript;
use crate::webhook_server;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub struct CorpusFile {
    /// `area/stem`, as the list of known differences names it.
    pub name: String,
    pub transcript: Transcript,
}

impl CorpusFile {
    fn stem(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or_default()
    }
}

pub struct FileOutcome {
    pub name: String,
    pub steps: Vec<StepOutcome>,
}

/// Loads the files that the arguments select: an area, a stem, `area/stem` or a path; all without arguments.
pub fn load(root: &Path, selected: &[String]) -> Result<Vec<CorpusFile>, String> {
    let mut files = Vec::new();
    let mut used = vec![false; selected.len()];
    for path in json_files(root).map_err(|error| format!("{}: {error}", root.display()))? {
        let name = path.strip_prefix(root).unwrap_or(&path).with_extension("").to_string_lossy().into_owned();
        let mut wanted = selected.is_empty();
        for (argument, used) in selected.iter().zip(&mut used) {
            if selects(argument, &name) {
                (wanted, *used) = (true, true);
            }
        }
        if wanted {
            files.push(CorpusFile { name, transcript: Transcript::load(&path)? });
        }
    }
    match selected.iter().zip(used).find(|(_, used)| !used) {
        Some((argument, _)) => Err(format!("{argument}: no such area or file in {}", root.display())),
        None => Ok(files),
    }
}

fn selects(argument: &str, name: &str) -> bool {
    let argument = argument.split('#').next().unwrap_or_default().trim_end_matches('/').trim_end_matches(".json");
    let argument = argument.rsplit_once("conformance/").map_or(argument, |(_, inside)| inside);
    name == argument || name.split('/').any(|part| part == argument)
}

fn json_files(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for area in std::fs::read_dir(root)? {
        let area = area?.path();
        if area.is_dir() {
            for file in std::fs::read_dir(area)? {
                let file = file?.path();
                if file.extension().is_some_and(|extension| extension == "json") {
                    files.push(file);
                }
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Who answers the requests. A file has its server to itself while it runs, since some set cluster-wide defaults for a moment.
pub enum Target {
    Running(Address),
    /// A fresh server per worker.
    Started(Launch),
}

/// Replays all files with this many workers and calls `done` after each; an error is a server that does not start or dies.
pub fn run(
    files: Vec<CorpusFile>,
    target: &Target,
    jobs: usize,
    tokens: &Tokens,
    known: &Known<StepId>,
    done: &(dyn Fn(&FileOutcome) + Sync),
) -> Result<Vec<FileOutcome>, String> {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by(|a, b| b.transcript.patience().total_cmp(&a.transcript.patience()));
    if files.iter().any(|file| file.transcript.needs_webhooks()) {
        webhook_server::start()?;
    }
    let queue = Mutex::new(VecDeque::from(files));
    let outcomes = Mutex::new(Vec::new());
    let worker = || -> Result<(), String> {
        let mut own = match target {
            Target::Running(_) => None,
            Target::Started(launch) => Some(Server::start(launch, tokens)?),
        };
        loop {
            let Some(file) = queue.lock().expect("no worker panics").pop_front() else { return Ok(()) };
            let address = match (target, &own) {
                (Target::Running(address), _) => address,
                (_, Some(server)) => &server.address,
                (Target::Started(_), None) => unreachable!("a worker of a started target owns a server"),
            };
            let patience = |index| match known.contains(&StepId { file: file.name.clone(), index }) {
                true => Patience::Little,
                false => Patience::AsRecorded,
            };
            let steps = replay(&file.transcript, file.stem(), address, tokens, &patience);
            let outcome = FileOutcome { name: file.name, steps };
            done(&outcome);
            if let Some(server) = &mut own
                && !server.is_alive()
            {
                return Err(format!("the server died during {}; its log ends with:\n{}", outcome.name, server.log()));
            }
            outcomes.lock().expect("no worker panics").push(outcome);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    let mut outcomes = outcomes.into_inner().expect("no worker panics");
    outcomes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_select() {
        for argument in
            ["crud", "yaml-bodies", "crud/yaml-bodies", "crud/yaml-bodies#3", "tests/conformance/crud/yaml-bodies.json"]
        {
            assert!(selects(argument, "crud/yaml-bodies"), "{argument}");
        }
        for argument in ["cru", "yaml", "patch/yaml-bodies", ""] {
            assert!(!selects(argument, "crud/yaml-bodies"), "{argument}");
        }
    }

    #[test]
    fn every_recorded_file_loads() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance");
        let files = load(&root, &[]).unwrap();
        assert!(files.len() > 200);
        assert!(load(&root, &["nosuch".to_owned()]).is_err());
    }
}
