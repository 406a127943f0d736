//! Which plugins there are, in the order in which they run, and which of them a server runs.

use crate::chain::{Chain, Member};
use crate::configuration::Configuration;
use crate::observe::Observer;
use crate::plugin::Plugin as Built;
use crate::plugins::{
    CertificateSubjectRestriction, DefaultIngressClass, DefaultStorageClass, DefaultTolerationSeconds, LimitRanger,
    NamespaceLifecycle, NodeDeclaredFeatureValidator, PersistentVolumeClaimResize, PodResizeValidator, PodSecurity,
    PodTopologyLabels, Priority, RuntimeClass, ServiceAccount, StorageObjectInUseProtection, TaintNodesByCondition,
};
use kubelith_registry::Objects;
use kubelith_registry::admission::Operation;
use std::sync::Arc;

/// What plugins are made from.
#[derive(Clone)]
pub struct Config {
    pub objects: Arc<Objects>,
    /// `--default-not-ready-toleration-seconds`.
    pub not_ready_toleration_seconds: i64,
    /// `--default-unreachable-toleration-seconds`.
    pub unreachable_toleration_seconds: i64,
    /// `--admission-control-config-file`.
    pub configuration: Configuration,
    pub observer: Arc<dyn Observer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    On,
    Off,
}

type Made = Result<Box<dyn Built>, String>;

/// How a plugin is made; `Configured` ones get what the configuration file has for them.
#[derive(Clone, Copy)]
enum Make {
    Plain(fn(&Config) -> Box<dyn Built>),
    Configured(fn(&Config, Option<&[u8]>) -> Made),
    /// This server knows it by name only.
    NotBuilt,
}

/// A plugin's place in the order.
struct Plugin {
    name: &'static str,
    standing: Standing,
    /// Operations whose objects it may change.
    admits: &'static [Operation],
    /// Operations that it may refuse once the object is complete.
    validates: &'static [Operation],
    make: Make,
}

impl Plugin {
    /// One that is on unless it is switched off.
    const fn on(name: &'static str, make: fn(&Config) -> Box<dyn Built>) -> Plugin {
        Plugin { name, standing: Standing::On, admits: &[], validates: &[], make: Make::Plain(make) }
    }

    const fn named(name: &'static str, standing: Standing) -> Plugin {
        Plugin { name, standing, admits: &[], validates: &[], make: Make::NotBuilt }
    }

    const fn admits(self, operations: &'static [Operation]) -> Plugin {
        Plugin { admits: operations, ..self }
    }

    const fn validates(self, operations: &'static [Operation]) -> Plugin {
        Plugin { validates: operations, ..self }
    }
}

const CREATE: &[Operation] = &[Operation::Create];
const UPDATE: &[Operation] = &[Operation::Update];
const WRITE: &[Operation] = &[Operation::Create, Operation::Update];
const CHANGE: &[Operation] = &[Operation::Create, Operation::Update, Operation::Delete];

const PLUGINS: &[Plugin] = {
    use Standing::{Off, On};
    &[
        Plugin::named("AlwaysAdmit", Off),
        Plugin::named("NamespaceAutoProvision", Off),
        Plugin::on("NamespaceLifecycle", |c| Box::new(NamespaceLifecycle::new(&c.objects))).admits(CHANGE),
        Plugin::named("NamespaceExists", Off),
        Plugin::named("LimitPodHardAntiAffinityTopology", Off),
        Plugin::on("LimitRanger", |c| Box::new(LimitRanger::new(&c.objects))).admits(WRITE).validates(WRITE),
        Plugin::on("ServiceAccount", |c| Box::new(ServiceAccount::new(&c.objects))).admits(WRITE).validates(WRITE),
        Plugin::named("NodeRestriction", Off),
        Plugin::on("TaintNodesByCondition", |_| Box::new(TaintNodesByCondition)).admits(CREATE),
        Plugin::named("AlwaysPullImages", Off),
        Plugin::named("ImagePolicyWebhook", Off),
        Plugin {
            make: Make::Configured(|c, text| Ok(Box::new(PodSecurity::new(&c.objects, c.observer.clone(), text)?))),
            ..Plugin::named("PodSecurity", On).validates(WRITE)
        },
        Plugin::named("PodNodeSelector", Off),
        Plugin::on("Priority", |c| Box::new(Priority::new(&c.objects))).admits(CHANGE).validates(CHANGE),
        Plugin::on("DefaultTolerationSeconds", |c| {
            Box::new(DefaultTolerationSeconds::new(c.not_ready_toleration_seconds, c.unreachable_toleration_seconds))
        })
        .admits(WRITE),
        Plugin::named("PodTolerationRestriction", Off),
        Plugin::named("EventRateLimit", Off),
        Plugin::named("ExtendedResourceToleration", Off),
        Plugin::on("DefaultStorageClass", |c| Box::new(DefaultStorageClass::new(c.objects.clone()))).admits(CREATE),
        Plugin::on("StorageObjectInUseProtection", |_| Box::new(StorageObjectInUseProtection)).admits(CREATE),
        Plugin::named("PodGroupProtection", On),
        Plugin::named("OwnerReferencesPermissionEnforcement", Off),
        Plugin::on("PersistentVolumeClaimResize", |c| Box::new(PersistentVolumeClaimResize::new(c.objects.clone())))
            .validates(UPDATE),
        Plugin::on("RuntimeClass", |c| Box::new(RuntimeClass::new(c.objects.clone()))).admits(CREATE).validates(CREATE),
        Plugin::named("CertificateApproval", On),
        Plugin::named("CertificateSigning", On),
        Plugin::named("ClusterTrustBundleAttest", On),
        Plugin::on("CertificateSubjectRestriction", |_| Box::new(CertificateSubjectRestriction)).validates(CREATE),
        Plugin::on("DefaultIngressClass", |c| Box::new(DefaultIngressClass::new(c.objects.clone()))).admits(CREATE),
        Plugin::named("DenyServiceExternalIPs", Off),
        Plugin::on("PodTopologyLabels", |c| Box::new(PodTopologyLabels::new(&c.objects))).admits(CREATE),
        Plugin::named("PodGroupWorkloadExists", On),
        Plugin::on("NodeDeclaredFeatureValidator", |c| Box::new(NodeDeclaredFeatureValidator::new(c.objects.clone())))
            .validates(UPDATE),
        Plugin::named("JobValidation", On),
        Plugin::on("PodResizeValidator", |c| Box::new(PodResizeValidator::new(c.objects.clone()))).validates(UPDATE),
        Plugin::named("MutatingAdmissionPolicy", On),
        Plugin::named("MutatingAdmissionWebhook", On),
        Plugin::named("ValidatingAdmissionPolicy", On),
        Plugin::named("ValidatingAdmissionWebhook", On),
        Plugin::named("ResourceQuota", On),
        Plugin::named("AlwaysDeny", Off),
    ]
};

