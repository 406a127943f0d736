//! What the kernel says of this process, read when it is asked for.

use kubelith_meta::time::unix_time;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Counter, Gauge, IntGauge};
use std::time::Duration;

/// Kernel ticks per second, fixed by the kernel's interface to programs.
const TICKS: f64 = 100.0;
const PAGE: i64 = 4096;

pub struct ProcessMetrics {
    cpu: Counter,
    open_fds: IntGauge,
    max_fds: IntGauge,
    resident: IntGauge,
    virtual_memory: IntGauge,
    virtual_memory_max: Gauge,
    received: Counter,
    sent: Counter,
    start: Gauge,
}

impl ProcessMetrics {
    pub fn new(started: Duration) -> ProcessMetrics {
        let gauge = |name, help| IntGauge::new(name, help).expect("a well-formed name");
        let counter = |name, help| Counter::new(name, help).expect("a well-formed name");
        let start = Gauge::new("process_start_time_seconds", "Start of the process, in seconds since 1970.");
        let start = start.expect("a well-formed name");
        start.set(started.as_secs_f64());
        ProcessMetrics {
            cpu: counter("process_cpu_seconds_total", "Processor time used, in seconds."),
            virtual_memory_max: Gauge::new("process_virtual_memory_max_bytes", "Limit of virtual memory, in bytes.")
                .expect("a well-formed name"),
            received: counter("process_network_receive_bytes_total", "Bytes received over the network."),
            sent: counter("process_network_transmit_bytes_total", "Bytes sent over the network."),
            open_fds: gauge("process_open_fds", "Open file descriptors."),
            max_fds: gauge("process_max_fds", "Limit of open file descriptors."),
            resident: gauge("process_resident_memory_bytes", "Resident memory, in bytes."),
            virtual_memory: gauge("process_virtual_memory_bytes", "Virtual memory, in bytes."),
            start,
        }
    }

    fn refresh(&self) {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
        if let Some((pages, resident)) = sizes(&read("statm")) {
            self.virtual_memory.set(pages * PAGE);
            self.resident.set(resident * PAGE);
        }
        if let Some(seconds) = cpu_seconds(&read("stat")) {
            self.cpu.inc_by((seconds - self.cpu.get()).max(0.0));
        }
        if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
            self.open_fds.set(entries.count() as i64);
        }
        let limits = read("limits");
        if let Some(max) = limit(&limits, "Max open files") {
            self.max_fds.set(max as i64);
        }
        if let Some(max) = limit(&limits, "Max address space") {
            self.virtual_memory_max.set(max);
        }
        let (received, sent) = traffic(&read("net/dev"));
        self.received.inc_by((received - self.received.get()).max(0.0));
        self.sent.inc_by((sent - self.sent.get()).max(0.0));
    }

    fn all(&self) -> [&dyn Collector; 9] {
        [
            &self.cpu,
            &self.open_fds,
            &self.max_fds,
            &self.resident,
            &self.virtual_memory,
            &self.virtual_memory_max,
            &self.received,
            &self.sent,
            &self.start,
        ]
    }
}

impl Default for ProcessMetrics {
    fn default() -> ProcessMetrics {
        ProcessMetrics::new(unix_time())
    }
}

impl Collector for ProcessMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.all().into_iter().flat_map(|c| c.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.refresh();
        self.all().into_iter().flat_map(|c| c.collect()).collect()
    }
}

/// Total and resident pages.
fn sizes(statm: &str) -> Option<(i64, i64)> {
    let mut fields = statm.split_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

/// User and system time: fields 14 and 15, counted after the name, which may hold anything in its parentheses.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

/// A soft limit; the largest number there is if there is none.
fn limit(limits: &str, name: &str) -> Option<f64> {
    let line = limits.lines().find(|l| l.starts_with(name))?;
    match line[name.len()..].split_whitespace().next()? {
        "unlimited" => Some(u64::MAX as f64),
        number => number.parse().ok(),
    }
}

/// Bytes received and sent, over all interfaces.
fn traffic(dev: &str) -> (f64, f64) {
    let (mut received, mut sent) = (0.0, 0.0);
    for (_, numbers) in dev.lines().filter_map(|l| l.split_once(':')) {
        let numbers: Vec<f64> = numbers.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        received += numbers.first().unwrap_or(&0.0);
        sent += numbers.get(8).unwrap_or(&0.0);
    }
    (received, sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_files() {
        assert_eq!(sizes("100 20 3 4 0 5 0"), Some((100, 20)));
        assert_eq!(cpu_seconds("1 (a b) c) S 2 3 4 5 6 7 8 9 10 11 150 50 0 0"), Some(2.0));
        let limits =
            "Limit  Soft\nMax open files            1024   4096   files\nMax address space   unlimited unlimited";
        assert_eq!(limit(limits, "Max open files"), Some(1024.0));
        assert_eq!(limit(limits, "Max address space"), Some(u64::MAX as f64));
        let dev = "Inter-|\n face |bytes\n  lo: 10 1 0 0 0 0 0 0 20 1 0 0\neth0: 5 1 0 0 0 0 0 0 7 1 0 0";
        assert_eq!(traffic(dev), (15.0, 27.0));
    }
}
