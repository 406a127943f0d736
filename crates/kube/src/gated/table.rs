//! Which fields belong to which gate.

use kubelith_meta::Value;

/// Fields that go together.
#[derive(Clone, Copy)]
pub struct Feature {
    pub gates: &'static [&'static str],
    /// How many of the gates must be on.
    pub need: Need,
    pub fields: &'static [&'static str],
    /// If given: the fields are dropped where one of these is set.
    pub when: &'static [&'static str],
    /// If given: the fields stay where the stored object has one of these.
    pub kept_by: &'static [&'static str],
    pub kept: Kept,
    /// If given: what is done with the values at `fields` instead of removing them.
    pub own: Option<fn(&mut Value)>,
    /// So many objects around a dropped field go with it if they hold nothing else.
    pub prune: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    All,
    Any,
}

/// When fields stay though their gate is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Where the stored object uses them.
    IfUsed,
    /// On every update.
    OnUpdate,
    Never,
}

const fn feature(gates: &'static [&'static str], fields: &'static [&'static str]) -> Feature {
    let (need, kept) = (Need::All, Kept::IfUsed);
    Feature { gates, need, fields, when: &[], kept_by: &[], kept, own: None, prune: 0 }
}

impl Feature {
    const fn kept_by(mut self, fields: &'static [&'static str]) -> Feature {
        self.kept_by = fields;
        self
    }

    const fn kept(mut self, kept: Kept) -> Feature {
        self.kept = kept;
        self
    }

    const fn any(mut self) -> Feature {
        self.need = Need::Any;
        self
    }

    const fn when(mut self, fields: &'static [&'static str]) -> Feature {
        self.when = fields;
        self
    }

    const fn pruned(mut self, levels: usize) -> Feature {
        self.prune = levels;
        self
    }

    const fn by(mut self, own: fn(&mut Value)) -> Feature {
        self.own = Some(own);
        self
    }
}

/// Where a kind has the spec of its pods.
pub fn pod_spec_of(group: &str, plural: &str) -> Option<&'static [&'static str]> {
    Some(match (group, plural) {
        ("", "pods") => &["spec"],
        ("", "podtemplates") => &["template", "spec"],
        ("", "replicationcontrollers")
        | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
        | ("batch", "jobs") => &["spec", "template", "spec"],
        ("batch", "cronjobs") => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return None,
    })
}

/// Below the spec of pods and of their templates.
pub const POD_FEATURES: &[Feature] = &[
    feature(&["UserNamespacesSupport"], &["hostUsers"]),
    feature(&["SupplementalGroupsPolicy"], &["securityContext.supplementalGroupsPolicy"]),
    feature(&["PodLevelResources"], &["resources"]),
    feature(&["ProcMountType"], &["@.securityContext.procMount"]).by(|mount| *mount = "Default".into()),
    feature(&["NodeInclusionPolicyInPodTopologySpread"], &["topologySpreadConstraints[].nodeTaintsPolicy"]),
    feature(&["NodeInclusionPolicyInPodTopologySpread"], &["topologySpreadConstraints[].nodeAffinityPolicy"]),
    feature(&["MatchLabelKeysInPodTopologySpread"], &["topologySpreadConstraints[].matchLabelKeys"]),
    feature(
        &["MatchLabelKeysInPodAffinity"],
        &[
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].matchLabelKeys",
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].mismatchLabelKeys",
            "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.matchLabelKeys",
            "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.mismatchLabelKeys",
            "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].matchLabelKeys",
            "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].mismatchLabelKeys",
            "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.matchLabelKeys",
            "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.mismatchLabelKeys",
        ],
    ),
    feature(&["DynamicResourceAllocation"], &["@.resources.claims", "resourceClaims"])
        .kept_by(&["resourceClaims[].name"]),
    feature(&["ClusterTrustBundleProjection"], &["volumes[].projected.sources[].clusterTrustBundle"]),
    feature(&["PodCertificateRequest"], &["volumes[].projected.sources[].podCertificate"]),
    feature(&["GenericWorkload"], &["schedulingGroup"]),
    feature(&["InPlacePodVerticalScaling"], &["@.resizePolicy"]),
    feature(&["SidecarContainers"], &["initContainers[].restartPolicy"]),
    feature(
        &["ContainerRestartRules"],
        &["containers[].restartPolicy", "ephemeralContainers[].restartPolicy", "@.restartPolicyRules"],
    )
    .kept_by(&["containers[].restartPolicy", "initContainers[].restartPolicyRules"]),
    feature(&["ContainerRestartRules"], &["initContainers[]"])
        .when(&["initContainers[].restartPolicy"])
        .kept_by(&["containers[].restartPolicy", "initContainers[].restartPolicyRules"])
        .by(keep_sidecar_policy),
    feature(&["RecursiveReadOnlyMounts"], &["@.volumeMounts[].recursiveReadOnly"]),
    feature(&["HostnameOverride"], &["hostnameOverride"]),
    feature(&["EnvFiles"], &["@.env[].valueFrom.fileKeyRef"]),
    feature(&["PodLifecycleSleepAction"], &["@.lifecycle.preStop.sleep", "@.lifecycle.postStart.sleep"]).pruned(2),
    feature(&["ImageVolume"], &[""]).when(&["volumes[].image"]).kept_by(&["volumes[].image"]).by(drop_image_volumes),
    feature(&["SELinuxChangePolicy"], &["securityContext.seLinuxChangePolicy"]),
    feature(&["ContainerStopSignals"], &["@.lifecycle.stopSignal"]).pruned(1),
];

