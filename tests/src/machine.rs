//! What the machine holds for a process.

use std::fs;
use std::path::PathBuf;

/// Memory of a process that is in use, in bytes.
///
/// # Panics
/// If there is no such process.
pub fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse::<u64>().unwrap() * 1024
}

/// Files, sockets and the like that a process has open.
///
/// # Panics
/// If there is no such process.
pub fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Time of a processor that a process has had, in clock ticks (a hundredth of a second).
///
/// # Panics
/// If there is no such process.
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name of the program may have anything in it; it stands in brackets.
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// What a process has open, by name.
///
/// # Panics
/// If there is no such process.
pub fn open_files(pid: u32) -> Vec<PathBuf> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    // One may be closed at that moment.
    files
        .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
        .collect()
}
