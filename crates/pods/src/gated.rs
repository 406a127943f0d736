//! Fields of pods that belong to a feature gate.

use kubelith_meta::Value;
use kubelith_rules::gated::{Feature, feature};

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

/// Of the status of pods, what goes by their spec.
pub const STATUS_BY_SPEC: &[Feature] = &[
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

/// Init containers that always restart are an older feature, whose word is the same.
fn keep_sidecar_policy(container: &mut Value) {
    if container.str_at(&["restartPolicy"]) != "Always" {
        container.remove_at(&["restartPolicy"]);
    }
}
