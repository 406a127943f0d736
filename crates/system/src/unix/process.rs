//! The process, those who start and stop it, and its machine.

use crate::Word;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How far a thread steps back. 19 is the most, with which a busy machine would hardly get the work done.
#[cfg(target_os = "linux")]
const BEHIND: i32 = 10;

/// What asks a process to end: SIGTERM and SIGINT.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// From now on these do not end the process by themselves.
    pub fn listen() -> io::Result<StopSignals> {
        Ok(StopSignals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Tells systemd, if it started us and wants to know.
pub fn notify(word: Word) -> io::Result<()> {
    let state = match word {
        Word::Ready => sd_notify::NotifyState::Ready,
        Word::Stopping => sd_notify::NotifyState::Stopping,
    };
    sd_notify::notify(&[state])
}

/// Lets the process open as many files as it may: each connection is one, and the usual first limit of 1024 is for
/// programs that use `select`.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Without it the server still serves, fewer.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Lets the process leave no core file when it crashes: keys and Secrets in clear would be in it. The hard limit stays, so
/// that whoever looks for a fault can allow one (`prlimit --core=unlimited --pid`).
pub fn leave_no_core() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    // A limit can always be lowered.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
}

/// Lets other threads go first: this one gets a tenth of a processor that they keep busy. Linux has this for each thread;
/// elsewhere it would be the whole process, and nothing is done.
pub fn give_way() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::setpriority_process(None, BEHIND)?;
    Ok(())
}

/// What the machine is called.
pub fn hostname() -> Option<String> {
    let name = rustix::system::uname();
    name.nodename().to_str().ok().map(str::to_owned).filter(|name| !name.is_empty())
}
