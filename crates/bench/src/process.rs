//! What processes have used: processor time and memory, from /proc.

use crate::Result;
use std::time::Duration;

#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub cpu: Duration,
    /// Resident memory now.
    pub resident: u64,
}

/// Clock ticks a second in /proc; Linux has had this value on every platform for decades.
const TICKS: u64 = 100;

/// The sum over these processes.
pub fn usage(pids: &[u32]) -> Result<Usage> {
    let mut total = Usage::default();
    for pid in pids {
        let stat =
            std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|error| format!("process {pid}: {error}"))?;
        let ticks = ticks(&stat).ok_or_else(|| format!("/proc/{pid}/stat: {stat:?}"))?;
        total.cpu += Duration::from_millis(ticks * 1000 / TICKS);
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        total.resident += resident(&status).ok_or_else(|| format!("/proc/{pid}/status has no VmRSS"))?;
    }
    Ok(total)
}

/// The most memory that a process had at any time.
pub fn peak(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(kilobytes(&status, "VmHWM:").ok_or_else(|| format!("/proc/{pid}/status has no VmHWM"))?)
}

/// User and system time are the 14th and 15th fields; the second, a name in parentheses, may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn resident(status: &str) -> Option<u64> {
    kilobytes(status, "VmRSS:")
}

fn kilobytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_proc() {
        assert_eq!(ticks("7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 25 17 0 0 20 0 4 0 99"), Some(42));
        assert_eq!(resident("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2 << 20));
        assert!(usage(&[std::process::id()]).unwrap().resident > 0);
        assert!(usage(&[0]).is_err());
    }
}
