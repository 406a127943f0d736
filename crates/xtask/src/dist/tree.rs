//! Files to pack, and the tar archive of them: the same files give the same bytes, whoever packs them, when and where.

use std::collections::BTreeMap;

/// Blocks of an archive.
const BLOCK: usize = 512;

/// Who a file belongs to, by number: names depend on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner(pub u32);

pub const ROOT: Owner = Owner(0);

enum Content {
    Folder,
    File(Vec<u8>),
    /// Where a symbolic link leads.
    Link(String),
}

struct Node {
    mode: u32,
    owner: Owner,
    content: Content,
}

/// Files by their paths, without a slash in front; folders above them are there by themselves.
#[derive(Default)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
}

impl Tree {
    pub fn file(&mut self, path: &str, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.put(path, mode, ROOT, Content::File(bytes.into()));
    }

    pub fn folder(&mut self, path: &str, mode: u32, owner: Owner) {
        self.put(path, mode, owner, Content::Folder);
    }

    pub fn link(&mut self, path: &str, to: &str) {
        self.put(path, 0o777, ROOT, Content::Link(to.to_owned()));
    }

    fn put(&mut self, path: &str, mode: u32, owner: Owner, content: Content) {
        for (at, _) in path.match_indices('/') {
            let above = Node { mode: 0o755, owner: ROOT, content: Content::Folder };
            self.nodes.entry(path[..at].to_owned()).or_insert(above);
        }
        self.nodes.insert(path.to_owned(), Node { mode, owner, content });
    }

    /// Files, with their contents.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.nodes.iter().filter_map(|(path, node)| match &node.content {
            Content::File(bytes) => Some((path.as_str(), bytes.as_slice())),
            Content::Folder | Content::Link(_) => None,
        })
    }

    /// The archive (ustar), in the order of the paths; `before` stands in front of each, `made` is the time of all of them.
    pub fn tar(&self, before: &str, made: u64) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        for (path, node) in &self.nodes {
            let (path, kind, target, bytes): (String, u8, &str, &[u8]) = match &node.content {
                Content::Folder => (format!("{before}{path}/"), b'5', "", &[]),
                Content::File(bytes) => (format!("{before}{path}"), b'0', "", bytes),
                Content::Link(to) => (format!("{before}{path}"), b'2', to, &[]),
            };
            out.extend(header(&path, node, kind, target, bytes.len(), made)?);
            out.extend_from_slice(bytes);
            out.resize(out.len().next_multiple_of(BLOCK), 0);
        }
        out.resize(out.len() + 2 * BLOCK, 0);
        Ok(out)
    }
}

fn header(path: &str, node: &Node, kind: u8, target: &str, size: usize, made: u64) -> Result<[u8; BLOCK], String> {
    let mut block = [0u8; BLOCK];
    let (prefix, name) = split(path).ok_or_else(|| format!("{path}: too long for an archive"))?;
    if target.len() > 100 {
        return Err(format!("{target}: too long for an archive"));
    }
    let mut put = |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, &format!("{:07o}", node.mode));
    put(108, &format!("{:07o}", node.owner.0));
    put(116, &format!("{:07o}", node.owner.0));
    put(124, &format!("{size:011o}"));
    put(136, &format!("{made:011o}"));
    // The sum is made with spaces where it goes.
    put(148, "        ");
    put(157, target);
    put(257, "ustar\0");
    put(263, "00");
    put(345, prefix);
    block[156] = kind;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// A path of more than 100 bytes is parted at a slash.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= 100 {
        return Some(("", path));
    }
    let at = path.match_indices('/').map(|(at, _)| at).find(|at| path.len() - at - 1 <= 100 && *at <= 155)?;
    Some((&path[..at], &path[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{capture, command};

    #[test]
    fn the_archive_is_what_tar_reads() {
        let mut tree = Tree::default();
        tree.file("b/program", 0o755, "#!/bin/sh\n");
        tree.link("b/other", "program");
        tree.folder("var/lib", 0o700, Owner(65532));
        tree.file(&format!("{}/{}", "d".repeat(90), "f".repeat(90)), 0o644, vec![7; 1000]);
        let bytes = tree.tar("./", 1_700_000_000).unwrap();
        assert_eq!(bytes, tree.tar("./", 1_700_000_000).unwrap());
        let file = std::env::temp_dir().join(format!("kubelith-tree-{}.tar", std::process::id()));
        std::fs::write(&file, bytes).unwrap();
        let listing = capture(command("tar").env("TZ", "UTC").args(["-tv", "--numeric-owner", "-f"]).arg(&file));
        std::fs::remove_file(&file).unwrap();
        let words: Vec<String> = listing
            .unwrap()
            .lines()
            .map(|line| {
                line.split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
                    .replace(&"d".repeat(90), "D")
                    .replace(&"f".repeat(90), "F")
            })
            .collect();
        assert_eq!(
            words,
            [
                "drwxr-xr-x 0/0 0 2023-11-14 22:13 ./b/",
                "lrwxrwxrwx 0/0 0 2023-11-14 22:13 ./b/other -> program",
                "-rwxr-xr-x 0/0 10 2023-11-14 22:13 ./b/program",
                "drwxr-xr-x 0/0 0 2023-11-14 22:13 ./D/",
                "-rw-r--r-- 0/0 1000 2023-11-14 22:13 ./D/F",
                "drwxr-xr-x 0/0 0 2023-11-14 22:13 ./var/",
                "drwx------ 65532/65532 0 2023-11-14 22:13 ./var/lib/",
            ]
        );
        tree.file(&"x".repeat(300), 0o644, "");
        assert!(tree.tar("", 0).is_err());
    }
}
