//! The process, those who start and stop it, and its machine.

use crate::Word;
use std::io;
use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

/// What asks a process to end: Ctrl-C, Ctrl-Break, a console that closes, a machine that shuts down. After the last two the
/// system waits for some seconds only.
#[derive(Debug)]
pub struct StopSignals {
    c: CtrlC,
    pause: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl StopSignals {
    /// From now on these do not end the process by themselves.
    pub fn listen() -> io::Result<StopSignals> {
        Ok(StopSignals { c: ctrl_c()?, pause: ctrl_break()?, close: ctrl_close()?, shutdown: ctrl_shutdown()? })
    }

    /// The next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.c.recv() => {}
            _ = self.pause.recv() => {}
            _ = self.close.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}

/// The program is no service of Windows: nobody is told.
pub fn notify(_word: Word) -> io::Result<()> {
    Ok(())
}

/// There is no limit to raise.
pub fn raise_open_files() {}

/// Windows keeps no memory of a process that crashes, unless its administrator asked for that.
pub fn leave_no_core() {}

/// Threads keep their priority.
pub fn give_way() -> io::Result<()> {
    Ok(())
}

/// What the machine is called.
pub fn hostname() -> Option<String> {
    std::env::var("COMPUTERNAME").ok().filter(|name| !name.is_empty())
}