/// Below the status of pods.
pub const POD_STATUS: &[Feature] = &[
    feature(&["InPlacePodLevelResourcesVerticalScaling"], &["resources", "allocatedResources"]),
    feature(&["DRAExtendedResource"], &["extendedResourceClaimStatus"]),
    feature(
        &["ResourceHealthStatus"],
        &[
            "containerStatuses[].allocatedResourcesStatus",
            "initContainerStatuses[].allocatedResourcesStatus",
            "ephemeralContainerStatuses[].allocatedResourcesStatus",
        ],
    ),
    feature(
        &["ResourceHealthStatusMessage"],
        &[
            "containerStatuses[].allocatedResourcesStatus[].resources[].message",
            "initContainerStatuses[].allocatedResourcesStatus[].resources[].message",
            "ephemeralContainerStatuses[].allocatedResourcesStatus[].resources[].message",
        ],
    ),
    feature(
        &["ImageVolumeWithDigest"],
        &[
            "containerStatuses[].volumeMounts[].volumeStatus",
            "initContainerStatuses[].volumeMounts[].volumeStatus",
            "ephemeralContainerStatuses[].volumeMounts[].volumeStatus",
        ],
    ),
    feature(&["DRANodeAllocatableResources"], &["nodeAllocatableResourceClaimStatuses"]),
];

/// What kinds have beside pods.
pub fn features_of(group: &str, plural: &str) -> &'static [Feature] {
    match (group, plural) {
        ("", "pods") => POD,
        ("", "nodes") => NODE,
        ("", "persistentvolumes") => VOLUME,
        ("", "persistentvolumeclaims") => CLAIM,
        ("apps", "deployments" | "replicasets") => REPLICAS,
        ("apps", "statefulsets") => STATEFUL_SET,
        ("autoscaling", "horizontalpodautoscalers") => AUTOSCALER,
        ("batch", "jobs") => JOB,
        ("coordination.k8s.io", "leases") => LEASE,
        ("discovery.k8s.io", "endpointslices") => ENDPOINT_SLICE,
        ("resource.k8s.io", "deviceclasses") => DEVICE_CLASS,
        ("resource.k8s.io", "resourceclaims") => RESOURCE_CLAIM,
        ("resource.k8s.io", "resourceclaimtemplates") => RESOURCE_CLAIM_TEMPLATE,
        ("resource.k8s.io", "resourceslices") => RESOURCE_SLICE,
        ("scheduling.k8s.io", "podgroups") => POD_GROUP,
        ("scheduling.k8s.io", "workloads") => WORKLOAD,
        ("storage.k8s.io", "csidrivers") => CSI_DRIVER,
        ("storage.k8s.io", "volumeattachments") => VOLUME_ATTACHMENT,
        _ => &[],
    }
}

