//! Release notes: what CHANGELOG.md says of a version.

/// The section of a version, without its heading.
pub fn of(changelog: &str, version: &str) -> Result<String, String> {
    let heading = format!("## {version}");
    let is_heading = |line: &str| line.starts_with("## ");
    let is_wanted =
        |line: &&str| line.strip_prefix(&heading).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    let mut lines = changelog.lines().skip_while(|line| !is_wanted(line));
    lines.next().ok_or_else(|| format!("CHANGELOG.md has no section {heading:?}"))?;
    let section: Vec<&str> = lines.take_while(|line| !is_heading(line)).collect();
    Ok(format!("{}\n", section.join("\n").trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::release::{Machine, Release};
    use crate::run::root;

    #[test]
    fn a_section_is_cut_out() {
        let text =
            "# Changelog\n\n## Unreleased\n\n- c\n\n## 0.2.0 – 2026-11-17\n\n### Added\n\n- b\n\n## 0.1.0\n\n- a\n";
        assert_eq!(of(text, "0.2.0").unwrap(), "### Added\n\n- b\n");
        assert_eq!(of(text, "0.1.0").unwrap(), "- a\n");
        assert_eq!(of(text, "0.2").unwrap_err(), "CHANGELOG.md has no section \"## 0.2\"");
    }

    /// A version that is cut has its notes.
    #[test]
    fn this_version_has_notes() {
        let release = Release::new(Machine::of("x86_64-unknown-linux-gnu").unwrap()).unwrap();
        let changelog = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
        assert!(of(&changelog, &release.version).unwrap().contains("### Added"));
    }
}
