//! Which plugins there are, in the order in which they run, and which of them a server runs.

use crate::chain::{Chain, Member};
use crate::configuration::Configuration;
use crate::observe::Observer;
use crate::plugin::Plugin as Built;
use crate::plugins::{
    AlwaysAdmit, AlwaysDeny, AlwaysPullImages, CertificateApproval, CertificateSigning, CertificateSubjectRestriction,
    ClusterTrustBundleAttest, DefaultIngressClass, DefaultStorageClass, DefaultTolerationSeconds,
    DenyServiceExternalIPs, LimitPodHardAntiAffinityTopology, LimitRanger, NamespaceExists, NamespaceLifecycle,
    NodeDeclaredFeatureValidator, NodeGates, NodeRestriction, PersistentVolumeClaimResize, PodResizeValidator,
    PodSecurity, PodTopologyLabels, Priority, RuntimeClass, ServiceAccount, Signers, StorageObjectInUseProtection,
    TaintNodesByCondition,
};
use crate::policies::{MutatingAdmissionPolicy, ValidatingAdmissionPolicy};
use crate::webhooks::{MutatingAdmissionWebhook, ValidatingAdmissionWebhook};
use futures::future::BoxFuture;
use kubelith_auth::Authorizer;
use kubelith_auth::hook::Hooks;
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::Operation;
use std::path::Path;
use std::sync::Arc;

pub type HookFactory = Arc<dyn Fn(Option<&Path>) -> Result<Arc<dyn Hooks>, String> + Send + Sync>;

/// Finds custom resources: of a namespace, unless that is empty, and of a name, unless all are meant.
pub type FindCustom =
    Arc<dyn Fn(GroupVersionResource, Str, Option<Str>) -> BoxFuture<'static, Result<Vec<Value>, Status>> + Send + Sync>;