/// Of the status of pods, what goes by their spec.
const POD: &[Feature] = &[
    feature(
        &["InPlacePodVerticalScaling"],
        &[
            "status.containerStatuses[].resources",
            "status.containerStatuses[].allocatedResources",
            "status.initContainerStatuses[].resources",
            "status.initContainerStatuses[].allocatedResources",
            "status.ephemeralContainerStatuses[].resources",
            "status.ephemeralContainerStatuses[].allocatedResources",
        ],
    )
    .kept_by(&["spec.containers[].resizePolicy", "spec.initContainers[].resizePolicy"]),
    feature(&["DynamicResourceAllocation"], &["status.resourceClaimStatuses"]).kept_by(&["spec.resourceClaims[].name"]),
    feature(
        &["RecursiveReadOnlyMounts"],
        &[
            "status.containerStatuses[].volumeMounts",
            "status.initContainerStatuses[].volumeMounts",
            "status.ephemeralContainerStatuses[].volumeMounts",
        ],
    )
    .kept_by(&[
        "spec.containers[].volumeMounts[].recursiveReadOnly",
        "spec.initContainers[].volumeMounts[].recursiveReadOnly",
        "spec.ephemeralContainers[].volumeMounts[].recursiveReadOnly",
    ]),
    feature(
        &["SupplementalGroupsPolicy"],
        &[
            "status.containerStatuses[].user",
            "status.initContainerStatuses[].user",
            "status.ephemeralContainerStatuses[].user",
        ],
    )
    .kept_by(&["spec.securityContext.supplementalGroupsPolicy"]),
    feature(
        &["PodObservedGenerationTracking"],
        &["status.observedGeneration", "status.conditions[].observedGeneration"],
    ),
];

const NODE: &[Feature] = &[
    feature(&["RecursiveReadOnlyMounts", "UserNamespacesSupport"], &["status.runtimeHandlers"]).any().kept(Kept::Never),
    feature(&["SupplementalGroupsPolicy"], &["status.features"]),
    feature(&["NodeDeclaredFeatures"], &["status.declaredFeatures"]),
];

const VOLUME: &[Feature] = &[feature(&["VolumeAttributesClass"], &["spec.volumeAttributesClassName"])];

const CLAIM: &[Feature] = &[
    feature(&["VolumeAttributesClass"], &["spec.volumeAttributesClassName"]),
    feature(&["AnyVolumeDataSource"], &["spec.dataSourceRef"]),
    feature(&["CrossNamespaceVolumeDataSource"], &["spec.dataSourceRef"])
        .when(&["spec.dataSourceRef.namespace"])
        .kept_by(&["spec.dataSourceRef"]),
    feature(&["VolumeAttributesClass"], &["status.currentVolumeAttributesClassName"]),
    feature(&["VolumeAttributesClass"], &["status.modifyVolumeStatus"]),
    feature(&["RecoverVolumeExpansionFailure"], &["status.allocatedResources"]),
    feature(&["RecoverVolumeExpansionFailure"], &["status.allocatedResourceStatuses"]),
];

const REPLICAS: &[Feature] = &[feature(&["DeploymentReplicaSetTerminatingReplicas"], &["status.terminatingReplicas"])];

const STATEFUL_SET: &[Feature] =
    &[feature(&["MaxUnavailableStatefulSet"], &["spec.updateStrategy.rollingUpdate.maxUnavailable"])];

const AUTOSCALER: &[Feature] = &[feature(
    &["HPAConfigurableTolerance"],
    &["spec.behavior.scaleDown.tolerance", "spec.behavior.scaleUp.tolerance"],
)];

