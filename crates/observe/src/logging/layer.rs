//! From `tracing` events to lines on standard error.

use super::format::{Fields, Format, Origin};
use super::modules::Modules;
use super::verbosity;
use kubelith_meta::time::wall_time;
use std::io::Write;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

/// Sends the process's log to standard error. Later calls have no effect.
pub fn init(format: Format, verbosity: u8) {
    init_with(format, verbosity, Vec::new());
}

/// As [`init`], with other levels for the files that a pattern matches (`--vmodule`).
pub fn init_with(format: Format, verbosity: u8, modules: Vec<(String, u8)>) {
    let _ = tracing::subscriber::set_global_default(Log { format, modules: Modules::new(modules) });
    super::set_verbosity(verbosity);
}

struct Log {
    format: Format,
    modules: Modules,
}

impl Log {
    /// The verbosity that holds for a place in the code.
    fn verbosity_at(&self, metadata: &Metadata<'_>) -> u8 {
        verbosity().max(self.modules.level(metadata.file().unwrap_or("")))
    }
}

/// `debug!` shows from `-v=4` on, `trace!` from `-v=6` on.
fn max_level(verbosity: u8) -> Level {
    match verbosity {
        0..=3 => Level::INFO,
        4..=5 => Level::DEBUG,
        _ => Level::TRACE,
    }
}

/// Libraries speak a lot at debug level; they are heard two steps later.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("kubelith")
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let verbosity = self.verbosity_at(metadata);
        metadata.is_event()
            && *metadata.level() <= max_level(verbosity)
            && (is_ours(metadata) || *metadata.level() <= Level::WARN || verbosity >= 8)
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::from_level(max_level(verbosity().max(self.modules.highest()))))
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.v > u64::from(self.verbosity_at(event.metadata())) {
            return;
        }
        let metadata = event.metadata();
        let origin = Origin {
            level: *metadata.level(),
            file: metadata.file().unwrap_or(""),
            line: metadata.line().unwrap_or(0),
            at: wall_time(),
        };
        let line = self.format.line(&origin, &fields);
        // A closed standard error must not end the server.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