/// What `--enable-admission-plugins` and `--disable-admission-plugins` say.
#[derive(Debug, Clone, Default)]
pub struct Switches {
    pub enabled: Vec<String>,
    pub disabled: Vec<String>,
}

impl Switches {
    /// These plugins and no others.
    pub fn exactly(enabled: Vec<String>) -> Switches {
        let others = PLUGINS.iter().map(|plugin| plugin.name.to_owned()).filter(|name| !enabled.contains(name));
        Switches { disabled: others.collect(), enabled }
    }

    fn enable(&self, plugin: &Plugin) -> bool {
        self.enabled.iter().any(|name| name == plugin.name)
    }

    fn run(&self, plugin: &Plugin) -> bool {
        match plugin.standing {
            Standing::On => !self.disabled.iter().any(|name| name == plugin.name) || self.enable(plugin),
            Standing::Off => self.enable(plugin),
        }
    }
}

/// What this server knows of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    Built,
    /// By name only: whoever asks for it must not believe that it runs.
    NotBuilt,
    Unknown,
}

pub fn known(name: &str) -> Known {
    match PLUGINS.iter().find(|plugin| plugin.name == name) {
        None => Known::Unknown,
        Some(Plugin { make: Make::NotBuilt, .. }) => Known::NotBuilt,
        Some(_) => Known::Built,
    }
}

/// The plugins that are on by default, as `switches` change them.
pub fn build(config: &Config, switches: &Switches) -> Result<Chain, String> {
    let mut members = Vec::new();
    let mut missing = Vec::new();
    for plugin in PLUGINS.iter().filter(|plugin| switches.run(plugin)) {
        let made = match plugin.make {
            Make::Plain(make) => make(config),
            Make::Configured(make) => make(config, config.configuration.of(plugin.name)?.as_deref())?,
            Make::NotBuilt => {
                if switches.enable(plugin) {
                    return Err(format!("the admission plugin {} is not built into this release", plugin.name));
                }
                missing.push(plugin.name);
                continue;
            }
        };
        members.push(Member {
            plugin: made,
            admits: plugin.admits,
            validates: plugin.validates,
            timer: config.observer.plugin(plugin.name),
        });
    }
    if !missing.is_empty() {
        tracing::warn!(
            "admission plugins that are on by default are not built into this release: {}",
            missing.join(",")
        );
    }
    Ok(Chain { objects: config.objects.clone(), members, steps: config.observer.steps() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_switched_by_name() {
        let config = Config {
            objects: Objects::new(),
            not_ready_toleration_seconds: 300,
            unreachable_toleration_seconds: 300,
            configuration: Configuration::default(),
            observer: Arc::new(()),
        };
        let count = |switches: Switches| build(&config, &switches).unwrap().members.len();
        let own = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let with =
            |enabled: &[&str], disabled: &[&str]| count(Switches { enabled: own(enabled), disabled: own(disabled) });
        let all = with(&[], &[]);
        assert_eq!(with(&[], &["ServiceAccount"]), all - 1);
        assert_eq!(with(&["ServiceAccount"], &[]), all);
        let exactly = |names: &[&str]| count(Switches::exactly(own(names)));
        assert_eq!((exactly(&[]), exactly(&["Priority", "PodSecurity"])), (0, 2));
        assert_eq!(
            [known("Priority"), known("ResourceQuota"), known("Odd")],
            [Known::Built, Known::NotBuilt, Known::Unknown]
        );
        let missing = build(&config, &Switches { enabled: own(&["ResourceQuota"]), disabled: Vec::new() });
        assert_eq!(missing.err().unwrap(), "the admission plugin ResourceQuota is not built into this release");
    }
}
