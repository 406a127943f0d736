//! How much memory the system lets the process have.

use std::path::Path;

/// What is no limit: version 1 of cgroups says so with nearly the largest number.
const UNLIMITED: u64 = 1 << 60;

/// The memory that the cgroup of this process may use, if it is limited.
pub fn memory() -> Option<u64> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    memory_below(Path::new("/sys/fs/cgroup"), &membership)
}

/// The least limit of the group and those above it. In a container its own group is the root.
fn memory_below(root: &Path, membership: &str) -> Option<u64> {
    let groups = membership.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        match controllers {
            "" => Some((root.to_owned(), "memory.max", path)),
            _ if controllers.split(',').any(|c| c == "memory") => {
                Some((root.join("memory"), "memory.limit_in_bytes", path))
            }
            _ => None,
        }
    });
    let limits = groups.flat_map(|(base, file, path)| {
        let folder = base.join(path.trim_start_matches('/'));
        let above: Vec<_> = folder.ancestors().take_while(|f| f.starts_with(&base)).map(|f| f.join(file)).collect();
        above.into_iter().filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok())
    });
    limits.filter(|limit| *limit < UNLIMITED).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_cgroups() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(memory_below(root.path(), "0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(memory_below(root.path(), "0::/a/b\n"), None);
        write("a/memory.max", "1000\n");
        assert_eq!(memory_below(root.path(), "0::/a/b\n"), Some(1000));
        write("a/b/memory.max", "500\n");
        assert_eq!(memory_below(root.path(), "0::/a/b\n"), Some(500));
        // In a container: the path is one outside of it.
        write("memory.max", "700\n");
        assert_eq!(memory_below(root.path(), "0::/elsewhere\n"), Some(700));
        write("memory/x/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(memory_below(root.path(), "4:memory,cpu:/x\n"), None);
        write("memory/x/memory.limit_in_bytes", "300\n");
        assert_eq!(memory_below(root.path(), "4:memory,cpu:/x\n3:pids:/y\n"), Some(300));
    }
}