const JOB: &[Feature] = &[
    feature(&["JobManagedBy"], &["spec.managedBy"]).kept(Kept::OnUpdate),
    feature(&["JobSuccessPolicy"], &["spec.successPolicy"]),
    feature(&["JobBackoffLimitPerIndex"], &["spec.backoffLimitPerIndex"]),
    feature(&["JobBackoffLimitPerIndex"], &["spec.maxFailedIndexes"]),
    feature(&["JobBackoffLimitPerIndex"], &["spec.podFailurePolicy"]).kept(Kept::OnUpdate).by(drop_fail_index),
    feature(&["JobPodReplacementPolicy"], &["spec.podReplacementPolicy"]),
];

const LEASE: &[Feature] = &[
    feature(&["CoordinatedLeaderElection"], &["spec.strategy"]),
    feature(&["CoordinatedLeaderElection"], &["spec.preferredHolder"]),
];

const ENDPOINT_SLICE: &[Feature] = &[feature(&["PreferSameTrafficDistribution"], &["endpoints[].hints.forNodes"])];

const DEVICE_CLASS: &[Feature] = &[feature(&["DRAExtendedResource"], &["spec.extendedResourceName"])];

const RESOURCE_CLAIM: &[Feature] = &[
    feature(&["DRAPrioritizedList"], &["spec.devices.requests[].firstAvailable"]),
    feature(&["DRAAdminAccess"], &["spec.devices.requests[].exactly.adminAccess"]),
    feature(
        &["DRADeviceTaints"],
        &["spec.devices.requests[].exactly.tolerations", "spec.devices.requests[].firstAvailable[].tolerations"],
    ),
    feature(
        &["DRAConsumableCapacity"],
        &[
            "spec.devices.requests[].exactly.capacity",
            "spec.devices.requests[].firstAvailable[].capacity",
            "spec.devices.constraints[].distinctAttribute",
        ],
    ),
    feature(&["DRAResourceClaimDeviceStatus"], &["status.devices"]),
    feature(&["DRAAdminAccess"], &["status.allocation.devices.results[].adminAccess"]),
    feature(
        &["DRAConsumableCapacity"],
        &[
            "status.allocation.devices.results[].shareID",
            "status.allocation.devices.results[].consumedCapacity",
            "status.devices[].shareID",
        ],
    ),
    feature(
        &["DRADeviceBindingConditions"],
        &[
            "status.allocation.devices.results[].bindingConditions",
            "status.allocation.devices.results[].bindingFailureConditions",
        ],
    ),
];

const RESOURCE_CLAIM_TEMPLATE: &[Feature] = &[
    feature(&["DRAPrioritizedList"], &["spec.spec.devices.requests[].firstAvailable"]),
    feature(&["DRAAdminAccess"], &["spec.spec.devices.requests[].exactly.adminAccess"]),
    feature(
        &["DRADeviceTaints"],
        &[
            "spec.spec.devices.requests[].exactly.tolerations",
            "spec.spec.devices.requests[].firstAvailable[].tolerations",
        ],
    ),
    feature(
        &["DRAConsumableCapacity"],
        &[
            "spec.spec.devices.requests[].exactly.capacity",
            "spec.spec.devices.requests[].firstAvailable[].capacity",
            "spec.spec.devices.constraints[].distinctAttribute",
        ],
    ),
];

