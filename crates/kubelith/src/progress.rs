//! Long work on a terminal: how far it is, and for how long it has been going.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What is done sooner needs no word, and more words than this are only noise.
const INTERVAL: Duration = Duration::from_secs(1);

/// Does the work, and tells people at a terminal of it meanwhile; `part` is how much of it is done, where that can be known.
pub fn shown<T>(what: &str, part: impl Fn() -> Option<f64> + Sync, work: impl FnOnce() -> T) -> T {
    match std::io::stderr().is_terminal() {
        true => told(what, part, work, &mut std::io::stderr()),
        false => work(),
    }
}

fn told<T>(
    what: &str,
    part: impl Fn() -> Option<f64> + Sync,
    work: impl FnOnce() -> T,
    out: &mut (impl Write + Send),
) -> T {
    let (done, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        let (part, out) = (&part, &mut *out);
        let teller = scope.spawn(move || {
            let begin = Instant::now();
            let mut width = 0;
            // The other end goes when the work is done.
            while waiting.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let text = line(what, part(), begin.elapsed());
                width = width.max(text.len());
                let _ = write!(out, "\r{text:width$}").and_then(|()| out.flush());
            }
            if width > 0 {
                let _ = write!(out, "\r{:width$}\r", "").and_then(|()| out.flush());
            }
        });
        let outcome = work();
        drop(done);
        let _ = teller.join();
        outcome
    })
}

fn line(what: &str, part: Option<f64>, since: Duration) -> String {
    let part = part.map_or_else(String::new, |part| format!(" {:.0} %,", (part * 100.0).clamp(0.0, 100.0)));
    format!("{what}:{part} {} s", since.as_secs())
}

/// How far one file has grown towards the size of a folder.
pub fn grown(file: &Path, folder: &Path) -> Option<f64> {
    let whole = folder_size(folder);
    let grown = std::fs::metadata(file).map(|data| data.len()).unwrap_or(0);
    (whole > 0).then(|| grown as f64 / whole as f64)
}

pub fn folder_size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_moment_is_told_of_and_wiped_away() {
        let mut out = Vec::new();
        let outcome = told("copying", || Some(0.421), || 7, &mut out);
        assert_eq!((outcome, out.len()), (7, 0));
        assert_eq!(line("copying", Some(0.421), Duration::from_secs(3)), "copying: 42 %, 3 s");
        assert_eq!(line("checking", None, Duration::from_secs(3)), "checking: 3 s");
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("data"), [0; 100]).unwrap();
        let copy = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(copy.path(), [0; 25]).unwrap();
        assert_eq!(grown(copy.path(), dir.path()), Some(0.25));
        assert_eq!(grown(copy.path(), &dir.path().join("none")), None);
    }
}
