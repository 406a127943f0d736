//! Figures of a load, as a row of a table or a line of JSON, with the ratio to the server that is compared with.

use crate::loads::Load;
use crate::outcome::{Gathered, Outcome};
use crate::process::Usage;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

pub struct Row {
    load: Load,
    server: String,
    /// That were there, or created.
    objects: usize,
    operations: usize,
    failures: usize,
    per_second: f64,
    megabytes_per_second: f64,
    median: Duration,
    p99: Duration,
    /// Microseconds of the server's processors for each operation.
    cpu: f64,
    /// Megabytes sent for each second of the server's processors.
    megabytes_per_cpu_second: f64,
    resident: u64,
    /// Kilobytes by which it grew for each operation.
    grown: f64,
    note: String,
    crowd: Option<Gathered>,
}

impl Row {
    pub fn new(load: Load, server: &str, objects: usize, mut outcome: Outcome, usage: (Usage, Usage)) -> Row {
        let (before, after) = usage;
        outcome.latencies.sort_unstable();
        let operations = outcome.latencies.len();
        let seconds = outcome.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
        let megabytes = outcome.bytes as f64 / 1e6;
        Row {
            load,
            server: server.to_owned(),
            objects,
            operations,
            failures: outcome.failures,
            per_second: operations as f64 / seconds,
            megabytes_per_second: megabytes / seconds,
            median: at(&outcome.latencies, 0.5),
            p99: at(&outcome.latencies, 0.99),
            cpu: cpu * 1e6 / operations.max(1) as f64,
            megabytes_per_cpu_second: if cpu > 0.0 { megabytes / cpu } else { 0.0 },
            resident: after.resident,
            grown: (after.resident as f64 - before.resident as f64) / 1024.0 / operations.max(1) as f64,
            note: outcome.note,
            crowd: outcome.crowd,
        }
    }

    pub fn json(&self) -> Value {
        json!({
            "load": self.load.name(), "server": self.server, "objects": self.objects, "operations": self.operations, "failures": self.failures,
            "per_second": self.per_second, "megabytes_per_second": self.megabytes_per_second,
            "median_ms": millis(self.median), "p99_ms": millis(self.p99), "cpu_us": self.cpu,
            "megabytes_per_cpu_second": self.megabytes_per_cpu_second, "resident_bytes": self.resident,
            "grown_kilobytes": self.grown, "note": self.note,
            "watcher_bytes": self.crowd.map(|crowd| crowd.each(crowd.silent)),
            "watcher_bytes_after": self.crowd.map(|crowd| crowd.each(crowd.after)),
        })
    }
}

fn at(sorted: &[Duration], share: f64) -> Duration {
    let index = (sorted.len().saturating_sub(1)) as f64 * share;
    sorted.get(index as usize).copied().unwrap_or_default()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// One line for each load and server; the second server of a load also shows how much the first is better.
pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<13} {:<28} {:>8} {:>9} {:>7} {:>9} {:>8} {:>8} {:>9} {:>9} {:>7} {:>8}  ratio\n",
        "load",
        "server",
        "objects",
        "ops",
        "failed",
        "ops/s",
        "p50 ms",
        "p99 ms",
        "cpu us/op",
        "MB/cpu s",
        "RSS MB",
        "+KB/op"
    );
    let mut first: Option<&Row> = None;
    for row in rows {
        let ratio = match first {
            Some(own) if own.load == row.load && own.objects == row.objects && own.cpu > 0.0 => {
                format!(
                    "{:.1}x less cpu, {:.1}x the ops/s",
                    row.cpu / own.cpu,
                    own.per_second / row.per_second.max(f64::MIN_POSITIVE)
                )
            }
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "{:<13} {:<28} {:>8} {:>9} {:>7} {:>9.0} {:>8.2} {:>8.2} {:>9.1} {:>9.1} {:>7} {:>8.1}  {ratio}{}",
            row.load.name(),
            row.server,
            row.objects,
            row.operations,
            row.failures,
            row.per_second,
            millis(row.median),
            millis(row.p99),
            row.cpu,
            row.megabytes_per_cpu_second,
            row.resident >> 20,
            row.grown,
            row.note,
        );
        if first.is_none_or(|own| own.load != row.load || own.objects != row.objects) {
            first = Some(row);
        }
    }
    for (row, crowd) in rows.iter().filter_map(|row| Some((row, row.crowd?))) {
        let _ = writeln!(
            text,
            "{} of {}: resident memory for each of {} watchers {:.1} KB before the first write, {:.1} KB after the last",
            row.load.name(),
            row.server,
            crowd.watchers,
            crowd.each(crowd.silent) as f64 / 1024.0,
            crowd.each(crowd.after) as f64 / 1024.0,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(server: &str, operations: u64, cpu: u64) -> Row {
        let latencies = (1..=operations).map(Duration::from_millis).collect();
        let outcome = Outcome { latencies, bytes: 1_000_000, elapsed: Duration::from_secs(1), ..Outcome::default() };
        let after = Usage { cpu: Duration::from_millis(cpu), resident: 5 << 20 };
        Row::new(Load::Get, server, 100, outcome, (Usage::default(), after))
    }

    #[test]
    fn figures_and_ratio() {
        let rows = [row("own", 100, 10), row("other", 50, 20)];
        assert_eq!((rows[0].median, rows[0].p99), (Duration::from_millis(50), Duration::from_millis(99)));
        assert_eq!((rows[0].cpu, rows[0].megabytes_per_cpu_second), (100.0, 100.0));
        let text = table(&rows);
        assert!(text.contains("4.0x less cpu, 2.0x the ops/s"), "{text}");
    }

    #[test]
    fn memory_of_watchers() {
        let mut row = row("own", 1, 1);
        row.crowd = Some(Gathered { watchers: 10, without: 1 << 20, silent: (1 << 20) + 10 * 2048, after: 1 });
        let text = table(&[row]);
        assert!(text.contains("each of 10 watchers 2.0 KB before the first write, 0.0 KB after the last"), "{text}");
    }
}
