//! Events in a file or on standard output, a line each.

use super::backend::{Backend, Written};
use super::event::Event;
use super::rotate::RotatingFile;
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    /// One line of text, for those who read it with their eyes.
    Legacy,
}

pub enum LogTarget {
    Stdout,
    File(Box<RotatingFile>),
}

pub struct LogBackend {
    format: LogFormat,
    target: Mutex<LogTarget>,
}

impl LogBackend {
    pub fn new(target: LogTarget, format: LogFormat) -> LogBackend {
        LogBackend { format, target: Mutex::new(target) }
    }

    fn line(&self, event: &Event) -> Vec<u8> {
        let mut line = Vec::with_capacity(1024);
        match self.format {
            LogFormat::Json => event.write_json(&mut line),
            LogFormat::Legacy => line.extend_from_slice(event.legacy_line().as_bytes()),
        }
        line.push(b'\n');
        line
    }
}

impl Backend for LogBackend {
    fn name(&self) -> &'static str {
        "log"
    }

    /// One write for each line: a reader never sees half of one, but for a crash.
    fn write(&self, events: Vec<Arc<Event>>) -> Written<'_> {
        let mut result = Ok(());
        for event in events {
            let line = self.line(&event);
            let written = match &mut *self.target.lock().unwrap_or_else(|e| e.into_inner()) {
                LogTarget::Stdout => std::io::stdout().lock().write_all(&line),
                LogTarget::File(file) => file.write(&line),
            };
            result = result.and(written.map_err(|e| e.to_string()));
        }
        Written::Now(result)
    }
}