const RESOURCE_SLICE: &[Feature] = &[
    feature(&["DRADeviceTaints"], &["spec.devices[].taints"]),
    feature(
        &["DRAPartitionableDevices"],
        &[
            "spec.sharedCounters",
            "spec.perDeviceNodeSelection",
            "spec.devices[].consumesCounters",
            "spec.devices[].nodeName",
            "spec.devices[].nodeSelector",
            "spec.devices[].allNodes",
        ],
    ),
    feature(
        &["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"],
        &["spec.devices[].bindingConditions", "spec.devices[].bindingFailureConditions", "spec.devices[].bindsToNode"],
    ),
    feature(
        &["DRAConsumableCapacity"],
        &["spec.devices[].allowMultipleAllocations", "spec.devices[].capacity{}.requestPolicy"],
    ),
    feature(&["DRANodeAllocatableResources"], &["spec.devices[].nodeAllocatableResourceMappings"]),
    feature(
        &["DRAListTypeAttributes"],
        &[
            "spec.devices[].attributes{}.bools",
            "spec.devices[].attributes{}.ints",
            "spec.devices[].attributes{}.strings",
            "spec.devices[].attributes{}.versions",
        ],
    ),
];

const POD_GROUP: &[Feature] = &[
    feature(&["TopologyAwareWorkloadScheduling"], &["spec.schedulingConstraints"]),
    feature(&["DRAWorkloadResourceClaims"], &["spec.resourceClaims"]),
    feature(&["WorkloadAwarePreemption"], &["spec.disruptionMode"]),
    feature(&["WorkloadAwarePreemption"], &["spec.priorityClassName"]),
    feature(&["WorkloadAwarePreemption"], &["spec.priority"]),
    feature(&["DRAWorkloadResourceClaims"], &["status.resourceClaimStatuses"]).kept_by(&["spec.resourceClaims"]),
];

const WORKLOAD: &[Feature] = &[
    feature(&["TopologyAwareWorkloadScheduling"], &["spec.podGroupTemplates[].schedulingConstraints"]),
    feature(&["DRAWorkloadResourceClaims"], &["spec.podGroupTemplates[].resourceClaims"]),
    feature(&["WorkloadAwarePreemption"], &["spec.podGroupTemplates[].disruptionMode"]),
    feature(&["WorkloadAwarePreemption"], &["spec.podGroupTemplates[].priorityClassName"]),
    feature(&["WorkloadAwarePreemption"], &["spec.podGroupTemplates[].priority"]),
];

const CSI_DRIVER: &[Feature] = &[
    feature(&["SELinuxMountReadWriteOncePod"], &["spec.seLinuxMount"]),
    feature(&["MutableCSINodeAllocatableCount"], &["spec.nodeAllocatableUpdatePeriodSeconds"]),
    feature(&["CSIServiceAccountTokenSecrets"], &["spec.serviceAccountTokenInSecrets"]),
    feature(&["VolumeLimitScaling"], &["spec.preventPodSchedulingIfMissing"]),
];

const VOLUME_ATTACHMENT: &[Feature] = &[
    feature(&["MutableCSINodeAllocatableCount"], &["status.attachError.errorCode"]),
    feature(&["MutableCSINodeAllocatableCount"], &["status.detachError.errorCode"]),
];

/// Volumes of images go, and with them what mounts them.
fn drop_image_volumes(spec: &mut Value) {
    let mut gone = Vec::new();
    if let Some(volumes) = spec.at_mut(&["volumes"]).and_then(Value::as_array_mut) {
        volumes.retain(|volume| {
            let is_image = volume.at(&["image"]).is_some_and(|image| !image.is_null());
            gone.extend(is_image.then(|| volume.str_at(&["name"]).to_owned()));
            !is_image
        });
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.at_mut(&[list]).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(mounts) = container.at_mut(&["volumeMounts"]).and_then(Value::as_array_mut) {
                mounts.retain(|mount| !gone.iter().any(|name| name == mount.str_at(&["name"])));
            }
        }
    }
}

/// Without a limit for each index nothing fails by index.
fn drop_fail_index(policy: &mut Value) {
    if let Some(rules) = policy.at_mut(&["rules"]).and_then(Value::as_array_mut) {
        rules.retain(|rule| rule.str_at(&["action"]) != "FailIndex");
    }
}

/// Init containers that always restart are an older feature, whose word is the same.
fn keep_sidecar_policy(container: &mut Value) {
    if container.str_at(&["restartPolicy"]) != "Always" {
        container.remove_at(&["restartPolicy"]);
    }
}
