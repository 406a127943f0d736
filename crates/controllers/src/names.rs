//! Which controllers there are, and which of them are wanted: `--controllers`.

/// A controller that runs here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Namespace,
    GarbageCollector,
    ServiceAccount,
    ServiceAccountToken,
    RootCaPublisher,
    ClusterRoleAggregation,
    ResourceQuota,
    TtlAfterFinished,
    VolumeProtection,
    ClaimProtection,
    RequestApprover,
    RequestSigner,
    RequestCleaner,
    OldTokens,
    StorageVersions,
    PolicyStatus,
}

impl Name {
    /// In the order in which they are started.
    pub const ALL: [Name; 16] = [
        Name::ServiceAccount,
        Name::ServiceAccountToken,
        Name::RootCaPublisher,
        Name::ClusterRoleAggregation,
        Name::Namespace,
        Name::GarbageCollector,
        Name::ResourceQuota,
        Name::TtlAfterFinished,
        Name::VolumeProtection,
        Name::ClaimProtection,
        Name::RequestApprover,
        Name::RequestSigner,
        Name::RequestCleaner,
        Name::OldTokens,
        Name::StorageVersions,
        Name::PolicyStatus,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Name::Namespace => "namespace-controller",
            Name::GarbageCollector => "garbage-collector-controller",
            Name::ServiceAccount => "serviceaccount-controller",
            Name::ServiceAccountToken => "serviceaccount-token-controller",
            Name::RootCaPublisher => "root-ca-certificate-publisher-controller",
            Name::ClusterRoleAggregation => "clusterrole-aggregation-controller",
            Name::ResourceQuota => "resourcequota-controller",
            Name::RequestApprover => "certificatesigningrequest-approving-controller",
            Name::RequestSigner => "certificatesigningrequest-signing-controller",
            Name::RequestCleaner => "certificatesigningrequest-cleaner-controller",
            Name::OldTokens => "legacy-serviceaccount-token-cleaner-controller",
            Name::StorageVersions => "storageversion-garbage-collector-controller",
            Name::PolicyStatus => "validatingadmissionpolicy-status-controller",
            Name::TtlAfterFinished => "ttl-after-finished-controller",
            Name::VolumeProtection => "persistentvolume-protection-controller",
            Name::ClaimProtection => "persistentvolumeclaim-protection-controller",
        }
    }
}

/// All controllers of kube-controller-manager, with the name that each had before, if it had one. Those that do not run
/// here may be switched off all the same.
pub const KNOWN: [(&str, &str); 49] = [
    ("serviceaccount-token-controller", "serviceaccount-token"),
    ("endpoints-controller", "endpoint"),
    ("endpointslice-controller", "endpointslice"),
    ("endpointslice-mirroring-controller", "endpointslicemirroring"),
    ("replicationcontroller-controller", "replicationcontroller"),
    ("pod-garbage-collector-controller", "podgc"),
    ("resourcequota-controller", "resourcequota"),
    ("namespace-controller", "namespace"),
    ("serviceaccount-controller", "serviceaccount"),
    ("garbage-collector-controller", "garbagecollector"),
    ("daemonset-controller", "daemonset"),
    ("job-controller", "job"),
    ("deployment-controller", "deployment"),
    ("replicaset-controller", "replicaset"),
    ("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling"),
    ("disruption-controller", "disruption"),
    ("statefulset-controller", "statefulset"),
    ("cronjob-controller", "cronjob"),
    ("certificatesigningrequest-signing-controller", "csrsigning"),
    ("certificatesigningrequest-approving-controller", "csrapproving"),
    ("certificatesigningrequest-cleaner-controller", "csrcleaner"),
    ("podcertificaterequest-cleaner-controller", ""),
    ("ttl-controller", "ttl"),
    ("bootstrap-signer-controller", "bootstrapsigner"),
    ("token-cleaner-controller", "tokencleaner"),
    ("node-ipam-controller", "nodeipam"),
    ("node-lifecycle-controller", "nodelifecycle"),
    ("taint-eviction-controller", ""),
    ("device-taint-eviction-controller", ""),
    ("persistentvolume-binder-controller", "persistentvolume-binder"),
    ("persistentvolume-attach-detach-controller", "attachdetach"),
    ("persistentvolume-expander-controller", "persistentvolume-expander"),
    ("clusterrole-aggregation-controller", "clusterrole-aggregation"),
    ("persistentvolumeclaim-protection-controller", "pvc-protection"),
    ("persistentvolume-protection-controller", "pv-protection"),
    ("podgroup-protection-controller", ""),
    ("ttl-after-finished-controller", "ttl-after-finished"),
    ("root-ca-certificate-publisher-controller", "root-ca-cert-publisher"),
    ("kube-apiserver-serving-clustertrustbundle-publisher-controller", ""),
    ("ephemeral-volume-controller", "ephemeral-volume"),
    ("storageversion-garbage-collector-controller", "storage-version-gc"),
    ("resourceclaim-controller", "resource-claim-controller"),
    ("resourcepoolstatusrequest-controller", ""),
    ("legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner"),
    ("validatingadmissionpolicy-status-controller", "validatingadmissionpolicy-status"),
    ("volumeattributesclass-protection-controller", ""),
    ("service-cidr-controller", ""),
    ("storage-version-migrator-controller", ""),
    ("selinux-warning-controller", ""),
];

