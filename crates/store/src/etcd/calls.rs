//! The calls of etcd, by name, and how many there were. Whoever shows the figures reads them when they are asked for.

use std::sync::atomic::{AtomicU64, Ordering};
use tonic::Code;

/// What is called of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Range,
    Put,
    DeleteRange,
    Txn,
    Compact,
    LeaseGrant,
    Status,
    Watch,
}

impl Method {
    pub const ALL: [Method; 8] = [
        Method::Range,
        Method::Put,
        Method::DeleteRange,
        Method::Txn,
        Method::Compact,
        Method::LeaseGrant,
        Method::Status,
        Method::Watch,
    ];

    pub(super) fn path(self) -> &'static str {
        match self {
            Method::Range => "/etcdserverpb.KV/Range",
            Method::Put => "/etcdserverpb.KV/Put",
            Method::DeleteRange => "/etcdserverpb.KV/DeleteRange",
            Method::Txn => "/etcdserverpb.KV/Txn",
            Method::Compact => "/etcdserverpb.KV/Compact",
            Method::LeaseGrant => "/etcdserverpb.Lease/LeaseGrant",
            Method::Status => "/etcdserverpb.Maintenance/Status",
            Method::Watch => "/etcdserverpb.Watch/Watch",
        }
    }

    /// Its service and its name in it: `etcdserverpb.KV` and `Range`.
    pub fn names(self) -> (&'static str, &'static str) {
        self.path()[1..].split_once('/').unwrap_or_default()
    }

    /// How gRPC calls this kind of method.
    pub fn kind(self) -> &'static str {
        if self == Method::Watch { "bidi_stream" } else { "unary" }
    }
}

/// Codes of gRPC as Go writes them, by their number.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// What a client of etcd did.
#[derive(Debug, Default)]
pub struct EtcdCounts {
    calls: [CallCounts; Method::ALL.len()],
    pub leases: LeaseCounts,
}

impl EtcdCounts {
    pub fn of(&self, method: Method) -> &CallCounts {
        &self.calls[method as usize]
    }

    /// A call begins.
    pub(super) fn begin(&self, method: Method) -> Call<'_> {
        let counts = self.of(method);
        counts.started.fetch_add(1, Ordering::Relaxed);
        Call { counts, code: Code::Cancelled, waits: false }
    }
}

/// Calls of one method.
#[derive(Debug, Default)]
pub struct CallCounts {
    started: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    handled: [AtomicU64; CODES.len()],
}

impl CallCounts {
    pub fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Messages, and failures in the place of one.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// How calls ended, with the codes that occurred.
    pub fn handled(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = CODES.into_iter().zip(&self.handled).map(|(code, count)| (code, count.load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0)
    }
}

/// A call under way. One that is dropped before it has ended was cancelled.
pub(super) struct Call<'a> {
    counts: &'a CallCounts,
    code: Code,
    /// For a message that may come.
    waits: bool,
}

impl Call<'_> {
    pub fn sent(&mut self) {
        self.waits = true;
        self.counts.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// One of several messages.
    pub fn received(&self) {
        self.counts.received.fetch_add(1, Ordering::Relaxed);
    }

    /// It has ended, or does before anything else happens to it.
    pub fn ended(&mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.received();
        }
        self.counts.handled[self.code as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// How many keys were attached to each lease, as a histogram: when a lease is given to no more keys, it counts with the one that
/// needed the next.
#[derive(Debug, Default)]
pub struct LeaseCounts {
    buckets: [AtomicU64; LeaseCounts::BOUNDS.len()],
    count: AtomicU64,
    sum: AtomicU64,
}

impl LeaseCounts {
    /// As kube-apiserver has them.
    pub const BOUNDS: [f64; 7] = [10.0, 50.0, 100.0, 500.0, 1000.0, 2500.0, 5000.0];

    pub(super) fn observe(&self, keys: u64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(keys, Ordering::Relaxed);
        for (bound, bucket) in Self::BOUNDS.iter().zip(&self.buckets) {
            if keys as f64 <= *bound {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Leases with up to so many keys, all leases, and all keys.
    pub fn read(&self) -> ([u64; LeaseCounts::BOUNDS.len()], u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (self.buckets.each_ref().map(read), read(&self.count), read(&self.sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_how_they_end() {
        let counts = EtcdCounts::default();
        let mut answered = counts.begin(Method::Range);
        answered.sent();
        answered.ended(Code::Ok);
        drop(answered);
        let mut dropped = counts.begin(Method::Range);
        dropped.sent();
        drop(dropped);
        // A stream that is never opened has no messages.
        counts.begin(Method::Watch).ended(Code::Unavailable);
        let mut stream = counts.begin(Method::Watch);
        stream.sent();
        stream.received();
        drop(stream);
        let range = counts.of(Method::Range);
        assert_eq!((range.started(), range.sent(), range.received()), (2, 2, 2));
        assert_eq!(range.handled().collect::<Vec<_>>(), [("OK", 1), ("Canceled", 1)]);
        let watch = counts.of(Method::Watch);
        assert_eq!((watch.started(), watch.sent(), watch.received()), (2, 1, 2));
        assert_eq!(watch.handled().collect::<Vec<_>>(), [("Canceled", 1), ("Unavailable", 1)]);
        assert_eq!((Method::Status.names(), Method::Status.kind()), (("etcdserverpb.Maintenance", "Status"), "unary"));
    }

    #[test]
    fn codes_have_gos_names() {
        let same = |code: Code| CODES[code as usize] == format!("{code:?}");
        let others: Vec<Code> = (0..17).map(Code::from_i32).filter(|code| !same(*code)).collect();
        assert_eq!(others, [Code::Ok, Code::Cancelled]);
    }
}
