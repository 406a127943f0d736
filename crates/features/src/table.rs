//! The gates of Kubernetes v1.36: name, stage, default. Locked ones cannot be changed any more. Behind that stands what
//! was different in the releases that can be emulated, and the gates that must be on for this one to be.

use super::Stage::{Alpha, Beta, Deprecated, Stable};
use super::{Gate, GateState, OLDEST, Past, Stage};

const fn gate(name: &'static str, stage: Stage, default: bool) -> Gate {
    Gate { name, now: at(stage, default), past: [Past::Same; 3], needs: &[] }
}

const fn locked(name: &'static str, stage: Stage, default: bool) -> Gate {
    Gate { now: locked_at(stage, default), ..gate(name, stage, default) }
}

const fn at(stage: Stage, default: bool) -> GateState {
    GateState { stage, default, locked: false }
}

const fn locked_at(stage: Stage, default: bool) -> GateState {
    GateState { stage, default, locked: true }
}

impl Gate {
    /// What it was up to this minor release, as far as nothing older is said.
    const fn until(self, minor: u32, state: GateState) -> Gate {
        self.before(minor + 1, Past::Was(state))
    }

    /// There was no such gate before this minor release.
    const fn since(self, minor: u32) -> Gate {
        self.before(minor, Past::Absent)
    }

    const fn before(mut self, minor: u32, past: Past) -> Gate {
        let mut release = 0;
        while release < self.past.len() && OLDEST + (release as u32) < minor {
            if matches!(self.past[release], Past::Same) {
                self.past[release] = past;
            }
            release += 1;
        }
        self
    }

    const fn needs(self, gates: &'static [&'static str]) -> Gate {
        Gate { needs: gates, ..self }
    }
}