/// Which controllers are wanted. The first word that concerns one decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection(Vec<Choice>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    All,
    None,
    On(Name),
    Off(Name),
}

impl Selection {
    pub fn all() -> Selection {
        Selection(vec![Choice::All])
    }

    pub fn all_but(others: &[Name]) -> Selection {
        Selection(others.iter().map(|name| Choice::Off(*name)).chain([Choice::All]).collect())
    }

    /// Reads `*`, `name`, `-name` and `-*`; what is wrong with them in the words of kube-controller-manager.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Selection, Vec<String>> {
        let (mut choices, mut errors) = (Vec::new(), Vec::new());
        for word in words.iter().map(AsRef::as_ref) {
            let (bare, off) = word.strip_prefix('-').map_or((word, false), |bare| (bare, true));
            if bare == "*" {
                choices.push(if off { Choice::None } else { Choice::All });
                continue;
            }
            let known = KNOWN.iter().find(|(name, old)| *name == bare || (!old.is_empty() && *old == bare));
            let ours = known.and_then(|(name, _)| Name::ALL.into_iter().find(|ours| ours.as_str() == *name));
            match (ours, known, off) {
                (Some(name), _, false) => choices.push(Choice::On(name)),
                (Some(name), _, true) => choices.push(Choice::Off(name)),
                (None, Some(_), true) => {}
                _ => errors.push(format!("\"{bare}\" is not in the list of known controllers")),
            }
        }
        if errors.is_empty() { Ok(Selection(choices)) } else { Err(errors) }
    }

    pub fn wants(&self, name: Name) -> bool {
        let chosen = self.0.iter().find_map(|choice| match choice {
            Choice::On(chosen) if *chosen == name => Some(true),
            Choice::Off(chosen) if *chosen == name => Some(false),
            _ => None,
        });
        let all = || self.0.iter().find(|c| matches!(c, Choice::All | Choice::None)) == Some(&Choice::All);
        chosen.unwrap_or_else(all)
    }

    pub fn is_empty(&self) -> bool {
        !Name::ALL.into_iter().any(|name| self.wants(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_decides() {
        for (words, namespace, garbage) in [
            (&["*"][..], true, true),
            (&["-*"], false, false),
            (&[], false, false),
            (&["*", "-namespace-controller"], false, true),
            (&["-namespace", "*"], false, true),
            (&["namespace"], true, false),
            (&["-*", "garbagecollector"], false, true),
            (&["namespace-controller", "-namespace-controller"], true, false),
            (&["*", "-deployment-controller"], true, true),
        ] {
            let selection = Selection::parse(words).unwrap();
            let found = (selection.wants(Name::Namespace), selection.wants(Name::GarbageCollector));
            assert_eq!(found, (namespace, garbage), "{words:?}");
            assert!(!selection.is_empty() || (!namespace && !garbage), "{words:?}");
        }
    }

    #[test]
    fn all_but_some() {
        let selection = Selection::all_but(&[Name::Namespace]);
        assert!(!selection.wants(Name::Namespace) && selection.wants(Name::GarbageCollector));
        assert_eq!(Selection::all_but(&[]), Selection::all());
    }

    #[test]
    fn unknown_names_are_refused() {
        let errors = Selection::parse(&["*", "-red", "deployment-controller", ""]).unwrap_err();
        assert_eq!(
            errors,
            [
                "\"red\" is not in the list of known controllers",
                "\"deployment-controller\" is not in the list of known controllers",
                "\"\" is not in the list of known controllers"
            ]
        );
    }

    #[test]
    fn every_controller_is_known() {
        for name in Name::ALL {
            assert!(KNOWN.iter().any(|(known, _)| *known == name.as_str()), "{name:?}");
        }
    }
}
