//! `--emulated-version`: which resources a release before this one did not serve yet, and which it still did.

use kubelith_features::NEWEST;
use kubelith_meta::GroupVersionResource;
use kubelith_schema::{Descriptor, Version};

/// The release that is emulated.
#[derive(Debug, Clone)]
pub struct Emulation {
    pub minor: u32,
    /// `--min-compatibility-version`: servers of this release must be able to read what is stored.
    pub min_compatibility: u32,
    /// `--emulation-forward-compatible`: newer versions of what an older version serves are served, too.
    pub forward: bool,
    /// `--runtime-config-emulation-forward-compatible`: so are these, `group/version` or `group/version/resource`.
    pub explicit: Vec<String>,
}

impl Default for Emulation {
    /// Of this release: everything is there.
    fn default() -> Emulation {
        Emulation { minor: NEWEST, min_compatibility: NEWEST, forward: false, explicit: Vec::new() }
    }
}

impl Emulation {
    /// Whether the release has the resource in this version. `is_served` says it of other versions, as far as
    /// flags and gates go.
    pub fn has(&self, resource: &GroupVersionResource, of: &Descriptor, is_served: impl Fn(usize) -> bool) -> bool {
        let Some(own) = of.version(&resource.version) else { return false };
        if own.releases.removed != 0 && own.releases.removed <= self.minor {
            return false;
        }
        if self.introduced(own) {
            return true;
        }
        let version = format!("{}/{}", resource.group, resource.version);
        let named = |key: &String| *key == version || *key == format!("{version}/{}", resource.resource);
        if self.explicit.iter().any(named) {
            return true;
        }
        let stable = |version: &str| !version.contains("alpha");
        let older = |(i, v): (usize, &Version)| stable(&v.name) && self.introduced(v) && is_served(i);
        self.forward && stable(&resource.version) && of.versions.iter().enumerate().any(older)
    }

    /// The version to store a resource in, if it is not the usual one.
    pub fn storage_version<'d>(&self, of: &'d Descriptor) -> Option<&'d str> {
        let (since, version) = of.storage.before.as_ref()?;
        (*since > self.min_compatibility).then_some(version.as_str())
    }

    fn introduced(&self, version: &Version) -> bool {
        version.releases.since <= self.minor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_catalog::builtin;

    fn has(emulation: &Emulation, group: &str, version: &str, plural: &str) -> bool {
        let descriptor = builtin().descriptor(group, plural).unwrap();
        emulation.has(&GroupVersionResource::new(group, version, plural), descriptor, |_| true)
    }

    #[test]
    fn older_servers_can_read_what_is_stored() {
        for descriptor in &builtin().descriptors {
            if let Some((_, version)) = &descriptor.storage.before {
                assert!(descriptor.version(version).is_some(), "{}.{version}", descriptor.plural);
            }
        }
        let stored = |min_compatibility, group, plural| {
            let emulation = Emulation { min_compatibility, ..Emulation::default() };
            emulation.storage_version(builtin().descriptor(group, plural).unwrap())
        };
        assert_eq!(stored(33, "resource.k8s.io", "resourceclaims"), Some("v1beta2"));
        assert_eq!(stored(34, "resource.k8s.io", "resourceclaims"), None);
        assert_eq!(stored(33, "apps", "deployments"), None);
    }

    #[test]
    fn younger_resources_are_not_there() {
        let old = Emulation { minor: 33, ..Emulation::default() };
        assert!(!has(&old, "resource.k8s.io", "v1", "deviceclasses"));
        assert!(has(&old, "resource.k8s.io", "v1beta1", "deviceclasses") && has(&old, "apps", "v1", "deployments"));
        assert!(has(&Emulation::default(), "resource.k8s.io", "v1", "deviceclasses"));
        assert!(has(&Emulation { minor: 34, ..old.clone() }, "resource.k8s.io", "v1", "deviceclasses"));
        assert!(has(&Emulation { forward: true, ..old.clone() }, "resource.k8s.io", "v1", "deviceclasses"));
        assert!(has(&old, "admissionregistration.k8s.io", "v1beta1", "validatingadmissionpolicies"));
        let newer = Emulation { minor: 34, forward: true, ..old.clone() };
        assert!(!has(&newer, "admissionregistration.k8s.io", "v1beta1", "validatingadmissionpolicies"));
        assert!(!has(
            &Emulation::default(),
            "admissionregistration.k8s.io",
            "v1beta1",
            "validatingadmissionpolicybindings"
        ));
        let explicit = vec!["resource.k8s.io/v1".to_owned()];
        assert!(has(&Emulation { explicit, ..old }, "resource.k8s.io", "v1", "deviceclasses"));
    }
}
