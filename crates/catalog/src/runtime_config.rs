//! `--runtime-config`: which of the known APIs are served.

use crate::api::Serve;
use crate::catalog::Catalog;
use kubelith_meta::{GroupVersion, GroupVersionResource};
use std::collections::BTreeMap;

/// Switches for many versions at once, in the order in which they are applied.
const MATCHERS: [(&str, Stability); 4] = [
    ("api/all", Stability::Any),
    ("api/ga", Stability::Stable),
    ("api/beta", Stability::Beta),
    ("api/alpha", Stability::Alpha),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stability {
    Any,
    Stable,
    Beta,
    Alpha,
}

/// Parsed and checked `--runtime-config`. What it says about a resource wins over what it says about its version,
/// and that over `api/all` and its like.
#[derive(Debug, Clone, Default)]
pub struct RuntimeConfig {
    matchers: Vec<(Stability, bool)>,
    versions: Vec<(GroupVersion, bool)>,
    resources: Vec<(GroupVersionResource, bool)>,
}

impl RuntimeConfig {
    /// Reads the flag's pairs. The errors are those with which the reference refuses to start.
    pub fn parse(catalog: &Catalog, pairs: &BTreeMap<String, String>) -> Result<RuntimeConfig, String> {
        if pairs.len() == 1 && pairs.get("api/all").is_some_and(|v| v == "false") {
            return Err("invalid runtime-config with only api/all=false".to_owned());
        }
        let is_matcher = |key: &str| MATCHERS.iter().any(|(name, _)| *name == key);
        let mut keys = Vec::new();
        let mut unknown = Vec::new();
        for (key, value) in pairs.iter().filter(|(key, _)| !is_matcher(key)) {
            let parts: Vec<&str> = key.split('/').collect();
            let (group, version, resource) = match parts[..] {
                [group, version] => (group, version, None),
                [group, version, resource] => (group, version, Some(resource)),
                _ => return Err(format!("runtime-config invalid key {key}")),
            };
            let gv = GroupVersion::new(group, version);
            if !catalog.apis().iter().any(|a| a.gv.group == gv.group) {
                unknown.push(gv.to_string());
            }
            keys.push((key, gv, resource, value));
        }
        if !unknown.is_empty() {
            unknown.sort();
            unknown.dedup();
            return Err(format!("unknown api groups {}", unknown.join(",")));
        }
        let mut config = RuntimeConfig::default();
        for (name, stability) in MATCHERS {
            match pairs.get(name).map(String::as_str) {
                Some("true") => config.matchers.push((stability, true)),
                Some("false") => config.matchers.push((stability, false)),
                Some(value) => return Err(format!("invalid value {name}={value}")),
                None => {}
            }
        }
        for (key, gv, resource, value) in keys {
            if catalog.api(&gv).is_none() {
                return Err(format!("group version {gv} that has not been registered"));
            }
            let on = parse_bool(value).ok_or_else(|| {
                format!("invalid value of {key}: {value}, err: strconv.ParseBool: parsing {value:?}: invalid syntax")
            })?;
            match resource {
                None => config.versions.push((gv, on)),
                Some(name) if name.to_lowercase() != name => {
                    return Err(format!(
                        "invalid key {key}: group/version/resource and resource is always lowercase plural, not {name:?}"
                    ));
                }
                Some(name) => config.resources.push((gv.with_resource(name), on)),
            }
        }
        Ok(config)
    }

    fn serves_version(&self, gv: &GroupVersion, by_default: bool) -> bool {
        if let Some((_, on)) = self.versions.iter().find(|(v, _)| v == gv) {
            return *on;
        }
        let stability = stability(&gv.version);
        let matched = self.matchers.iter().rev().find(|(s, _)| *s == Stability::Any || Some(*s) == stability);
        matched.map_or(by_default, |(_, on)| *on)
    }
}

impl Catalog {
    /// Whether a resource is served in a version, by `--runtime-config` and by the feature gates that are on.
    pub fn serves(&self, config: &RuntimeConfig, gates: &dyn Fn(&str) -> bool, gvr: &GroupVersionResource) -> bool {
        let gv = gvr.group_version();
        let Some(api) = self.api(&gv).filter(|a| a.serve != Serve::Never) else { return false };
        let needs = self.gates().iter().find(|g| g.version == gv.version && g.resource == gvr.group_resource());
        if needs.is_some_and(|g| !gates(&g.gate)) {
            return false;
        }
        match config.resources.iter().find(|(r, _)| r == gvr) {
            Some((_, on)) => *on,
            None => config.serves_version(&gv, api.serve == Serve::Default),
        }
    }
}

/// `v1`, `v1beta1`, `v1alpha1`.
fn stability(version: &str) -> Option<Stability> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let rest = version.strip_prefix('v')?;
    for (word, stability) in [("beta", Stability::Beta), ("alpha", Stability::Alpha)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return (digits(major) && digits(minor)).then_some(stability);
        }
    }
    digits(rest).then_some(Stability::Stable)
}

