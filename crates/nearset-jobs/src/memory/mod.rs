//! Memory of a run: how much it may take, which is what the machine has left and what its group of processes is allowed; and in which pages.
//!
//! Where neither is told, as on systems other than Linux, there is no limit that could be known.

#[allow(unsafe_code)]
mod huge_pages;

use std::fs;
use std::path::{Path, PathBuf};

pub use huge_pages::HugePages;

/// Bytes that this process may still take, if that can be known.
pub fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    of_groups(Path::new("/sys/fs/cgroup"), &groups).into_iter().chain(machine).min()
}

fn of_machine(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(number(line.trim().strip_suffix("kB")?)? * 1024)
}

/// What the control groups of a process leave, theirs and those around them.
fn of_groups(root: &Path, groups: &str) -> Option<u64> {
    let in_group = |line: &str| {
        // Number, controllers, path; the second version has one line without controllers.
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        if controllers.is_empty() {
            return lowest(root, path, |folder| {
                left(folder, "memory.max", "memory.current", &["inactive_file", "active_file", "slab_reclaimable"])
            });
        }
        let is_memory = controllers.split(',').any(|controller| controller == "memory");
        is_memory.then_some(())?;
        lowest(&root.join("memory"), path, |folder| {
            left(
                folder,
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                &["total_inactive_file", "total_active_file"],
            )
        })
    };
    groups.lines().filter_map(in_group).min()
}

/// The lowest of what a group and all groups around it leave. Within a container only the outermost may be seen, at the root.
fn lowest(root: &Path, path: &str, left: impl Fn(PathBuf) -> Option<u64>) -> Option<u64> {
    Path::new(path).ancestors().filter_map(|group| left(root.join(group))).min()
}

/// What a group leaves. Pages of files count as free: they can be read again.
fn left(folder: PathBuf, limit: &str, used: &str, reclaimable: &[&str]) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let (limit, used) = (number(&read(limit)?)?, number(&read(used)?)?);
    let stat = read("memory.stat").unwrap_or_default();
    let of =
        |line: &str| line.split_once(' ').filter(|(name, _)| reclaimable.contains(name)).and_then(|(_, n)| number(n));
    let reclaimed: u64 = stat.lines().filter_map(of).sum();
    Some(limit.saturating_sub(used.saturating_sub(reclaimed)))
}

/// A number; `max` is none.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/memory.max", "1000\n");
        write("a/memory.current", "400\n");
        write("a/memory.stat", "anon 100\ninactive_file 150\nactive_file 100\n");
        write("a/b/memory.max", "max\n");
        write("a/b/memory.current", "300\n");
        assert_eq!(of_groups(root.path(), "0::/a/b\n"), Some(850));
        write("a/b/memory.max", "500\n");
        assert_eq!(of_groups(root.path(), "0::/a/b\n"), Some(200));
        // The first version, where every controller has groups of its own.
        write("memory/c/memory.limit_in_bytes", "700\n");
        write("memory/c/memory.usage_in_bytes", "100\n");
        assert_eq!(of_groups(root.path(), "5:cpu,cpuacct:/x\n4:memory:/c\n"), Some(600));
        assert_eq!(of_groups(root.path(), ""), None);
        assert_eq!(of_machine("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(of_machine(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_some() {
        let found = available().unwrap();
        assert!(found < 1 << 50, "{found}");
    }
}
