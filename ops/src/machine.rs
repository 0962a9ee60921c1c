//! The memory and the file descriptors that this process may use.
//!
//! Limits derive their defaults from these. What is *not* here: the limits themselves.

use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Where the kernel describes control groups (cgroups(7)).
const CGROUPS: &str = "/sys/fs/cgroup";

/// Bytes of memory that this process may use: the smallest limit of its control groups, or the machine's memory. `None` if
/// neither can be read.
pub fn memory() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let own = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let total = read(Path::new("/proc/meminfo")).and_then(|text| total_of(&text));
    let limits = limit_files(&own).into_iter().filter_map(|file| read(Path::new(&file))?.trim().parse::<u64>().ok());
    limits.chain(total).min()
}

/// Raises the soft limit of open files to the hard limit, as Go programs do when they start, and returns it. `None`:
/// unlimited.
pub fn open_files() -> Option<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this is refused, the old limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile).current
}

/// The files with the limits of this process's control group and its ancestors, from the content of `/proc/self/cgroup`.
/// In a container, the process's own group is often the visible root.
fn limit_files(own: &str) -> Vec<String> {
    let mut files = vec![format!("{CGROUPS}/memory.max"), format!("{CGROUPS}/memory/memory.limit_in_bytes")];
    let unified = own.lines().find_map(|line| line.strip_prefix("0::/"));
    let mut group = unified.unwrap_or_default();
    while !group.is_empty() {
        files.push(format!("{CGROUPS}/{group}/memory.max"));
        group = group.rsplit_once('/').map_or("", |(above, _)| above);
    }
    files
}

/// `MemTotal` of `/proc/meminfo`, which is in KiB.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_ancestors_are_read() {
        let files = limit_files("0::/system.slice/atoll.service\n");
        assert!(files.contains(&"/sys/fs/cgroup/system.slice/atoll.service/memory.max".to_owned()));
        assert!(files.contains(&"/sys/fs/cgroup/system.slice/memory.max".to_owned()));
        assert_eq!(limit_files("0::/\n").len(), limit_files("").len());
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        assert_eq!(total_of("MemTotal:       24633684 kB\nMemFree:  1 kB\n"), Some(24_633_684 * 1024));
        assert_eq!(total_of("MemFree: 1 kB"), None);
        assert!(memory().is_some_and(|bytes| bytes > 64 << 20));
        assert!(open_files().is_none_or(|files| files >= 256));
    }
}