/// A key without a value means true.
fn parse_bool(text: &str) -> Option<bool> {
    if text.is_empty() { Some(true) } else { kubelith_meta::text::parse_bool(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::builtin;

    fn parse(text: &str) -> Result<RuntimeConfig, String> {
        let pair = |p: &str| p.split_once('=').map_or((p.into(), String::new()), |(k, v)| (k.into(), v.into()));
        RuntimeConfig::parse(builtin(), &text.split(',').filter(|p| !p.is_empty()).map(pair).collect())
    }

    #[test]
    fn mistakes_are_refused() {
        let cases = [
            ("api/all=false", "invalid runtime-config with only api/all=false"),
            ("v1=true", "runtime-config invalid key v1"),
            ("a/b/c/d=true", "runtime-config invalid key a/b/c/d"),
            ("x/v1=true,b/v2=true,apps/v1=true", "unknown api groups b/v2,x/v1"),
            ("api/beta=yes", "invalid value api/beta=yes"),
            ("apps/v9=true", "group version apps/v9 that has not been registered"),
            (
                "apps/v1=maybe",
                r#"invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax"#,
            ),
            (
                "apps/v1/Deployments=true",
                r#"invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not "Deployments""#,
            ),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text).unwrap_err(), want);
        }
    }

    #[test]
    fn the_more_specific_wins() {
        let cases = [
            ("", "apps/v1/deployments", true),
            ("", "resource.k8s.io/v1beta1/deviceclasses", false),
            ("", "apps/v1beta1/deployments", false),
            ("api/all=true", "resource.k8s.io/v1beta1/deviceclasses", true),
            ("api/all=true", "apps/v1beta1/deployments", false),
            ("api/all=true", "certificates.k8s.io/v1beta1/clustertrustbundles", false),
            ("api/beta=true", "resource.k8s.io/v1beta1/deviceclasses", true),
            ("api/beta=true", "resource.k8s.io/v1alpha3/devicetaintrules", false),
            ("api/all=true,api/alpha=false", "resource.k8s.io/v1alpha3/devicetaintrules", false),
            ("api/all=false,api/ga=true", "apps/v1/deployments", true),
            ("api/all=true,resource.k8s.io/v1beta1=false", "resource.k8s.io/v1beta1/deviceclasses", false),
            ("resource.k8s.io/v1beta1", "resource.k8s.io/v1beta1/deviceclasses", true),
            ("resource.k8s.io/v1beta1/deviceclasses=true", "resource.k8s.io/v1beta1/deviceclasses", true),
            ("resource.k8s.io/v1beta1/deviceclasses=true", "resource.k8s.io/v1beta1/resourceclaims", false),
            ("apps/v1=true,apps/v1/deployments=false", "apps/v1/deployments", false),
            ("/v1=false", "/v1/pods", false),
        ];
        for (text, gvr, want) in cases {
            let parts: Vec<&str> = gvr.split('/').collect();
            let gvr = GroupVersionResource::new(parts[0], parts[1], parts[2]);
            assert_eq!(builtin().serves(&parse(text).unwrap(), &|_| false, &gvr), want, "{text} {gvr}");
        }
        let gated = GroupVersionResource::new("certificates.k8s.io", "v1beta1", "clustertrustbundles");
        assert!(builtin().serves(&parse("api/all=true").unwrap(), &|gate| gate == "ClusterTrustBundle", &gated));
    }
}
