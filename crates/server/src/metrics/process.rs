//! What the kernel says of this process, read when it is asked for.

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Counter, Gauge, IntGauge};
use std::time::{SystemTime, UNIX_EPOCH};

/// Kernel ticks per second, fixed by the kernel's interface to programs.
const TICKS: f64 = 100.0;
const PAGE: i64 = 4096;

pub struct ProcessMetrics {
    cpu: Counter,
    open_fds: IntGauge,
    max_fds: IntGauge,
    resident: IntGauge,
    virtual_memory: IntGauge,
    start: Gauge,
}

impl ProcessMetrics {
    pub fn new() -> ProcessMetrics {
        let gauge = |name, help| IntGauge::new(name, help).expect("a well-formed name");
        let start = Gauge::new("process_start_time_seconds", "Start of the process, in seconds since 1970.");
        let start = start.expect("a well-formed name");
        start.set(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64());
        ProcessMetrics {
            cpu: Counter::new("process_cpu_seconds_total", "Processor time used, in seconds.")
                .expect("a well-formed name"),
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
        if let Some(max) = max_open_files(&read("limits")) {
            self.max_fds.set(max);
        }
    }

    fn all(&self) -> [&dyn Collector; 6] {
        [&self.cpu, &self.open_fds, &self.max_fds, &self.resident, &self.virtual_memory, &self.start]
    }
}

impl Default for ProcessMetrics {
    fn default() -> ProcessMetrics {
        ProcessMetrics::new()
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

fn max_open_files(limits: &str) -> Option<i64> {
    let line = limits.lines().find(|l| l.starts_with("Max open files"))?;
    line["Max open files".len()..].split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_files() {
        assert_eq!(sizes("100 20 3 4 0 5 0"), Some((100, 20)));
        assert_eq!(cpu_seconds("1 (a b) c) S 2 3 4 5 6 7 8 9 10 11 150 50 0 0"), Some(2.0));
        assert_eq!(max_open_files("Limit  Soft\nMax open files            1024   4096   files"), Some(1024));
    }
}
