//! `--emulated-version`: which resources a release before this one did not serve yet, and which it still did.

use kubelith_meta::GroupVersionResource;
use kubelith_schema::Descriptor;

/// Resources that are younger than the oldest release that can be emulated, with the minor release that brought them.
const INTRODUCED: &[(&str, &str, &[&str], u32)] = &[
    ("admissionregistration.k8s.io", "v1", &["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"], 36),
    ("admissionregistration.k8s.io", "v1beta1", &["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"], 34),
    ("certificates.k8s.io", "v1beta1", &["podcertificaterequests"], 35),
    ("resource.k8s.io", "v1", &["deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"], 34),
    ("resource.k8s.io", "v1alpha3", &["resourcepoolstatusrequests"], 36),
    ("resource.k8s.io", "v1beta2", &["devicetaintrules"], 36),
    ("storage.k8s.io", "v1", &["volumeattributesclasses"], 34),
    ("storagemigration.k8s.io", "v1beta1", &["storageversionmigrations"], 35),
];

/// Resources that only an emulated release serves, with the minor release that did so no more.
const REMOVED: &[(&str, &str, &[&str], u32)] = &[(
    "admissionregistration.k8s.io",
    "v1beta1",
    &["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
    34,
)];

/// Resources that are stored in another version for servers of older releases, with the release that knew the newer one first.
const STORED_BEFORE: &[(&str, &[&str], u32, &str)] = &[
    (
        "resource.k8s.io",
        &["deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"],
        34,
        "v1beta2",
    ),
    ("storage.k8s.io", &["volumeattributesclasses"], 34, "v1beta1"),
];

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
        Emulation { minor: u32::MAX, min_compatibility: u32::MAX, forward: false, explicit: Vec::new() }
    }
}

impl Emulation {
    /// Whether the release has the resource in this version. `is_served` says it of other versions, as far as
    /// flags and gates go.
    pub fn has(&self, resource: &GroupVersionResource, of: &Descriptor, is_served: impl Fn(usize) -> bool) -> bool {
        if self.removed(&resource.group, &resource.version, &resource.resource) {
            return false;
        }
        if self.introduced(&resource.group, &resource.version, &resource.resource) {
            return true;
        }
        let version = format!("{}/{}", resource.group, resource.version);
        let named = |key: &String| *key == version || *key == format!("{version}/{}", resource.resource);
        if self.explicit.iter().any(named) {
            return true;
        }
        let stable = |version: &str| !version.contains("alpha");
        let older = |(i, v): (usize, &kubelith_schema::Version)| {
            stable(&v.name) && self.introduced(&resource.group, &v.name, &resource.resource) && is_served(i)
        };
        self.forward && stable(&resource.version) && of.versions.iter().enumerate().any(older)
    }

    /// The version to store a resource in, if it is not the usual one.
    pub fn storage_version(&self, group: &str, plural: &str) -> Option<&'static str> {
        let mut unknown = STORED_BEFORE.iter().filter(|(_, _, since, _)| *since > self.min_compatibility);
        unknown.find(|(g, resources, ..)| *g == group && resources.contains(&plural)).map(|(.., version)| *version)
    }

    fn removed(&self, group: &str, version: &str, resource: &str) -> bool {
        let mut gone = REMOVED.iter().filter(|(.., minor)| *minor <= self.minor);
        gone.any(|(g, v, resources, _)| *g == group && *v == version && resources.contains(&resource))
    }

    fn introduced(&self, group: &str, version: &str, resource: &str) -> bool {
        let mut younger = INTRODUCED.iter().filter(|(.., minor)| *minor > self.minor);
        !younger.any(|(g, v, resources, _)| *g == group && *v == version && resources.contains(&resource))
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
    fn the_table_names_resources_of_the_catalogue() {
        for (group, version, resources, _) in INTRODUCED.iter().chain(REMOVED) {
            for plural in *resources {
                let descriptor = builtin().descriptor(group, plural).unwrap_or_else(|| panic!("{plural}.{group}"));
                assert!(descriptor.version(version).is_some(), "{plural}.{version}.{group}");
            }
        }
    }

    #[test]
    fn older_servers_can_read_what_is_stored() {
        for (group, resources, _, version) in STORED_BEFORE {
            for plural in *resources {
                let descriptor = builtin().descriptor(group, plural).unwrap();
                assert!(descriptor.version(version).is_some(), "{plural}.{version}.{group}");
            }
        }
        let of = |min_compatibility| Emulation { min_compatibility, ..Emulation::default() };
        assert_eq!(of(33).storage_version("resource.k8s.io", "resourceclaims"), Some("v1beta2"));
        assert_eq!(of(34).storage_version("resource.k8s.io", "resourceclaims"), None);
        assert_eq!(of(33).storage_version("apps", "deployments"), None);
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
