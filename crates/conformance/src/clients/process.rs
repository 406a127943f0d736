//! Runs a client program with a time limit, or in the background while its lines are read.

use crate::pauses::Pauses;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Far longer than any command takes; a client that hangs must not hang the run.
const LIMIT: Duration = Duration::from_secs(120);
/// How long something may take that happens behind an answer.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);
/// For clients written in Go, which run for a tenth of a second: to collect garbage, and to start a thread for each processor, is
/// a third of the work.
pub const SHORT_LIVED: [(&str, &str); 2] = [("GOGC", "off"), ("GOMAXPROCS", "1")];

pub struct Output {
    pub command: String,
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// What it printed, if it succeeded.
    pub fn ok(self) -> Result<String, String> {
        if self.success {
            Ok(self.stdout)
        } else {
            Err(format!("{} failed:\n{}{}", self.command, self.stdout, self.stderr))
        }
    }

    /// What it complained of, if it failed.
    pub fn err(self) -> Result<String, String> {
        if self.success {
            Err(format!("{} should have failed, but said:\n{}", self.command, self.stdout))
        } else {
            Ok(self.stderr)
        }
    }
}

pub fn run(mut command: Command, input: &str) -> Result<Output, String> {
    let name = describe(&command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
    let mut stdin = child.stdin.take();
    let out = child.stdout.take().map(|pipe| std::thread::spawn(move || read_all(pipe)));
    let err = child.stderr.take().map(|pipe| std::thread::spawn(move || read_all(pipe)));
    if let Some(pipe) = &mut stdin {
        // A program that does not read its input is free to close it.
        let _ = pipe.write_all(input.as_bytes());
    }
    drop(stdin);
    let success = wait(&mut child, &name)?;
    let text = |reader: Option<std::thread::JoinHandle<String>>| {
        reader.and_then(|thread| thread.join().ok()).unwrap_or_default()
    };
    Ok(Output { command: name, success, stdout: text(out), stderr: text(err) })
}

fn wait(child: &mut Child, name: &str) -> Result<bool, String> {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("{name}: {error}"))? {
            return Ok(status.success());
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{name} did not end in {LIMIT:?}"));
        }
        std::thread::sleep(POLL);
    }
}

/// Tries again until it works, for what the server takes note of a moment after it answered.
pub fn eventually(attempt: impl Fn() -> Result<(), String>) -> Result<(), String> {
    let (end, mut pauses) = (Instant::now() + PATIENCE, Pauses::default());
    loop {
        match attempt() {
            Err(_) if Instant::now() < end => pauses.pause(),
            outcome => return outcome,
        }
    }
}

fn read_all(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A program that runs on while the test does other things, and is killed when the handle goes.
pub struct Background {
    name: String,
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Background {
    pub fn start(mut command: Command) -> Result<Background, String> {
        let name = describe(&command);
        let (reader, writer) = std::io::pipe().map_err(|error| format!("pipe: {error}"))?;
        let second = writer.try_clone().map_err(|error| format!("pipe: {error}"))?;
        command.stdin(Stdio::null()).stdout(writer).stderr(second);
        let child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        // The command holds the ends that we would otherwise wait for.
        drop(command);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Background { name, child, lines, seen: Vec::new() })
    }

    /// Waits for a line with all of these words, in what it prints and in what it complains of.
    pub fn wait_for(&mut self, words: &[&str]) -> Result<(), String> {
        let end = Instant::now() + LIMIT;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let found = words.iter().all(|word| line.contains(word));
                    self.seen.push(line);
                    if found {
                        return Ok(());
                    }
                }
                Err(_) => {
                    return Err(format!("{} never printed {words:?}, only:\n{}", self.name, self.seen.join("\n")));
                }
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command as a person would type it: without the path of the program and of the credentials.
fn describe(command: &Command) -> String {
    let program =
        std::path::Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut words = vec![program];
    let mut arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--kubeconfig" => _ = arguments.next(),
            _ => words.push(argument),
        }
    }
    words.join(" ")
}
