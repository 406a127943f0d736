//! What rules know of the server they run in: what its operator allows, which features are on, and what time it is. It is
//! made once at the start and lent to every rule; asking it is reading a field.

use crate::expression::{Dialect, Expressions};
use kubelith_features::FeatureGates;
use kubelith_meta::names::IpRules;
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::{Clock, SystemClock, Time};
use std::sync::Arc;

#[derive(Clone)]
pub struct Env {
    /// `--allow-privileged`: whether containers may be privileged.
    pub allow_privileged: bool,
    pub features: Features,
    pub clock: Arc<dyn Clock>,
    /// What expressions in CEL are compiled with.
    pub expressions: Arc<Expressions>,
    /// Where names come from that nobody gave.
    pub made_up: MadeUp,
}

impl Env {
    /// New expressions may use what this release lets them, unless [`Env::with_dialect`] says otherwise.
    pub fn new(allow_privileged: bool, is_on: &dyn Fn(&str) -> bool, clock: Arc<dyn Clock>) -> Env {
        let expressions = Expressions::of(Dialect::default());
        Env { allow_privileged, features: Features::of(is_on), clock, expressions, made_up: MadeUp::Random }
    }

    #[must_use]
    pub fn with_dialect(self, dialect: Dialect) -> Env {
        Env { expressions: Expressions::of(dialect), ..self }
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// How addresses are read in fields that once took more than they do now.
    pub fn ip_rules(&self) -> IpRules {
        if self.features.strict_addresses { IpRules::Strict } else { IpRules::Legacy }
    }
}

impl Default for Env {
    /// With the features that are on by default; everything is allowed.
    fn default() -> Env {
        let gates = FeatureGates::default();
        Env::new(true, &|gate| gates.enabled(gate), Arc::new(SystemClock))
    }
}

macro_rules! features {
    ($($field:ident: $gate:literal,)*) => {
        /// The features that rules depend on, each read from its gate once.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Features {
            $(pub $field: bool,)*
        }

        impl Features {
            /// The gates that are asked.
            pub const GATES: &'static [&'static str] = &[$($gate),*];

            pub fn of(is_on: &dyn Fn(&str) -> bool) -> Features {
                Features { $($field: is_on($gate),)* }
            }
        }
    };
}

features! {
    any_selinux_policy: "SELinuxMount",
    clears_nomination: "ClearingNominatedNodeNameAfterBinding",
    comparing_tolerations: "TaintTolerationComparisonOperators",
    consumable_capacity: "DRAConsumableCapacity",
    deletion_cost: "PodDeletionCost",
    environment_files: "EnvFiles",
    follows_spread_labels: "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    host_network_of_user_namespaces: "UserNamespacesHostNetworkSupport",
    image_digests: "ImageVolumeWithDigest",
    job_resources: "MutablePodResourcesForSuspendedJobs",
    job_scheduling: "MutableSchedulingDirectivesForSuspendedJobs",
    pod_level_resize: "InPlacePodLevelResourcesVerticalScaling",
    pod_level_resources: "PodLevelResources",
    relaxed_service_names: "RelaxedServiceNameValidation",
    resizes_init_containers: "InPlacePodVerticalScalingInitContainers",
    restarts_all_containers: "RestartAllContainersOnContainerExits",
    restart_rules: "ContainerRestartRules",
    scales_to_zero: "HPAScaleToZero",
    spread_labels: "MatchLabelKeysInPodTopologySpread",
    strict_addresses: "StrictIPCIDRValidation",
    volume_affinity_changes: "MutablePVNodeAffinity",
    volume_limit_scaling: "VolumeLimitScaling",
    workload_preemption: "WorkloadAwarePreemption",
    workload_topology: "TopologyAwareWorkloadScheduling",
}
