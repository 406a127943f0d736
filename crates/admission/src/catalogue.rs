//! Which plugins there are, in the order in which they run, and which of them a server runs.

use crate::chain::{Chain, Member};
use crate::config::Config;
use crate::plugin::Plugin as Built;
use crate::plugins::{
    AlwaysAdmit, AlwaysDeny, AlwaysPullImages, CertificateApproval, CertificateSigning, CertificateSubjectRestriction,
    ClusterTrustBundleAttest, DefaultIngressClass, DefaultStorageClass, DefaultTolerationSeconds,
    DenyServiceExternalIPs, EventRateLimit, ExtendedResourceToleration, ImagePolicyWebhook, JobValidation,
    LimitPodHardAntiAffinityTopology, LimitRanger, NamespaceAutoProvision, NamespaceExists, NamespaceLifecycle,
    NodeDeclaredFeatureValidator, NodeGates, NodeRestriction, OwnerReferencesPermissionEnforcement,
    PersistentVolumeClaimResize, PodGroupProtection, PodGroupWorkloadExists, PodNodeSelector, PodResizeValidator,
    PodSecurity, PodTolerationRestriction, PodTopologyLabels, Priority, QuotaParts, ResourceQuota, RuntimeClass,
    ServiceAccount, Signers, StorageObjectInUseProtection, TaintNodesByCondition,
};
use crate::policies::{MutatingAdmissionPolicy, ValidatingAdmissionPolicy};
use crate::webhooks::{MutatingAdmissionWebhook, ValidatingAdmissionWebhook};
use kubelith_meta::text::quote;
use kubelith_registry::admission::Operation;
use kubelith_rules::Features;

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

    const fn made(name: &'static str, standing: Standing, make: Make) -> Plugin {
        Plugin { name, standing, admits: &[], validates: &[], make }
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

/// What has an object to change.
const NOT_DELETE: &[Operation] = &[Operation::Create, Operation::Update, Operation::Connect];
const ANY: &[Operation] = &[Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

/// The gate of plugins for groups of pods.
const GROUPS_OF_PODS: &str = "GenericWorkload";

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

fn resource_quota(config: &Config, text: Option<&[u8]>) -> Made {
    let parts = QuotaParts {
        objects: &config.objects,
        server: config.server.clone(),
        clock: config.clock.clone(),
        gates: &*config.gates,
        configuration: text,
    };
    Ok(Box::new(ResourceQuota::new(parts)?))
}

const PLUGINS: &[Plugin] = {
    use Standing::{Off, On};
    &[
        Plugin::off("AlwaysAdmit", |_| Box::new(AlwaysAdmit)),
        Plugin::off("NamespaceAutoProvision", |c| Box::new(NamespaceAutoProvision::new(&c.objects, c.server.clone())))
            .admits(CREATE),
        Plugin::on("NamespaceLifecycle", |c| Box::new(NamespaceLifecycle::new(&c.objects))).admits(CHANGE),
        Plugin::off("NamespaceExists", |c| Box::new(NamespaceExists::new(&c.objects))).validates(CHANGE),
        Plugin::off("LimitPodHardAntiAffinityTopology", |_| Box::new(LimitPodHardAntiAffinityTopology))
            .validates(WRITE),
        Plugin::on("LimitRanger", |c| Box::new(LimitRanger::new(&c.objects))).admits(WRITE).validates(WRITE),
        Plugin::on("ServiceAccount", |c| Box::new(ServiceAccount::new(&c.objects, c.made_up.clone())))
            .admits(WRITE)
            .validates(WRITE),
        Plugin::off("NodeRestriction", |c| {
            Box::new(NodeRestriction::new(c.objects.clone(), c.authorizer.clone(), node_gates(c)))
        })
        .admits(CHANGE),
        Plugin::on("TaintNodesByCondition", |_| Box::new(TaintNodesByCondition)).admits(CREATE),
        Plugin::off("AlwaysPullImages", |_| Box::new(AlwaysPullImages)).admits(WRITE).validates(WRITE),
        Plugin::made(
            "ImagePolicyWebhook",
            Off,
            Make::Configured(|c, text| Ok(Box::new(ImagePolicyWebhook::new(&c.reviewer, c.clock.clone(), text)?))),
        )
        .validates(WRITE),
        Plugin::made(
            "PodSecurity",
            On,
            Make::Configured(|c, text| {
                Ok(Box::new(PodSecurity::new(&c.objects, c.observer.clone(), c.release, text)?))
            }),
        )
        .validates(WRITE),
        Plugin::made(
            "PodNodeSelector",
            Off,
            Make::Configured(|c, text| Ok(Box::new(PodNodeSelector::new(&c.objects, text)))),
        )
        .admits(CREATE)
        .validates(CREATE),
        Plugin::on("Priority", |c| Box::new(Priority::new(&c.objects))).admits(CHANGE).validates(CHANGE),
        Plugin::on("DefaultTolerationSeconds", |c| {
            Box::new(DefaultTolerationSeconds::new(c.not_ready_toleration_seconds, c.unreachable_toleration_seconds))
        })
        .admits(WRITE),
        Plugin::made(
            "PodTolerationRestriction",
            Off,
            Make::Configured(|c, text| {
                Ok(Box::new(PodTolerationRestriction::new(&c.objects, Features::of(&*c.gates), text)?))
            }),
        )
        .admits(WRITE)
        .validates(WRITE),
        Plugin::made("EventRateLimit", Off, Make::Configured(|_, text| Ok(Box::new(EventRateLimit::new(text)?))))
            .validates(WRITE),
        Plugin::off("ExtendedResourceToleration", |_| Box::new(ExtendedResourceToleration)).admits(WRITE),
        Plugin::on("DefaultStorageClass", |c| Box::new(DefaultStorageClass::new(c.objects.clone()))).admits(CREATE),
        Plugin::on("StorageObjectInUseProtection", |_| Box::new(StorageObjectInUseProtection)).admits(CREATE),
        Plugin::made("PodGroupProtection", On, Make::Gated(GROUPS_OF_PODS, |_| Box::new(PodGroupProtection)))
            .admits(CREATE),
        Plugin::off("OwnerReferencesPermissionEnforcement", |c| {
            Box::new(OwnerReferencesPermissionEnforcement {
                authorizer: c.authorizer.clone(),
                server: c.server.clone(),
            })
        })
        .validates(WRITE),
        Plugin::on("PersistentVolumeClaimResize", |c| Box::new(PersistentVolumeClaimResize::new(c.objects.clone())))
            .validates(UPDATE),
        Plugin::on("RuntimeClass", |c| Box::new(RuntimeClass::new(c.objects.clone()))).admits(CREATE).validates(CREATE),
        Plugin::on("CertificateApproval", |c| Box::new(CertificateApproval(signers(c)))).validates(UPDATE),
        Plugin::on("CertificateSigning", |c| Box::new(CertificateSigning(signers(c)))).validates(UPDATE),
        Plugin::made(
            "ClusterTrustBundleAttest",
            On,
            Make::Gated("ClusterTrustBundle", |c| Box::new(ClusterTrustBundleAttest(signers(c)))),
        )
        .validates(WRITE),
        Plugin::on("CertificateSubjectRestriction", |_| Box::new(CertificateSubjectRestriction)).validates(CREATE),
        Plugin::on("DefaultIngressClass", |c| Box::new(DefaultIngressClass::new(c.objects.clone()))).admits(CREATE),
        Plugin::off("DenyServiceExternalIPs", |_| Box::new(DenyServiceExternalIPs)).validates(WRITE),
        Plugin::made(
            "PodTopologyLabels",
            On,
            Make::Gated("PodTopologyLabelsAdmission", |c| Box::new(PodTopologyLabels::new(&c.objects))),
        )
        .admits(CREATE),
        Plugin::made(
            "PodGroupWorkloadExists",
            On,
            Make::Gated(GROUPS_OF_PODS, |c| Box::new(PodGroupWorkloadExists::new(&c.objects))),
        )
        .validates(CREATE),
        Plugin::made(
            "NodeDeclaredFeatureValidator",
            On,
            Make::Gated("NodeDeclaredFeatures", |c| Box::new(NodeDeclaredFeatureValidator::new(c.objects.clone()))),
        )
        .validates(UPDATE),
        Plugin::made("JobValidation", On, Make::Gated(GROUPS_OF_PODS, |c| Box::new(JobValidation::new(&c.objects))))
            .validates(UPDATE),
        Plugin::on("PodResizeValidator", |c| Box::new(PodResizeValidator::new(c.objects.clone()))).validates(UPDATE),
        Plugin::made(
            "MutatingAdmissionPolicy",
            On,
            Make::Configured(|c, text| Ok(Box::new(MutatingAdmissionPolicy::new(c, text)?))),
        )
        .admits(NOT_DELETE),
        Plugin::made(
            "MutatingAdmissionWebhook",
            On,
            Make::Configured(|c, text| Ok(Box::new(MutatingAdmissionWebhook::new(c, text)?))),
        )
        .admits(ANY),
        Plugin::made(
            "ValidatingAdmissionPolicy",
            On,
            Make::Configured(|c, text| Ok(Box::new(ValidatingAdmissionPolicy::new(c, text)?))),
        )
        .validates(ANY),
        Plugin::made(
            "ValidatingAdmissionWebhook",
            On,
            Make::Configured(|c, text| Ok(Box::new(ValidatingAdmissionWebhook::new(c, text)?))),
        )
        .validates(ANY),
        Plugin::made("ResourceQuota", On, Make::Configured(resource_quota)).validates(WRITE),
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

/// Whether there is such a plugin.
pub fn is_known(name: &str) -> bool {
    PLUGINS.iter().any(|plugin| plugin.name == name)
}

/// The plugins that are on by default, as `switches` change them.
pub fn build(config: &Config, switches: &Switches) -> Result<Chain, String> {
    let mut members = Vec::new();
    for plugin in PLUGINS.iter().filter(|plugin| switches.run(plugin)) {
        let made = match plugin.make {
            Make::Plain(make) => make(config),
            Make::Configured(make) => {
                let made = make(config, config.configuration.of(plugin.name)?.as_deref());
                made.map_err(|why| match why.starts_with("failed to initialize") {
                    // It was made, and what it was told turned out to be wrong.
                    true => why,
                    false => format!("couldn't init admission plugin {}: {why}", quote(plugin.name)),
                })?
            }
            Make::Gated(gate, make) => match (config.gates)(gate) {
                true => make(config),
                false => continue,
            },
        };
        members.push(Member {
            plugin: made,
            admits: plugin.admits,
            validates: plugin.validates,
            timer: config.observer.plugin(plugin.name),
        });
    }
    Ok(Chain { objects: config.objects.clone(), members, steps: config.observer.steps() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Configuration;
    use crate::loopback::Loopback;
    use futures::future::BoxFuture;
    use kubelith_meta::{Status, Value};
    use kubelith_registry::Objects;
    use std::sync::Arc;

    struct NoServer;

    impl Loopback for NoServer {
        fn update_quota_status<'a>(&'a self, quota: &'a Value) -> BoxFuture<'a, Result<Value, Status>> {
            Box::pin(std::future::ready(Ok(quota.clone())))
        }

        fn create_namespace<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Status>> {
            Box::pin(std::future::ready(Ok(())))
        }

        fn resources<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Value, Status>> {
            Box::pin(std::future::ready(Ok(Value::Null)))
        }
    }

    #[test]
    fn plugins_are_switched_by_name() {
        let config = Config {
            objects: Objects::new(),
            authorizer: Arc::new(kubelith_auth::authz::builtin::AlwaysAllow),
            gates: Arc::new(|_| false),
            release: 36,
            not_ready_toleration_seconds: 300,
            unreachable_toleration_seconds: 300,
            configuration: Configuration::default(),
            hooks: Arc::new(|_| Ok(Arc::new(kubelith_auth::hook::NoHooks))),
            reviewer: Arc::new(|_| Err("nobody".to_owned())),
            custom: Arc::new(|_, _, _| Box::pin(std::future::ready(Ok(Vec::new())))),
            observer: Arc::new(()),
            server: Arc::new(NoServer),
            clock: Arc::new(kubelith_meta::time::SystemClock),
            made_up: kubelith_meta::random::MadeUp::Random,
            expressions: kubelith_rules::Env::default().expressions,
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
        assert!(is_known("ImagePolicyWebhook") && !is_known("Odd"));
        // A delete has no object that a policy could change.
        let asked =
            PLUGINS.iter().filter(|plugin| plugin.admits.contains(&Operation::Delete)).map(|plugin| plugin.name);
        assert!(!asked.collect::<Vec<_>>().contains(&"MutatingAdmissionPolicy"));
        let unconfigured = build(&config, &Switches { enabled: own(&["ImagePolicyWebhook"]), disabled: Vec::new() });
        let why = "couldn't init admission plugin \"ImagePolicyWebhook\": no config specified";
        assert_eq!(unconfigured.err().unwrap(), why);
    }
}
