//! Options of what only tests use.

use crate::flags::Flags;
use kubelith_meta::Time;
use kubelith_meta::text::Quoted;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestApiOptions {
    /// `--enable-test-api`
    pub served: bool,
    pub clock: ClockOptions,
    /// What uids and generated names follow from.
    pub seed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockOptions {
    System,
    /// It stands still until it is turned, from this time on; `None` for the time of the start.
    Manual(Option<Time>),
}

impl TestApiOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> TestApiOptions {
        let served = flags.bool("enable-test-api");
        let clock = match flags.text("clock").as_str() {
            "system" | "" => ClockOptions::System,
            "manual" => ClockOptions::Manual(None),
            time => match Time::parse(time) {
                Ok(time) => ClockOptions::Manual(Some(time)),
                Err(_) => {
                    let shown = Quoted(time);
                    errors.push(format!("--clock {shown} invalid, allowed values: system, manual, a time (RFC 3339)"));
                    ClockOptions::System
                }
            },
        };
        if clock != ClockOptions::System && !served {
            errors.push("--clock requires --enable-test-api".into());
        }
        let seed = match flags.text("random-seed").as_str() {
            "" => None,
            text => {
                let seed = text.parse();
                if seed.is_err() {
                    errors.push(format!("--random-seed {} invalid, must be a number, 0 or more", Quoted(text)));
                }
                seed.ok()
            }
        };
        if seed.is_some() && !served {
            errors.push("--random-seed requires --enable-test-api".into());
        }
        TestApiOptions { served, clock, seed }
    }
}
