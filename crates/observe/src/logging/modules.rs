//! `--vmodule`: levels for some files, by patterns as klog has them.

/// Patterns with their levels; the first that matches a file counts.
#[derive(Debug, Default)]
pub struct Modules(Vec<(String, u8)>);

impl Modules {
    pub fn new(modules: Vec<(String, u8)>) -> Modules {
        Modules(modules)
    }

    /// The level for a source file; 0 if no pattern matches it. A pattern with a slash is for the path, another one for
    /// the last part of it; neither has the `.rs`.
    pub fn level(&self, file: &str) -> u8 {
        if self.0.is_empty() {
            return 0;
        }
        let path = file.strip_suffix(".rs").unwrap_or(file);
        let name = path.rsplit('/').next().unwrap_or(path);
        let subject = |pattern: &str| if pattern.contains('/') { path } else { name };
        self.0.iter().find(|(pattern, _)| matches(pattern.as_bytes(), subject(pattern).as_bytes())).map_or(0, |m| m.1)
    }

    pub fn highest(&self) -> u8 {
        self.0.iter().map(|(_, level)| *level).max().unwrap_or(0)
    }
}

/// `*` is any run of characters, `?` any one. Goes back to the last `*` only, so the time is bounded by the product of
/// the lengths.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut back) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star, from)) = back else { return false };
                back = Some((star, from + 1));
                (p, t) = (star + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_get_the_level_of_the_first_pattern_that_matches() {
        let modules =
            Modules::new([("feed", 6), ("h*b", 4), ("*/cache/*", 3), ("f?e?", 9)].map(|(p, l)| (p.into(), l)).into());
        for (file, level) in [
            ("crates/store/src/cache/feed.rs", 6),
            ("crates/store/src/cache/hub.rs", 4),
            ("crates/store/src/cache/load.rs", 3),
            ("crates/server/src/chain.rs", 0),
            ("feel.rs", 9),
            ("feeds.rs", 0),
            ("", 0),
        ] {
            assert_eq!(modules.level(file), level, "{file}");
        }
        assert_eq!(modules.highest(), 9);
        assert!(matches(b"a*b*c", b"a-b-b-c") && !matches(b"a*b", b"a-b-c") && matches(b"**", b""));
    }
}
