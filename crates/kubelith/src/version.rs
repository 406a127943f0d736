//! What `--version` and `/version` say.

use crate::options::CompatibilityOptions;
use kubelith_server::routes::VersionInfo;

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
        "raw" => Some(format!("{:?}", info())),
        _ => None,
    }
}