/// What plugins are made from.
#[derive(Clone)]
pub struct Config {
    pub objects: Arc<Objects>,
    pub authorizer: Arc<dyn Authorizer>,
    /// Whether a feature gate is on.
    pub gates: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// `--default-not-ready-toleration-seconds`.
    pub not_ready_toleration_seconds: i64,
    /// `--default-unreachable-toleration-seconds`.
    pub unreachable_toleration_seconds: i64,
    /// `--admission-control-config-file`.
    pub configuration: Configuration,
    /// The way to webhooks, with the credentials of a kubeconfig file if there is one.
    pub hooks: HookFactory,
    /// The way to custom resources, which policies may take parameters from.
    pub custom: FindCustom,
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
    /// Does nothing without this feature gate.
    Gated(&'static str, fn(&Config) -> Box<dyn Built>),
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

    /// One that runs only if it is asked for.
    const fn off(name: &'static str, make: fn(&Config) -> Box<dyn Built>) -> Plugin {
        Plugin { standing: Standing::Off, ..Plugin::on(name, make) }
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

const ANY: &[Operation] = &[Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

fn signers(config: &Config) -> Signers {
    Signers(config.authorizer.clone())
}

fn node_gates(config: &Config) -> NodeGates {
    let on = |gate: &str| (config.gates)(gate);
    NodeGates {
        recover_volume_expansion: on("RecoverVolumeExpansionFailure"),
        insecure_kubelet_requests: on("AllowInsecureKubeletCertificateSigningRequests"),
        audience_restriction: on("ServiceAccountNodeAudienceRestriction"),
        pod_certificates: on("PodCertificateRequest"),
    }
}

const PLUGINS: &[Plugin] = {
    use Standing::{Off, On};
    &[
        Plugin::off("AlwaysAdmit", |_| Box::new(AlwaysAdmit)),
        Plugin::named("NamespaceAutoProvision", Off),
        Plugin::on("NamespaceLifecycle", |c| Box::new(NamespaceLifecycle::new(&c.objects))).admits(CHANGE),
        Plugin::off("NamespaceExists", |c| Box::new(NamespaceExists::new(&c.objects))).validates(CHANGE),
        Plugin::off("LimitPodHardAntiAffinityTopology", |_| Box::new(LimitPodHardAntiAffinityTopology))
            .validates(WRITE),
        Plugin::on("LimitRanger", |c| Box::new(LimitRanger::new(&c.objects))).admits(WRITE).validates(WRITE),
        Plugin::on("ServiceAccount", |c| Box::new(ServiceAccount::new(&c.objects))).admits(WRITE).validates(WRITE),
        Plugin::off("NodeRestriction", |c| {
            Box::new(NodeRestriction::new(c.objects.clone(), c.authorizer.clone(), node_gates(c)))
        })
        .admits(CHANGE),
        Plugin::on("TaintNodesByCondition", |_| Box::new(TaintNodesByCondition)).admits(CREATE),
        Plugin::off("AlwaysPullImages", |_| Box::new(AlwaysPullImages)).admits(WRITE).validates(WRITE),
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
        Plugin::on("CertificateApproval", |c| Box::new(CertificateApproval(signers(c)))).validates(UPDATE),
        Plugin::on("CertificateSigning", |c| Box::new(CertificateSigning(signers(c)))).validates(UPDATE),
        Plugin {
            make: Make::Gated("ClusterTrustBundle", |c| Box::new(ClusterTrustBundleAttest(signers(c)))),
            ..Plugin::named("ClusterTrustBundleAttest", On).validates(WRITE)
        },
        Plugin::on("CertificateSubjectRestriction", |_| Box::new(CertificateSubjectRestriction)).validates(CREATE),
        Plugin::on("DefaultIngressClass", |c| Box::new(DefaultIngressClass::new(c.objects.clone()))).admits(CREATE),
        Plugin::off("DenyServiceExternalIPs", |_| Box::new(DenyServiceExternalIPs)).validates(WRITE),
        Plugin::on("PodTopologyLabels", |c| Box::new(PodTopologyLabels::new(&c.objects))).admits(CREATE),
        Plugin::named("PodGroupWorkloadExists", On),
        Plugin::on("NodeDeclaredFeatureValidator", |c| Box::new(NodeDeclaredFeatureValidator::new(c.objects.clone())))
            .validates(UPDATE),
        Plugin::named("JobValidation", On),
        Plugin::on("PodResizeValidator", |c| Box::new(PodResizeValidator::new(c.objects.clone()))).validates(UPDATE),
        Plugin::on("MutatingAdmissionPolicy", |c| Box::new(MutatingAdmissionPolicy::new(c))).admits(ANY),
        Plugin {
            make: Make::Configured(|c, text| Ok(Box::new(MutatingAdmissionWebhook::new(c, text)?))),
            ..Plugin::named("MutatingAdmissionWebhook", On).admits(ANY)
        },
        Plugin::on("ValidatingAdmissionPolicy", |c| Box::new(ValidatingAdmissionPolicy::new(c))).validates(ANY),
        Plugin {
            make: Make::Configured(|c, text| Ok(Box::new(ValidatingAdmissionWebhook::new(c, text)?))),
            ..Plugin::named("ValidatingAdmissionWebhook", On).validates(ANY)
        },
        Plugin::named("ResourceQuota", On),
        Plugin::off("AlwaysDeny", |_| Box::new(AlwaysDeny)).admits(ANY).validates(ANY),
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
            Make::Gated(gate, make) => match (config.gates)(gate) {
                true => make(config),
                false => continue,
            },
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
            authorizer: Arc::new(kubelith_auth::authz::builtin::AlwaysAllow),
            gates: Arc::new(|_| false),
            not_ready_toleration_seconds: 300,
            unreachable_toleration_seconds: 300,
            configuration: Configuration::default(),
            hooks: Arc::new(|_| Ok(Arc::new(kubelith_auth::hook::NoHooks))),
            custom: Arc::new(|_, _, _| Box::pin(std::future::ready(Ok(Vec::new())))),
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
