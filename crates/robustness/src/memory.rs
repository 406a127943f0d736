//! What a process has of the memory, as Linux counts it.

pub fn resident(pid: u32) -> Option<u64> {
    memory(pid, "VmRSS:")
}

/// What of it nobody but the process can give back.
pub fn anonymous(pid: u32) -> Option<u64> {
    memory(pid, "RssAnon:")
}

fn memory(pid: u32, which: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(which))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
