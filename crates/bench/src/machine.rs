//! The machine that the figures were measured on, and the resources of this process and others.

use serde::Serialize;

/// The machine, as far as it can be determined.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    cores: usize,
    memory_mib: Option<u64>,
    kernel: Option<String>,
}

impl Machine {
    pub(crate) fn detect() -> Self {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: field_kib(&meminfo, "MemTotal:").map(|kib| kib / 1_024),
            kernel: kernel.map(|text| text.trim().to_owned()),
        }
    }
}

/// Returns the peak memory of this process, in KiB.
pub(crate) fn peak_kib() -> Option<u64> {
    field_kib(&std::fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Returns the memory it uses now, in KiB.
pub(crate) fn used_kib() -> Option<u64> {
    field_kib(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Returns the memory that another process uses now, in KiB.
pub(crate) fn used_kib_of(process: u32) -> Option<u64> {
    field_kib(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmRSS:")
}

fn field_kib(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(field))?.split_whitespace().next()?.parse().ok()
}

/// Returns the CPU time of this process so far, in seconds: user and system.
pub(crate) fn cpu_seconds() -> Option<f64> {
    cpu_in(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Returns the CPU time of another process.
pub(crate) fn cpu_seconds_of(process: u32) -> Option<f64> {
    cpu_in(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn cpu_in(stat: &str) -> Option<f64> {
    // The name in parentheses may contain anything, so the fields are read after the last
    // parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) as f64 / TICKS_PER_S)
}

/// Linux reports CPU time to processes in hundredths of a second, whatever its own timer does.
const TICKS_PER_S: f64 = 100.0;

/// Returns the bytes of all files in a directory.
pub(crate) fn dir_bytes(dir: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}
