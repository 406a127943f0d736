//! What `--version` and `/version` say.

use crate::options::CompatibilityOptions;
use kubelith_features::VersionInfo;
use kubelith_meta::text::Quoted;

/// The build's facts come from the environment of the compiler; a plain `cargo build` has none.
pub fn info() -> VersionInfo {
    VersionInfo::kubelith(
        option_env!("KUBELITH_GIT_COMMIT").unwrap_or("unknown"),
        option_env!("KUBELITH_GIT_TREE_STATE").unwrap_or("clean"),
        option_env!("KUBELITH_BUILD_DATE").unwrap_or("1970-01-01T00:00:00Z"),
    )
}

/// As [`info`], of a server that behaves as another release.
pub fn emulating(options: &CompatibilityOptions) -> VersionInfo {
    VersionInfo {
        emulation_major: options.emulation.major.to_string(),
        emulation_minor: options.emulation.minor.to_string(),
        min_compatibility_minor: options.min_compatibility.minor.to_string(),
        ..info()
    }
}

/// The text for a value of `--version`; `None` if it is not asked for.
pub fn asked_for(value: &str) -> Option<String> {
    match value {
        "true" => Some(format!("Kubernetes {}", info().git_version)),
        "raw" => Some(raw(&info())),
        _ => None,
    }
}

/// As Go shows a struct.
fn raw(info: &VersionInfo) -> String {
    let fields = [
        ("Major", &info.major),
        ("Minor", &info.minor),
        ("EmulationMajor", &info.emulation_major),
        ("EmulationMinor", &info.emulation_minor),
        ("MinCompatibilityMajor", &info.major),
        ("MinCompatibilityMinor", &info.min_compatibility_minor),
        ("GitVersion", &info.git_version),
        ("GitCommit", &info.git_commit),
        ("GitTreeState", &info.git_tree_state),
        ("BuildDate", &info.build_date),
        ("Compiler", &info.compiler),
        ("Platform", &info.platform),
    ];
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{}", Quoted(value))).collect();
    format!("version.Info{{{}}}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert!(asked_for("true").unwrap().starts_with("Kubernetes v1.36."));
        let raw = asked_for("raw").unwrap();
        assert!(raw.starts_with("version.Info{Major:\"1\", Minor:\"36\", EmulationMajor:\"1\","), "{raw}");
        assert_eq!(asked_for("false"), None);
    }
}
