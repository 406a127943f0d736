//! What `--version`, `kubelith version` and `/version` say.

use crate::options::CompatibilityOptions;
use kubelith_features::VersionInfo;
use kubelith_meta::text::Quoted;
use kubelith_meta::time::Time;

/// The release of this project, apart from that of the API.
pub const KUBELITH: &str = env!("CARGO_PKG_VERSION");

/// The build's facts come from its script (`build.rs`).
pub fn info() -> VersionInfo {
    VersionInfo::kubelith(env!("KUBELITH_GIT_COMMIT"), env!("KUBELITH_GIT_TREE_STATE"), &build_date())
}

fn build_date() -> String {
    match env!("KUBELITH_BUILD_DATE") {
        "" => Time::from_unix(env!("KUBELITH_BUILD_SECONDS").parse().unwrap_or_default()).rfc3339(),
        given => given.to_owned(),
    }
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

pub const HELP: &str = "\
Shows which release this is, of which commit, and which release of Kubernetes it serves.

Usage:
  kubelith version [-o text|json]

Flags:
  -o, --output FORMAT    text or json (default text). The JSON has what the path /version has.
  -h, --help             Shows this help.

Examples:
  kubelith version
  kubelith version -o json
";

/// Runs the words behind `version`.
pub fn command(words: &[String]) -> Result<String, String> {
    let words: Vec<&str> = words.iter().flat_map(|word| word.split('=')).collect();
    match words[..] {
        ["-h" | "--help"] => Ok(HELP.to_owned()),
        [] | ["-o" | "--output", "text"] => Ok(text(&info())),
        ["-o" | "--output", "json"] => Ok(json(&info())),
        ["-o" | "--output", other] => Err(format!("--output: {other:?} is neither text nor json")),
        ["-o" | "--output"] => Err("flag needs an argument: --output".to_owned()),
        _ => Err(format!("unknown words: version {}\n\n{HELP}", words.join(" "))),
    }
}

fn text(info: &VersionInfo) -> String {
    let changed = if info.git_tree_state == "dirty" { ", with changes" } else { "" };
    format!(
        "Kubelith {KUBELITH}\nKubernetes {}\ncommit {}{changed}, {}\n{}\n",
        info.git_version, info.git_commit, info.build_date, info.platform
    )
}

/// What `/version` has, after our own release.
fn json(info: &VersionInfo) -> String {
    let members = info.to_json();
    let members = members.strip_prefix('{').unwrap_or(&members);
    format!("{{\n  \"kubelithVersion\": \"{KUBELITH}\",{members}\n")
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
        let run = |line: &str| command(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(run("").unwrap().starts_with(&format!("Kubelith {KUBELITH}\nKubernetes v1.36.")));
        let json = run("-o json").unwrap();
        assert!(json.contains(&format!("\"gitCommit\": \"{}\"", info().git_commit)), "{json}");
        let read = kubelith_codec::yaml::read(json.as_bytes()).unwrap().value;
        assert_eq!(read.str_at(&["kubelithVersion"]), KUBELITH);
        assert_eq!(run("--output=yaml").unwrap_err(), "--output: \"yaml\" is neither text nor json");
    }

    /// Of a commit, whenever there is one: 40 digits, and the date of the commit.
    #[test]
    fn the_build_knows_its_commit() {
        let info = info();
        let is_commit = info.git_commit.len() >= 40 && info.git_commit.bytes().all(|b| b.is_ascii_hexdigit());
        assert!(is_commit || info.git_commit == "unknown", "{}", info.git_commit);
        assert_eq!(info.build_date.len(), "1970-01-01T00:00:00Z".len());
        assert_eq!(info.build_date.starts_with("1970-"), info.git_commit == "unknown", "{}", info.build_date);
    }
}
