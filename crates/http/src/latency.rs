//! Where a request's time goes: filters and handlers add what they measured, the log of slow requests and the
//! metrics read it.

use crate::message::Request;
use kubelith_meta::call::{Wait, Waited};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The parts that are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Authentication,
    Authorization,
    /// Finding out whether one may act as another.
    Impersonation,
    /// Waiting for a turn in priority and fairness.
    Queue,
    MutatingWebhooks,
    ValidatingWebhooks,
    /// Expressions of admission policies.
    Policies,
    Storage,
    Decode,
    ResponseWrite,
}

pub const PARTS: [(Part, &str); 10] = [
    (Part::Authentication, "authentication"),
    (Part::Authorization, "authorization"),
    (Part::Impersonation, "impersonation"),
    (Part::Queue, "apf_queue_wait"),
    (Part::MutatingWebhooks, "mutating_webhook"),
    (Part::ValidatingWebhooks, "validating_webhook"),
    (Part::Policies, "policies"),
    (Part::Storage, "etcd"),
    (Part::Decode, "decode_response_object"),
    (Part::ResponseWrite, "response_write"),
];

const WAITS: [(Wait, Part); 4] = [
    (Wait::MutatingWebhooks, Part::MutatingWebhooks),
    (Wait::ValidatingWebhooks, Part::ValidatingWebhooks),
    (Wait::Policies, Part::Policies),
    (Wait::Store, Part::Storage),
];

/// Clones share the numbers.
#[derive(Debug, Clone, Default)]
pub struct Latency {
    nanos: Arc<[AtomicU64; PARTS.len()]>,
}

impl Latency {
    pub fn add(&self, part: Part, spent: Duration) {
        self.nanos[part as usize].fetch_add(spent.as_nanos() as u64, Ordering::Relaxed);
    }

    pub fn of(&self, part: Part) -> Duration {
        Duration::from_nanos(self.nanos[part as usize].load(Ordering::Relaxed))
    }

    /// Adds what a call waited for.
    pub fn add_waited(&self, waited: Waited) {
        for (what, part) in WAITS {
            let spent = waited[what as usize];
            if !spent.is_zero() {
                self.add(part, spent);
            }
        }
    }

    /// Time spent waiting for others, which is not the server's own doing.
    pub fn external(&self) -> Duration {
        [Part::Queue, Part::MutatingWebhooks, Part::ValidatingWebhooks].map(|p| self.of(p)).iter().sum()
    }
}

/// Adds to a request's trackers, if it has some.
pub fn track(request: &Request, part: Part, spent: Duration) {
    if let Some(latency) = request.latency() {
        latency.add(part, spent);
    }
}
