//! Whose object a storage key is: `/registry/pods/default/a` is one of pods.

use kubelith_meta::GroupResource;
use std::collections::BTreeMap;

/// Prefixes of resources have at most this many segments: `services/specs/`.
pub(crate) const MAX_SEGMENTS: usize = 3;

/// The prefixes of the built-in resources below one root. Those of custom resources say what they are.
#[derive(Debug, Clone, Default)]
pub struct KeyLayout {
    /// With slashes at both ends.
    root: String,
    /// By prefix below the root, with a slash at its end.
    resources: BTreeMap<String, GroupResource>,
}

impl KeyLayout {
    /// `resources` by their prefixes, without slashes at the ends.
    pub fn new<'a>(root: &str, resources: impl IntoIterator<Item = (&'a str, GroupResource)>) -> KeyLayout {
        let resources = resources.into_iter().map(|(prefix, resource)| (format!("{prefix}/"), resource)).collect();
        KeyLayout { root: root.to_owned(), resources }
    }

    pub fn root(&self) -> &str {
        &self.root
    }

    /// The resource of a key, or of a prefix that ends with a slash.
    pub fn resource(&self, key: &[u8]) -> Option<GroupResource> {
        let below = std::str::from_utf8(key).ok()?.strip_prefix(self.root.as_str())?;
        let mut end = 0;
        for _ in 0..MAX_SEGMENTS {
            let Some(slash) = below[end..].find('/') else { break };
            end += slash + 1;
            if let Some(found) = self.resources.get(&below[..end]) {
                return Some(found.clone());
            }
        }
        // Custom resources: `group/plural/…`. The groups of built-in resources without a prefix in the table have
        // no dot, or are there.
        let mut segments = below.split('/');
        let group = segments.next().filter(|group| group.contains('.'))?;
        Some(GroupResource::new(group, segments.next().filter(|plural| !plural.is_empty())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_their_resource() {
        let builtin =
            [("pods", ("", "pods")), ("services/specs", ("", "services")), ("deployments", ("apps", "deployments"))];
        let layout = KeyLayout::new("/registry/", builtin.map(|(p, (g, r))| (p, GroupResource::new(g, r))));
        let cases = [
            ("/registry/pods/default/a", Some("pods")),
            ("/registry/pods/", Some("pods")),
            ("/registry/services/specs/default/a", Some("services")),
            ("/registry/services/endpoints/default/a", None),
            ("/registry/deployments/default/a", Some("deployments.apps")),
            ("/registry/example.com/widgets/default/a", Some("widgets.example.com")),
            ("/registry/example.com/", None),
            ("/other/pods/default/a", None),
            ("/registry/pods", None),
            ("", None),
        ];
        for (key, expected) in cases {
            assert_eq!(layout.resource(key.as_bytes()).map(|r| r.to_string()).as_deref(), expected, "{key}");
        }
    }
}