/// Sorted by name.
pub const GATES: &[Gate] = &[
    gate("APIResponseCompression", Beta, true),
    gate("APIServerIdentity", Beta, true),
    locked("APIServerTracing", Stable, true).until(33, at(Beta, true)),
    gate("APIServingWithRoutine", Alpha, false),
    locked("AggregatedDiscoveryRemoveBetaType", Deprecated, true).until(34, at(Deprecated, true)),
    gate("AllowDNSOnlyNodeCSR", Deprecated, false),
    gate("AllowInsecureKubeletCertificateSigningRequests", Deprecated, false),
    locked("AllowOverwriteTerminationGracePeriodSeconds", Deprecated, false).until(34, at(Deprecated, false)),
    gate("AllowParsingUserUIDFromCertAuth", Beta, true),
    gate("AllowServiceExternalIPs", Stable, true),
    gate("AllowUnsafeMalformedObjectDeletion", Alpha, false),
    locked("AnonymousAuthConfigurableEndpoints", Stable, true).until(33, at(Beta, true)),
    locked("AnyVolumeDataSource", Stable, true),
    gate("AtomicFIFO", Beta, true).since(36),
    locked("AuthorizeNodeWithSelectors", Stable, true).until(33, at(Beta, true)).needs(&["AuthorizeWithSelectors"]),
    gate("AuthorizePodWebsocketUpgradeCreatePermission", Beta, true).since(35),
    locked("AuthorizeWithSelectors", Stable, true).until(33, at(Beta, true)),
    locked("BtreeWatchCache", Stable, true),
    gate("CBORServingAndStorage", Alpha, false),
    gate("CPUManagerPolicyAlphaOptions", Alpha, false),
    gate("CPUManagerPolicyBetaOptions", Beta, true),
    locked("CPUManagerPolicyOptions", Stable, true),
    gate("CRDObservedGenerationTracking", Beta, true).since(35).until(35, at(Beta, false)),
    locked("CRDValidationRatcheting", Stable, true),
    gate("CRIListStreaming", Alpha, false).since(36),
    locked("CSIServiceAccountTokenSecrets", Stable, true).since(35).until(35, at(Beta, true)),
    gate("CSIVolumeHealth", Alpha, false),
    gate("ChangeContainerStatusOnKubeletRestart", Deprecated, false).until(34, at(Stable, true)),
    gate("ClearingNominatedNodeNameAfterBinding", Beta, true).since(34).until(34, at(Alpha, false)),
    gate("ClientsAllowCARotation", Beta, true).since(36),
    gate("ClientsAllowCBOR", Alpha, false),
    gate("ClientsAllowTLSCacheGC", Beta, true).since(36),
    gate("ClientsPreferCBOR", Alpha, false),
    gate("CloudControllerManagerWatchBasedRoutesReconciliation", Alpha, false).since(35),
    gate("CloudControllerManagerWebhook", Alpha, false),
    gate("ClusterTrustBundle", Beta, false),
    gate("ClusterTrustBundleProjection", Beta, false).needs(&["ClusterTrustBundle"]),
    gate("ComponentFlagz", Beta, true).until(35, at(Alpha, false)),
    gate("ComponentStatusz", Beta, true).until(35, at(Alpha, false)),
    gate("ConcurrentWatchObjectDecode", Beta, false),
    locked("ConsistentListFromCache", Stable, true).until(33, at(Beta, true)),
    gate("ConstrainedImpersonation", Beta, true).since(35).until(35, at(Alpha, false)),
    gate("ContainerCheckpoint", Beta, true),
    gate("ContainerRestartRules", Beta, true).since(34).until(34, at(Alpha, false)),
    gate("ContainerStopSignals", Alpha, false),
    gate("ContextualLogging", Beta, true),
    gate("ControllerManagerReleaseLeaderElectionLockOnExit", Alpha, false).since(36),
    gate("CoordinatedLeaderElection", Beta, false),
    gate("CrossNamespaceVolumeDataSource", Alpha, false),
    gate("CustomCPUCFSQuotaPeriod", Stable, true),
    locked("CustomResourceFieldSelectors", Stable, true),
    locked("DRAAdminAccess", Stable, true)
        .until(33, at(Alpha, false))
        .until(35, at(Beta, true))
        .needs(&["DynamicResourceAllocation"]),
    gate("DRAConsumableCapacity", Beta, true)
        .since(34)
        .until(35, at(Alpha, false))
        .needs(&["DynamicResourceAllocation"]),
    gate("DRADeviceBindingConditions", Beta, true)
        .since(34)
        .until(35, at(Alpha, false))
        .needs(&["DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"]),
    gate("DRADeviceTaintRules", Beta, false).since(35).until(35, at(Alpha, false)).needs(&["DRADeviceTaints"]),
    gate("DRADeviceTaints", Beta, true).until(35, at(Alpha, false)).needs(&["DynamicResourceAllocation"]),
    gate("DRAExtendedResource", Beta, true).since(34).until(35, at(Alpha, false)).needs(&["DynamicResourceAllocation"]),
    gate("DRAListTypeAttributes", Alpha, false).since(36).needs(&["DynamicResourceAllocation"]),
    gate("DRANodeAllocatableResources", Alpha, false).since(36).needs(&["DynamicResourceAllocation"]),
    gate("DRAPartitionableDevices", Beta, true).until(35, at(Alpha, false)).needs(&["DynamicResourceAllocation"]),
    gate("DRAPrioritizedList", Stable, true)
        .until(33, at(Alpha, false))
        .until(35, at(Beta, true))
        .needs(&["DynamicResourceAllocation"]),
    gate("DRAResourceClaimDeviceStatus", Beta, true),
    gate("DRAResourceClaimGranularStatusAuthorization", Beta, true)
        .since(36)
        .needs(&["DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"]),
    gate("DRAResourcePoolStatus", Alpha, false).since(36).needs(&["DynamicResourceAllocation"]),
    gate("DRASchedulerFilterTimeout", Beta, true).since(34).needs(&["DynamicResourceAllocation"]),
    gate("DRAWorkloadResourceClaims", Alpha, false).since(36).needs(&["DynamicResourceAllocation", "GenericWorkload"]),
    locked("DeclarativeValidation", Stable, true).until(35, at(Beta, true)),
    gate("DeclarativeValidationBeta", Beta, true).since(36),
    gate("DeclarativeValidationTakeover", Deprecated, false)
        .until(35, at(Beta, false))
        .needs(&["DeclarativeValidation"]),
    gate("DeploymentReplicaSetTerminatingReplicas", Beta, true).until(34, at(Alpha, false)),
    gate("DetectCacheInconsistency", Beta, true).since(34),
    locked("DisableAllocatorDualWrite", Stable, true)
        .until(33, at(Beta, false))
        .until(34, at(Stable, true))
        .needs(&["MultiCIDRServiceAllocator"]),
    gate("DisableCPUQuotaWithExclusiveCPUs", Deprecated, true).until(35, at(Beta, true)),
    locked("DisableNodeKubeProxyVersion", Deprecated, true).until(35, at(Deprecated, true)),
    locked("DynamicResourceAllocation", Stable, true).until(33, at(Beta, false)).until(34, at(Stable, true)),
    gate("EnvFiles", Beta, true).since(34).until(34, at(Alpha, false)),
    gate("EventedPLEG", Alpha, false),
    locked("ExecProbeTimeout", Stable, true).until(34, at(Stable, true)),
    gate("ExtendWebSocketsToKubelet", Beta, true).since(36).needs(&["NodeDeclaredFeatures"]),
    locked("ExternalServiceAccountTokenSigner", Stable, true).until(33, at(Alpha, false)).until(35, at(Beta, true)),
    gate("GangScheduling", Alpha, false).since(35).needs(&["GenericWorkload"]),
    gate("GenericWorkload", Alpha, false).since(35),
    locked("GitRepoVolumeDriver", Deprecated, false).until(35, at(Deprecated, false)),
    gate("GracefulNodeShutdown", Beta, true),
    gate("GracefulNodeShutdownBasedOnPodPriority", Beta, true).needs(&["GracefulNodeShutdown"]),
    gate("HPAConfigurableTolerance", Beta, true).until(34, at(Alpha, false)),
    gate("HPAScaleToZero", Alpha, false),
    gate("HostnameOverride", Beta, true).since(34).until(34, at(Alpha, false)),
    locked("ImageMaximumGCAge", Stable, true).until(34, at(Beta, true)),
    locked("ImageVolume", Stable, true).until(34, at(Beta, false)).until(35, at(Beta, true)),
    gate("ImageVolumeWithDigest", Alpha, false).since(35).needs(&["ImageVolume"]),
    locked("InOrderInformers", Stable, true).until(35, at(Beta, true)),
    gate("InOrderInformersBatchProcess", Beta, true).since(35),
    gate("InPlacePodLevelResourcesVerticalScaling", Beta, true).since(35).until(35, at(Alpha, false)).needs(&[
        "InPlacePodVerticalScaling",
        "NodeDeclaredFeatures",
        "PodLevelResources",
    ]),
    locked("InPlacePodVerticalScaling", Stable, true).until(34, at(Beta, true)),
    gate("InPlacePodVerticalScalingExclusiveCPUs", Alpha, false).needs(&["InPlacePodVerticalScaling"]),
    gate("InPlacePodVerticalScalingExclusiveMemory", Alpha, false).since(34).needs(&["InPlacePodVerticalScaling"]),
    gate("InPlacePodVerticalScalingInitContainers", Beta, true)
        .since(36)
        .needs(&["InPlacePodVerticalScaling", "NodeDeclaredFeatures"]),
    gate("InformerResourceVersion", Stable, true).until(34, at(Alpha, false)),
    locked("JobBackoffLimitPerIndex", Stable, true),
    locked("JobManagedBy", Stable, true).until(34, at(Beta, true)),
    locked("JobPodReplacementPolicy", Stable, true).until(33, at(Beta, true)),
    locked("JobSuccessPolicy", Stable, true),
    gate("KMSv1", Deprecated, false),
    locked("KubeletCgroupDriverFromCRI", Stable, true).until(33, at(Beta, true)),
    gate("KubeletCrashLoopBackOffMax", Beta, true).until(34, at(Alpha, false)),
    gate("KubeletEnsureSecretPulledImages", Beta, true).until(34, at(Alpha, false)),
    locked("KubeletFineGrainedAuthz", Stable, true).until(35, at(Beta, true)),
    gate("KubeletInUserNamespace", Alpha, false),
    locked("KubeletPSI", Stable, true).until(33, at(Alpha, false)).until(35, at(Beta, true)),
    locked("KubeletPodResourcesDynamicResources", Stable, true).until(33, at(Alpha, false)).until(35, at(Beta, true)),
    locked("KubeletPodResourcesGet", Stable, true).until(33, at(Alpha, false)).until(35, at(Beta, true)),
    gate("KubeletPodResourcesListUseActivePods", Deprecated, true).until(33, at(Stable, false)),
    gate("KubeletRegistrationGetOnExistsOnly", Deprecated, false),
    gate("KubeletSeparateDiskGC", Beta, true),
    gate("KubeletServiceAccountTokenForCredentialProviders", Beta, true).until(33, at(Alpha, false)),
    locked("KubeletTracing", Stable, true).until(33, at(Beta, true)),
    gate("ListFromCacheSnapshot", Beta, true).until(33, at(Alpha, false)),
    gate("LocalStorageCapacityIsolationFSQuotaMonitoring", Beta, false),
    locked("LogarithmicScaleDown", Stable, true),
    gate("LoggingAlphaOptions", Alpha, false),
    gate("LoggingBetaOptions", Beta, true),
    gate("ManifestBasedAdmissionControlConfig", Alpha, false).since(36),
    locked("MatchLabelKeysInPodAffinity", Stable, true),
    gate("MatchLabelKeysInPodTopologySpread", Beta, true),
    gate("MatchLabelKeysInPodTopologySpreadSelectorMerge", Beta, true)
        .since(34)
        .needs(&["MatchLabelKeysInPodTopologySpread"]),
    gate("MaxUnavailableStatefulSet", Beta, false).until(34, at(Alpha, false)),
    gate("MemoryQoS", Alpha, false),
    locked("MultiCIDRServiceAllocator", Stable, true).until(33, at(Stable, true)),
    locked("MutableCSINodeAllocatableCount", Stable, true)
        .until(33, at(Alpha, false))
        .until(34, at(Beta, false))
        .until(35, at(Beta, true)),
    gate("MutablePVNodeAffinity", Alpha, false).since(35),
    gate("MutablePodResourcesForSuspendedJobs", Beta, true).since(35).until(35, at(Alpha, false)),
    gate("MutableSchedulingDirectivesForSuspendedJobs", Beta, true).since(35).until(35, at(Alpha, false)),
    gate("MutatingAdmissionPolicy", Stable, true).until(33, at(Alpha, false)).until(35, at(Beta, false)),
    locked("NFTablesProxyMode", Stable, true),
    gate("NativeHistograms", Alpha, false).since(36),
    gate("NodeDeclaredFeatures", Beta, true).since(35).until(35, at(Alpha, false)),
    locked("NodeInclusionPolicyInPodTopologySpread", Stable, true),
    locked("NodeLogQuery", Stable, true).until(35, at(Beta, false)),
    locked("NodeSwap", Stable, true).until(33, at(Beta, true)),
    gate("NominatedNodeNameForExpectation", Beta, true).since(34).until(34, at(Alpha, false)),
    gate("OpenAPIEnums", Beta, true),
    gate("OpportunisticBatching", Beta, true).since(35),
    locked("OrderedNamespaceDeletion", Stable, true).until(33, at(Beta, true)),
    gate("PLEGOnDemandRelist", Beta, true).since(36),
    gate("PersistentVolumeClaimUnusedSinceTime", Alpha, false).since(36),
    gate("PodAndContainerStatsFromCRI", Alpha, false),
    gate("PodCertificateRequest", Beta, false)
        .since(34)
        .until(34, at(Alpha, false))
        .needs(&["AuthorizeNodeWithSelectors"]),
    gate("PodDeletionCost", Beta, true),
    gate("PodLevelResourceManagers", Alpha, false).since(36).needs(&["PodLevelResources"]),
    gate("PodLevelResources", Beta, true).until(33, at(Alpha, false)),
    locked("PodLifecycleSleepAction", Stable, true).until(33, at(Beta, true)),
    locked("PodLifecycleSleepActionAllowZero", Stable, true)
        .until(33, at(Beta, true))
        .needs(&["PodLifecycleSleepAction"]),
    gate("PodLogsQuerySplitStreams", Alpha, false),
    locked("PodObservedGenerationTracking", Stable, true).until(33, at(Alpha, false)).until(34, at(Beta, true)),
    gate("PodReadyToStartContainersCondition", Beta, true),
    locked("PodSchedulingReadiness", Stable, true),
    gate("PodTopologyLabelsAdmission", Beta, true).until(34, at(Alpha, false)),
    gate("PodsAPI", Alpha, false).since(36),
    gate("PortForwardWebsockets", Beta, true),
    locked("PreferSameTrafficDistribution", Stable, true).until(33, at(Alpha, false)).until(34, at(Beta, true)),
    gate("PreventStaticPodAPIReferences", Beta, true).since(34),
    locked("ProcMountType", Stable, true).until(35, at(Beta, true)).needs(&["UserNamespacesSupport"]),
    gate("QOSReserved", Alpha, false),
    locked("RecoverVolumeExpansionFailure", Stable, true).until(33, at(Beta, true)),
    locked("RecursiveReadOnlyMounts", Stable, true),
    gate("ReduceDefaultCrashLoopBackOffDecay", Alpha, false),
    locked("RelaxedDNSSearchValidation", Stable, true).until(33, at(Beta, true)),
    locked("RelaxedEnvironmentVariableValidation", Stable, true).until(33, at(Beta, true)),
    gate("RelaxedServiceNameValidation", Beta, true).since(34).until(35, at(Alpha, false)),
    gate("ReloadKubeletClientCAFile", Beta, true).since(36),
    gate("ReloadKubeletServerCertificateFile", Beta, true),
    gate("RemoteRequestHeaderUID", Beta, true),
    locked("ResilientWatchCacheInitialization", Stable, true).until(33, at(Beta, true)),
    gate("ResourceHealthStatus", Beta, true).until(35, at(Alpha, false)).needs(&["DynamicResourceAllocation"]),
    gate("ResourceHealthStatusMessage", Beta, true).since(36).needs(&["ResourceHealthStatus"]),
    gate("RestartAllContainersOnContainerExits", Beta, true)
        .since(35)
        .until(35, at(Alpha, false))
        .needs(&["ContainerRestartRules", "NodeDeclaredFeatures"]),
    locked("RetryGenerateName", Stable, true),
    gate("RotateKubeletServerCertificate", Beta, true),
    gate("RuntimeClassInImageCriApi", Alpha, false),
    locked("SELinuxChangePolicy", Stable, true).until(35, at(Beta, true)),
    gate("SELinuxMount", Beta, false),
    locked("SELinuxMountReadWriteOncePod", Stable, true).until(35, at(Beta, true)),
    gate("SchedulerAsyncAPICalls", Beta, false).since(34),
    gate("SchedulerAsyncPreemption", Beta, true),
    gate("SchedulerPopFromBackoffQ", Beta, true),
    locked("SchedulerQueueingHints", Stable, true).until(33, at(Beta, true)),
    locked("SeparateCacheWatchRPC", Deprecated, false).until(35, at(Deprecated, false)),
    locked("SeparateTaintEvictionController", Stable, true).until(33, at(Beta, true)),
    gate("ServiceAccountNodeAudienceRestriction", Beta, true),
    locked("ServiceAccountTokenJTI", Stable, true),
    locked("ServiceAccountTokenNodeBinding", Stable, true).needs(&["ServiceAccountTokenNodeBindingValidation"]),
    locked("ServiceAccountTokenNodeBindingValidation", Stable, true),
    locked("ServiceAccountTokenPodNodeInfo", Stable, true),
    gate("ServiceCIDRStatusFieldWiping", Deprecated, true).until(35, at(Stable, false)),
    gate("ShardedListAndWatch", Alpha, false).since(36),
    locked("SidecarContainers", Stable, true),
    gate("SizeBasedListCostEstimate", Beta, true).since(34),
    gate("StaleControllerConsistencyDaemonSet", Beta, true).since(36),
    gate("StaleControllerConsistencyJob", Beta, true).since(36),
    gate("StaleControllerConsistencyReplicaSet", Beta, true).since(36),
    gate("StaleControllerConsistencyStatefulSet", Beta, true).since(36),
    gate("StatefulSetSemanticRevisionComparison", Beta, true),
    gate("StorageCapacityScoring", Alpha, false),
    gate("StorageNamespaceIndex", Deprecated, true),
    gate("StorageVersionAPI", Alpha, false).needs(&["APIServerIdentity"]),
    gate("StorageVersionHash", Beta, true),
    gate("StorageVersionMigrator", Beta, false).until(34, at(Alpha, false)),
    locked("StreamingCollectionEncodingToJSON", Stable, true).until(33, at(Beta, true)),
    locked("StreamingCollectionEncodingToProtobuf", Stable, true).until(33, at(Beta, true)),
    gate("StrictIPCIDRValidation", Beta, true).until(35, at(Alpha, false)),
    locked("StructuredAuthenticationConfiguration", Stable, true).until(33, at(Beta, true)),
    gate("StructuredAuthenticationConfigurationEgressSelector", Beta, true)
        .since(34)
        .needs(&["StructuredAuthenticationConfiguration"]),
    gate("StructuredAuthenticationConfigurationJWKSMetrics", Beta, true)
        .since(35)
        .needs(&["StructuredAuthenticationConfiguration"]),
    locked("SupplementalGroupsPolicy", Stable, true).until(34, at(Beta, true)),
    locked("SystemdWatchdog", Stable, true).until(34, at(Beta, true)),
    gate("TaintTolerationComparisonOperators", Alpha, false).since(35),
    gate("TokenRequestServiceAccountUIDValidation", Beta, true).since(34),
    gate("TopologyAwareWorkloadScheduling", Alpha, false).since(36).needs(&["GenericWorkload"]),
    gate("TopologyManagerPolicyAlphaOptions", Alpha, false),
    gate("TopologyManagerPolicyBetaOptions", Beta, true),
    locked("TopologyManagerPolicyOptions", Stable, true),
    gate("TranslateStreamCloseWebsocketRequests", Beta, true),
    gate("UnauthenticatedHTTP2DOSMitigation", Beta, true),
    gate("UnknownVersionInteroperabilityProxy", Beta, true).until(35, at(Alpha, false)).needs(&["APIServerIdentity"]),
    gate("UnlockWhileProcessingFIFO", Beta, true).since(36),
    gate("UserNamespacesHostNetworkSupport", Alpha, false)
        .since(35)
        .needs(&["NodeDeclaredFeatures", "UserNamespacesSupport"]),
    locked("UserNamespacesSupport", Stable, true).until(35, at(Beta, true)),
    locked("VolumeAttributesClass", Stable, true).until(33, at(Beta, false)).until(35, at(Stable, true)),
    gate("VolumeLimitScaling", Alpha, false).since(35),
    gate("WatchCacheInitializationPostStartHook", Beta, true).until(35, at(Beta, false)),
    gate("WatchList", Beta, true).until(33, at(Beta, false)),
    gate("WatchListClient", Beta, true).until(34, at(Beta, false)),
    locked("WinDSR", Stable, true).until(33, at(Beta, true)),
    locked("WinOverlay", Stable, true).until(33, at(Beta, true)),
    gate("WindowsCPUAndMemoryAffinity", Alpha, false),
    gate("WindowsGracefulNodeShutdown", Beta, true).until(33, at(Alpha, false)).needs(&["GracefulNodeShutdown"]),
    gate("WindowsHostNetwork", Deprecated, false),
    gate("WorkloadAwarePreemption", Alpha, false).since(36).needs(&["GangScheduling"]),
    gate("WorkloadWithJob", Alpha, false).since(36).needs(&["GenericWorkload"]),
];
