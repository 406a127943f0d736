//! Which plugins there are, in the order in which they run, and which of them a server runs.

use crate::Chain;
use crate::plugins::{
    CertificateSubjectRestriction, DefaultIngressClass, DefaultStorageClass, DefaultTolerationSeconds, LimitRanger,
    NamespaceLifecycle, NodeDeclaredFeatureValidator, PersistentVolumeClaimResize, PodResizeValidator, PodSecurity,
    PodTopologyLabels, Priority, RuntimeClass, ServiceAccount, StorageObjectInUseProtection, TaintNodesByCondition,
};
use kubelith_registry::Objects;
use kubelith_registry::admission::Admission;
use std::sync::Arc;

/// What plugins are made from.
#[derive(Clone)]
pub struct Config {
    pub objects: Arc<Objects>,
    /// `--default-not-ready-toleration-seconds`.
    pub not_ready_toleration_seconds: i64,
    /// `--default-unreachable-toleration-seconds`.
    pub unreachable_toleration_seconds: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    On,
    Off,
}

type Make = fn(&Config) -> Box<dyn Admission>;

/// A plugin's place in the order; `make` is `None` for those that this server knows by name only.
struct Plugin {
    name: &'static str,
    standing: Standing,
    make: Option<Make>,
}

const fn on(name: &'static str, make: Make) -> Plugin {
    Plugin { name, standing: Standing::On, make: Some(make) }
}

const fn named(name: &'static str, standing: Standing) -> Plugin {
    Plugin { name, standing, make: None }
}

const PLUGINS: &[Plugin] = {
    use Standing::{Off, On};
    &[
        named("AlwaysAdmit", Off),
        named("NamespaceAutoProvision", Off),
        on("NamespaceLifecycle", |c| Box::new(NamespaceLifecycle::new(c.objects.clone()))),
        named("NamespaceExists", Off),
        named("LimitPodHardAntiAffinityTopology", Off),
        on("LimitRanger", |c| Box::new(LimitRanger::new(c.objects.clone()))),
        on("ServiceAccount", |c| Box::new(ServiceAccount::new(c.objects.clone()))),
        named("NodeRestriction", Off),
        on("TaintNodesByCondition", |_| Box::new(TaintNodesByCondition)),
        named("AlwaysPullImages", Off),
        named("ImagePolicyWebhook", Off),
        on("PodSecurity", |c| Box::new(PodSecurity::new(c.objects.clone()))),
        named("PodNodeSelector", Off),
        on("Priority", |c| Box::new(Priority::new(c.objects.clone()))),
        on("DefaultTolerationSeconds", |c| {
            Box::new(DefaultTolerationSeconds::new(c.not_ready_toleration_seconds, c.unreachable_toleration_seconds))
        }),
        named("PodTolerationRestriction", Off),
        named("EventRateLimit", Off),
        named("ExtendedResourceToleration", Off),
        on("DefaultStorageClass", |c| Box::new(DefaultStorageClass::new(c.objects.clone()))),
        on("StorageObjectInUseProtection", |_| Box::new(StorageObjectInUseProtection)),
        named("PodGroupProtection", On),
        named("OwnerReferencesPermissionEnforcement", Off),
        on("PersistentVolumeClaimResize", |c| Box::new(PersistentVolumeClaimResize::new(c.objects.clone()))),
        on("RuntimeClass", |c| Box::new(RuntimeClass::new(c.objects.clone()))),
        named("CertificateApproval", On),
        named("CertificateSigning", On),
        named("ClusterTrustBundleAttest", On),
        on("CertificateSubjectRestriction", |_| Box::new(CertificateSubjectRestriction)),
        on("DefaultIngressClass", |c| Box::new(DefaultIngressClass::new(c.objects.clone()))),
        named("DenyServiceExternalIPs", Off),
        on("PodTopologyLabels", |c| Box::new(PodTopologyLabels::new(c.objects.clone()))),
        named("PodGroupWorkloadExists", On),
        on("NodeDeclaredFeatureValidator", |c| Box::new(NodeDeclaredFeatureValidator::new(c.objects.clone()))),
        named("JobValidation", On),
        on("PodResizeValidator", |c| Box::new(PodResizeValidator::new(c.objects.clone()))),
        named("MutatingAdmissionPolicy", On),
        named("MutatingAdmissionWebhook", On),
        named("ValidatingAdmissionPolicy", On),
        named("ValidatingAdmissionWebhook", On),
        named("ResourceQuota", On),
        named("AlwaysDeny", Off),
    ]
};

/// What `--enable-admission-plugins` and `--disable-admission-plugins` say.
#[derive(Debug, Clone, Default)]
pub struct Switches {
    pub enabled: Vec<String>,
    pub disabled: Vec<String>,
}

/// Whether there is a plugin of this name.
pub fn is_known(name: &str) -> bool {
    PLUGINS.iter().any(|plugin| plugin.name == name)
}

/// The plugins that are on by default, as `switches` change them.
pub fn build(config: &Config, switches: &Switches) -> Chain {
    let names = |list: &[String], plugin: &Plugin| list.iter().any(|name| name == plugin.name);
    let runs = |plugin: &&Plugin| match plugin.standing {
        Standing::On => !names(&switches.disabled, plugin),
        Standing::Off => names(&switches.enabled, plugin),
    };
    let plugins = PLUGINS.iter().filter(runs).filter_map(|plugin| plugin.make).map(|make| make(config));
    Chain { objects: config.objects.clone(), plugins: plugins.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_switched_by_name() {
        let config =
            Config { objects: Objects::new(), not_ready_toleration_seconds: 300, unreachable_toleration_seconds: 300 };
        let count = |enabled: &[&str], disabled: &[&str]| {
            let own = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
            build(&config, &Switches { enabled: own(enabled), disabled: own(disabled) }).plugins.len()
        };
        let all = count(&[], &[]);
        assert_eq!(count(&[], &["ServiceAccount"]), all - 1);
        assert_eq!(count(&["ServiceAccount"], &[]), all);
        assert!(is_known("AlwaysDeny") && !is_known("Odd"));
    }
}
