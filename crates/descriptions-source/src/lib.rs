//! Where cargo unpacked `k8s-openapi`, a library whose sources carry the descriptions of the built-in APIs.
//!
//! Cargo does not tell where the sources of a package are that it does not compile, so the places are looked at in which it puts
//! them.

use std::path::{Path, PathBuf};

/// The one that `Cargo.toml` of the workspace names.
const NAME: &str = "k8s-openapi";
const VERSION: &str = "0.29.0";

/// Names the folder, where it is in none of the usual places.
pub const OVERRIDE: &str = "KUBELITH_K8S_OPENAPI";

/// The folder of the library; else what can be done about it.
pub fn folder() -> Result<PathBuf, String> {
    if let Some(given) = std::env::var_os(OVERRIDE) {
        return Ok(given.into());
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    find(home().as_deref(), workspace).ok_or_else(|| {
        format!("the sources of {NAME} {VERSION} are not where cargo puts them: name their folder in {OVERRIDE}")
    })
}

/// Cargo's own folder.
fn home() -> Option<PathBuf> {
    let given = std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty());
    given.map(PathBuf::from).or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
}

/// Below the folder of a registry, or where `cargo vendor` copies dependencies to.
fn find(home: Option<&Path>, workspace: Option<&Path>) -> Option<PathBuf> {
    let versioned = format!("{NAME}-{VERSION}");
    let vendored = workspace.map(|folder| folder.join("vendor"));
    let vendored = vendored.into_iter().flat_map(|folder| [folder.join(NAME), folder.join(&versioned)]);
    let registries = home.and_then(|home| std::fs::read_dir(home.join("registry/src")).ok());
    let registries = registries.into_iter().flatten().flatten().map(|entry| entry.path().join(&versioned));
    vendored.chain(registries).find(|folder| folder.join("src").is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_where_cargo_puts_it() {
        let found = folder().unwrap();
        let manifest = std::fs::read_to_string(found.join("Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("version = \"{VERSION}\"")), "{}", found.display());
    }

    #[test]
    fn a_vendored_one_is_preferred() {
        let top = std::env::temp_dir().join(format!("kubelith-source-{}", std::process::id()));
        let (home, workspace) = (top.join("home"), top.join("workspace"));
        let make = |folder: &Path| std::fs::create_dir_all(folder.join("src")).unwrap();
        assert_eq!(find(Some(&home), Some(&workspace)), None);
        let in_registry = home.join("registry/src/some-index/k8s-openapi-0.29.0");
        make(&in_registry);
        assert_eq!(find(Some(&home), Some(&workspace)), Some(in_registry));
        let vendored = workspace.join("vendor/k8s-openapi");
        make(&vendored);
        assert_eq!(find(Some(&home), Some(&workspace)), Some(vendored));
        std::fs::remove_dir_all(&top).unwrap();
    }
}
