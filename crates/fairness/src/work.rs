//! What a request costs, in seats and time, estimated before it runs.

use crate::{Nanos, SeatSeconds};

pub const MIN_SEATS: u32 = 1;
/// Of a list that is made from memory in one piece.
const MAX_LIST_SEATS: u32 = 100;
const MAX_WRITE_SEATS: u32 = 10;
/// Memory that one seat of a list stands for, in bytes.
const BYTES_PER_SEAT: f64 = 100_000.0;
/// A list from the cache is streamed and never holds more than this, in bytes.
const STREAMED_BYTES: i64 = 1_000_000;
/// What an object of unknown size is taken for: the largest that the store accepts.
const LARGEST_OBJECT: i64 = 1_500_000;
/// Watches that one seat serves while an event is handed out.
const WATCHES_PER_SEAT: u32 = 10;
/// How long handing out an event takes.
const EVENT_TIME: Nanos = 5_000_000;

/// Seats while a request runs, and those it keeps for a while after it was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    pub initial_seats: u32,
    pub final_seats: u32,
    /// How long the final seats are kept. Its client does not wait for that.
    pub extra: Nanos,
}

impl Work {
    pub const ONE: Work = Work::seats(MIN_SEATS);

    pub const fn seats(seats: u32) -> Work {
        Work { initial_seats: seats, final_seats: 0, extra: 0 }
    }

    /// What has to be free for it to start.
    pub fn max_seats(&self) -> u32 {
        self.initial_seats.max(self.final_seats)
    }
}

/// The size of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    pub objects: i64,
    /// 0: unknown.
    pub average_bytes: i64,
}

/// What a list, or a watch that begins with one, asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Listing<'a> {
    pub watch: bool,
    /// The selector names one object.
    pub single: bool,
    /// 0: all.
    pub limit: i64,
    pub has_selector: bool,
    pub resource_version: &'a str,
    pub resource_version_match: &'a str,
    pub has_continue: bool,
    pub send_initial_events: bool,
    /// The options cannot be read: the request will fail.
    pub malformed: bool,
}

impl Listing<'_> {
    /// `level_max`: what one request of the level may take; 0 if it says nothing. Without stats the resource is
    /// unknown, or somebody else's.
    pub fn work(&self, stats: Option<Stats>, level_max: u32) -> Work {
        let max = if level_max == 0 { MAX_LIST_SEATS } else { level_max.min(MAX_LIST_SEATS) };
        if self.malformed {
            return Work::seats(max);
        }
        let from_now = self.resource_version.is_empty() || self.resource_version == "0";
        if self.watch && !self.send_initial_events && !from_now {
            return Work::ONE;
        }
        let Some(mut stats) = stats else { return Work::ONE };
        if stats.average_bytes <= 0 && stats.objects != 0 {
            stats.average_bytes = LARGEST_OBJECT;
        }
        let from_cache = self.watch || self.is_from_cache();
        let limited = if self.limit > 0 { self.limit.min(stats.objects) } else { stats.objects };
        let loaded = match (self.single, from_cache, self.has_selector) {
            (true, ..) => 1,
            (false, false, true) => limited.max(stats.objects / 2),
            _ => limited,
        };
        let mut bytes = loaded.saturating_mul(stats.average_bytes);
        if from_cache {
            bytes = bytes.min(STREAMED_BYTES);
        }
        let seats = (bytes as f64 / BYTES_PER_SEAT).ceil();
        Work::seats((seats as u32).clamp(MIN_SEATS, max.max(MIN_SEATS)))
    }

    /// Exact revisions and further pages are taken for reads of the store, as the reference estimates them.
    fn is_from_cache(&self) -> bool {
        match self.resource_version_match {
            "NotOlderThan" => true,
            "" if self.has_continue => false,
            "" => !(self.limit > 0 && !self.resource_version.is_empty() && self.resource_version != "0"),
            _ => false,
        }
    }
}

/// What a write costs when so many watches will see it. Few of them cost nothing extra.
pub fn write_work(watches: u32, level_max: u32) -> Work {
    if watches < WATCHES_PER_SEAT {
        return Work::ONE;
    }
    let max = if level_max == 0 { MAX_WRITE_SEATS } else { level_max.min(MAX_WRITE_SEATS) };
    let seats = watches.div_ceil(WATCHES_PER_SEAT);
    // Wide requests block others while their seats are gathered: the same work, narrower and longer.
    let work = SeatSeconds::of(seats, EVENT_TIME);
    let final_seats = seats.min(max);
    Work { initial_seats: 1, final_seats, extra: work.time_with(final_seats) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Option<Stats> = Some(Stats { objects: 1000, average_bytes: 1000 });

    #[test]
    fn lists() {
        let all = Listing::default();
        let cases = [
            (all, None, 0, 1),
            (all, Some(Stats { objects: 0, average_bytes: 0 }), 0, 1),
            (all, Some(Stats { objects: 100, average_bytes: 1000 }), 0, 1),
            (all, Some(Stats { objects: 500, average_bytes: 1000 }), 0, 5),
            // Streamed: never more than ten.
            (all, Some(Stats { objects: 100_000, average_bytes: 1000 }), 0, 10),
            (all, Some(Stats { objects: 100_000, average_bytes: 1000 }), 4, 4),
            (all, Some(Stats { objects: 1, average_bytes: 0 }), 0, 10),
            (Listing { limit: 300, ..all }, SMALL, 0, 3),
            (Listing { limit: 3000, ..all }, SMALL, 0, 10),
            (Listing { single: true, ..all }, SMALL, 0, 1),
            (Listing { malformed: true, ..all }, SMALL, 0, 100),
            (Listing { malformed: true, ..all }, SMALL, 7, 7),
            // Not from the cache.
            (Listing { has_continue: true, ..all }, Some(Stats { objects: 10_000, average_bytes: 1000 }), 0, 100),
            (Listing { has_continue: true, limit: 500, ..all }, SMALL, 0, 5),
            (Listing { has_continue: true, limit: 100, has_selector: true, ..all }, SMALL, 0, 5),
            (Listing { limit: 500, resource_version: "5", ..all }, SMALL, 0, 5),
            (Listing { resource_version: "5", resource_version_match: "Exact", ..all }, SMALL, 50, 10),
            (Listing { resource_version: "5", resource_version_match: "NotOlderThan", ..all }, SMALL, 0, 10),
            // Watches.
            (Listing { watch: true, resource_version: "5", ..all }, SMALL, 0, 1),
            (Listing { watch: true, ..all }, SMALL, 0, 10),
            (Listing { watch: true, resource_version: "5", send_initial_events: true, ..all }, SMALL, 0, 10),
        ];
        for (i, (listing, stats, max, seats)) in cases.into_iter().enumerate() {
            assert_eq!(listing.work(stats, max), Work::seats(seats), "case {i}");
        }
    }

    #[test]
    fn writes() {
        assert_eq!(write_work(9, 0), Work::ONE);
        assert_eq!(write_work(10, 0), Work { initial_seats: 1, final_seats: 1, extra: 5_000_000 });
        assert_eq!(write_work(95, 0), Work { initial_seats: 1, final_seats: 10, extra: 5_000_000 });
        // 100 seats for 5 ms are 10 seats for 50 ms, or 5 for 100.
        assert_eq!(write_work(1000, 0), Work { initial_seats: 1, final_seats: 10, extra: 50_000_000 });
        assert_eq!(write_work(1000, 5), Work { initial_seats: 1, final_seats: 5, extra: 100_000_000 });
        assert_eq!(write_work(1000, 5).max_seats(), 5);
    }
}
