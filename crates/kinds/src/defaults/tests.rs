use super::*;
use kubelith_codec::json;

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The object with its defaults, which stay the same when they are filled in again.
fn filled(group: &str, plural: &str, version: &str, given: &str) -> Value {
    let mut object = value(given);
    let fill = BUILTIN.of(group, plural).unwrap_or_else(|| Arc::new(|_, _| {}));
    fill(version, &mut object);
    let mut again = object.clone();
    fill(version, &mut again);
    assert_eq!(again, object, "{plural} {given}: a second time changes it");
    object
}

/// What `path` leads to; a number is an index.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').try_fold(object, |v, key| match (v, key.parse::<usize>()) {
        (Value::Array(items), Ok(i)) => items.get(i),
        _ => v.get(key),
    })
}

/// Each line of `expected` is a path and the JSON that stands there, or `-` for nothing.
fn check(resource: (&str, &str, &str), given: &str, expected: &str) {
    let (group, version, plural) = resource;
    let object = filled(group, plural, version, given);
    for line in expected.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let (path, want) = line.split_once(' ').unwrap();
        let want = Some(want.trim()).filter(|w| *w != "-").map(value);
        assert_eq!(at(&object, path), want.as_ref(), "{path} of {plural} {given}");
    }
}

const PODS: (&str, &str, &str) = ("", "v1", "pods");
const SERVICES: (&str, &str, &str) = ("", "v1", "services");
const JOBS: (&str, &str, &str) = ("batch", "v1", "jobs");

#[test]
fn rules_are_of_types_that_exist() {
    let table = &kubelith_catalog::builtin().table;
    for (name, _) in crate::KINDS.into_iter().flat_map(|kind| kind.defaults) {
        assert!(table.find(name).is_some(), "{name}");
    }
}

#[test]
fn empty_objects_of_all_kinds_take_their_defaults() {
    for descriptor in &kubelith_catalog::builtin().descriptors {
        for version in &descriptor.versions {
            filled(&descriptor.group, &descriptor.plural, &version.name, "{}");
        }
    }
}

#[test]
fn pods_get_more_than_templates() {
    let spec = r#"{"containers":[{"name":"c","image":"a:1","resources":{"limits":{"cpu":"1"}}}]}"#;
    check(
        PODS,
        &format!(r#"{{"spec":{spec}}}"#),
        r#"spec/dnsPolicy "ClusterFirst"
        spec/restartPolicy "Always"
        spec/schedulerName "default-scheduler"
        spec/securityContext {}
        spec/terminationGracePeriodSeconds 30
        spec/enableServiceLinks true
        spec/containers/0/imagePullPolicy "IfNotPresent"
        spec/containers/0/terminationMessagePath "/dev/termination-log"
        spec/containers/0/resources/requests {"cpu":"1"}"#,
    );
    for (group, plural, path) in [
        ("apps", "deployments", "spec/template"),
        ("apps", "statefulsets", "spec/template"),
        ("apps", "daemonsets", "spec/template"),
        ("apps", "replicasets", "spec/template"),
        ("", "replicationcontrollers", "spec/template"),
        ("batch", "jobs", "spec/template"),
        ("batch", "cronjobs", "spec/jobTemplate/spec/template"),
        ("", "podtemplates", "template"),
    ] {
        let mut given = format!(r#"{{"spec":{spec}}}"#);
        for key in path.rsplit('/') {
            given = format!(r#"{{"{key}":{given}}}"#);
        }
        let object = filled(group, plural, "v1", &given);
        let template = at(&object, path).unwrap();
        assert_eq!(at(template, "spec/dnsPolicy"), Some(&"ClusterFirst".into()), "{plural}");
        assert_eq!(at(template, "spec/containers/0/imagePullPolicy"), Some(&"IfNotPresent".into()), "{plural}");
        assert_eq!(at(template, "spec/enableServiceLinks"), None, "{plural}");
        assert_eq!(at(template, "spec/containers/0/resources/requests"), None, "{plural}");
    }
}

#[test]
fn old_names_of_pod_fields() {
    check(
        PODS,
        r#"{"metadata":{"annotations":{"pod.beta.kubernetes.io/init-containers":"[]","a":"b"}},
            "spec":{"serviceAccount":"old","terminationGracePeriodSeconds":-5},"status":{"podIP":"1.1.1.1"}}"#,
        r#"metadata/annotations {"a":"b"}
        spec/serviceAccountName "old"
        spec/serviceAccount "old"
        spec/terminationGracePeriodSeconds 1
        status/podIPs [{"ip":"1.1.1.1"}]"#,
    );
    check(
        PODS,
        r#"{"spec":{"serviceAccount":"old","serviceAccountName":"new"},
            "status":{"podIP":"1.1.1.1","podIPs":[{"ip":"2.2.2.2"},{"ip":"::1"}]}}"#,
        r#"spec/serviceAccountName "new"
        spec/serviceAccount "new"
        status/podIPs [{"ip":"1.1.1.1"}]"#,
    );
    check(PODS, r#"{"status":{"podIPs":[{"ip":"2.2.2.2"}]}}"#, r#"status/podIP "2.2.2.2""#);
}

#[test]
fn containers() {
    check(
        PODS,
        r#"{"spec":{"hostNetwork":true,"containers":[{
            "ports":[{"containerPort":80},{"containerPort":81,"hostPort":8081,"protocol":"UDP"}],
            "livenessProbe":{"httpGet":{"port":80},"periodSeconds":3},"startupProbe":{"grpc":{"port":1}},
            "lifecycle":{"preStop":{"httpGet":{"port":80}}},
            "env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}],
            "ephemeralContainers":[{"name":"e","image":"x","ports":[{"containerPort":1}]}]}}"#,
        r#"spec/containers/0/ports/0 {"containerPort":80,"hostPort":80,"protocol":"TCP"}
        spec/containers/0/ports/1 {"containerPort":81,"hostPort":8081,"protocol":"UDP"}
        spec/containers/0/livenessProbe/timeoutSeconds 1
        spec/containers/0/livenessProbe/periodSeconds 3
        spec/containers/0/livenessProbe/successThreshold 1
        spec/containers/0/livenessProbe/failureThreshold 3
        spec/containers/0/livenessProbe/httpGet {"port":80,"path":"/","scheme":"HTTP"}
        spec/containers/0/startupProbe/grpc {"port":1,"service":""}
        spec/containers/0/lifecycle/preStop/httpGet {"port":80,"path":"/","scheme":"HTTP"}
        spec/containers/0/env/0/valueFrom/fieldRef {"apiVersion":"v1","fieldPath":"metadata.name"}
        spec/ephemeralContainers/0/imagePullPolicy "Always"
        spec/ephemeralContainers/0/ports/0 {"containerPort":1,"protocol":"TCP"}"#,
    );
}

#[test]
fn volumes() {
    check(
        PODS,
        r#"{"spec":{"volumes":[{"name":"a"},{"name":"b","hostPath":{"path":"/"}},{"name":"c","secret":{}},
            {"name":"d","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}},{"name":"e","iscsi":{}},
            {"name":"f","rbd":{}},{"name":"g","azureDisk":{}},{"name":"h","image":{"reference":"x:1"}},
            {"name":"i","ephemeral":{"volumeClaimTemplate":{"spec":{"resources":{"requests":{"storage":"1.0001"}}}}}}]}}"#,
        r#"spec/volumes/0 {"name":"a","emptyDir":{}}
        spec/volumes/1/hostPath {"path":"/","type":""}
        spec/volumes/2/secret {"defaultMode":420}
        spec/volumes/3/projected/defaultMode 420
        spec/volumes/3/projected/sources/0/serviceAccountToken/expirationSeconds 3600
        spec/volumes/4/iscsi {"iscsiInterface":"default"}
        spec/volumes/5/rbd {"keyring":"/etc/ceph/keyring","pool":"rbd","user":"admin"}
        spec/volumes/6/azureDisk {"cachingMode":"ReadWrite","fsType":"ext4","kind":"Shared","readOnly":false}
        spec/volumes/7/image {"reference":"x:1","pullPolicy":"IfNotPresent"}
        spec/volumes/8/ephemeral/volumeClaimTemplate/spec {"resources":{"requests":{"storage":"1001m"}},"volumeMode":"Filesystem"}"#,
    );
}

#[test]
fn resources_of_a_whole_pod() {
    let containers = r#""containers":[{"name":"a","resources":{"requests":{"cpu":"500m"},"limits":{"hugepages-2Mi":"4Mi"}}},
        {"name":"b","resources":{"requests":{"cpu":"1500m"}}}],
        "initContainers":[{"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"250m"}}},
        {"name":"i","resources":{"requests":{"cpu":"3"}}}]"#;
    check(
        PODS,
        &format!(r#"{{"spec":{{"resources":{{"limits":{{"cpu":"4","memory":"1Gi"}}}},{containers}}}}}"#),
        r#"spec/resources/limits {"cpu":"4","memory":"1Gi","hugepages-2Mi":"4Mi"}
        spec/resources/requests {"cpu":"3250m","memory":"1Gi","hugepages-2Mi":"4Mi"}"#,
    );
    check(PODS, &format!(r#"{{"spec":{{"resources":{{}},{containers}}}}}"#), "spec/resources {}");
}

#[test]
fn amounts_are_rounded_up_to_thousandths() {
    check(
        ("", "v1", "resourcequotas"),
        r#"{"spec":{"hard":{"a":"0.00001","b":"100n","c":"1500m","d":"1Gi","e":"1e3"}}}"#,
        r#"spec/hard {"a":"1m","b":"1m","c":"1500m","d":"1Gi","e":"1e3"}"#,
    );
}

#[test]
fn services() {
    check(
        SERVICES,
        r#"{"spec":{"ports":[{"port":80},{"port":81,"targetPort":"http"}],"sessionAffinityConfig":{}}}"#,
        r#"spec/type "ClusterIP"
        spec/sessionAffinity "None"
        spec/sessionAffinityConfig -
        spec/internalTrafficPolicy "Cluster"
        spec/externalTrafficPolicy -
        spec/ports/0 {"port":80,"protocol":"TCP","targetPort":80}
        spec/ports/1 {"port":81,"protocol":"TCP","targetPort":"http"}"#,
    );
    check(
        SERVICES,
        r#"{"spec":{"type":"LoadBalancer","sessionAffinity":"ClientIP"},
            "status":{"loadBalancer":{"ingress":[{"ip":"1.1.1.1"},{"hostname":"h"}]}}}"#,
        r#"spec/sessionAffinityConfig {"clientIP":{"timeoutSeconds":10800}}
        spec/externalTrafficPolicy "Cluster"
        spec/allocateLoadBalancerNodePorts true
        status/loadBalancer/ingress [{"ip":"1.1.1.1","ipMode":"VIP"},{"hostname":"h"}]"#,
    );
    check(
        SERVICES,
        r#"{"spec":{"type":"ExternalName"}}"#,
        r#"spec/internalTrafficPolicy -
        spec/allocateLoadBalancerNodePorts -"#,
    );
}

#[test]
fn updates_of_workloads() {
    check(
        ("apps", "v1", "deployments"),
        r#"{"metadata":{"annotations":{"deprecated.deployment.rollback.to":"07"}},"spec":{"strategy":{"rollingUpdate":{"maxSurge":1}}}}"#,
        r#"metadata/annotations {"deprecated.deployment.rollback.to":"7"}
        spec/replicas 1
        spec/revisionHistoryLimit 10
        spec/progressDeadlineSeconds 600
        spec/strategy {"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":"25%"}}"#,
    );
    check(
        ("apps", "v1", "deployments"),
        r#"{"spec":{"strategy":{"type":"Recreate"},"replicas":0}}"#,
        r#"spec/strategy {"type":"Recreate"}
        spec/replicas 0"#,
    );
    let sets = ("apps", "v1", "statefulsets");
    check(
        sets,
        r#"{"spec":{"volumeClaimTemplates":[{"spec":{}}],"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}}}"#,
        r#"spec/updateStrategy {"type":"RollingUpdate","rollingUpdate":{"partition":0}}
        spec/podManagementPolicy "OrderedReady"
        spec/persistentVolumeClaimRetentionPolicy {"whenDeleted":"Retain","whenScaled":"Delete"}
        spec/volumeClaimTemplates/0 {"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"volumeMode":"Filesystem"},"status":{"phase":"Pending"}}"#,
    );
    // Only a strategy without a type gets a partition.
    check(
        sets,
        r#"{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}"#,
        r#"spec/updateStrategy {"type":"RollingUpdate"}"#,
    );
    check(
        ("apps", "v1", "daemonsets"),
        "{}",
        r#"spec/updateStrategy {"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}
        metadata/annotations {"deprecated.daemonset.template.generation":"0"}"#,
    );
}

#[test]
fn jobs_and_their_labels() {
    let template = r#""template":{"metadata":{"labels":{"a":"b"}}}"#;
    check(
        JOBS,
        &format!(r#"{{"spec":{{{template}}}}}"#),
        r#"metadata/labels {"a":"b"}
        spec/completions 1
        spec/parallelism 1
        spec/backoffLimit 6
        spec/completionMode "NonIndexed"
        spec/suspend false
        spec/podReplacementPolicy "TerminatingOrFailed"
        spec/manualSelector false"#,
    );
    check(
        JOBS,
        &format!(
            r#"{{"metadata":{{"labels":{{"c":"d"}}}},"spec":{{"parallelism":2,"backoffLimitPerIndex":1,"podFailurePolicy":{{"rules":[{{"onPodConditions":[{{"type":"X"}}]}}]}},{template}}}}}"#
        ),
        r#"metadata/labels {"c":"d"}
        spec/completions -
        spec/parallelism 2
        spec/backoffLimit 2147483647
        spec/podReplacementPolicy "Failed"
        spec/podFailurePolicy/rules/0/onPodConditions/0/status "True""#,
    );
    check(
        ("batch", "v1", "cronjobs"),
        r#"{"spec":{"jobTemplate":{"spec":{}}}}"#,
        r#"spec/concurrencyPolicy "Allow"
        spec/failedJobsHistoryLimit 1
        spec/jobTemplate/spec/parallelism -"#,
    );
    check(
        ("", "v1", "replicationcontrollers"),
        &format!(r#"{{"spec":{{{template}}}}}"#),
        r#"metadata/labels {"a":"b"}
        spec/selector {"a":"b"}
        spec/replicas 1"#,
    );
}

#[test]
fn autoscalers() {
    let autoscalers = ("autoscaling", "v2", "horizontalpodautoscalers");
    check(
        autoscalers,
        r#"{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":"[]"}},"spec":{"behavior":{"scaleDown":{"selectPolicy":"Min"}}}}"#,
        r#"metadata/annotations -
        spec/minReplicas 1
        spec/metrics [{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]
        spec/behavior/scaleUp/stabilizationWindowSeconds 0
        spec/behavior/scaleUp/policies [{"type":"Pods","value":4,"periodSeconds":15},{"type":"Percent","value":100,"periodSeconds":15}]
        spec/behavior/scaleDown {"selectPolicy":"Min","policies":[{"type":"Percent","value":100,"periodSeconds":15}]}"#,
    );
    let target = r#"spec {"minReplicas":1,"targetCPUUtilizationPercentage":80}"#;
    check(("autoscaling", "v1", "horizontalpodautoscalers"), "{}", target);
}

#[test]
fn objects_of_the_cluster() {
    check(
        ("", "v1", "namespaces"),
        r#"{"metadata":{"name":"a","labels":{"kubernetes.io/metadata.name":"b"}}}"#,
        r#"metadata/labels {"kubernetes.io/metadata.name":"a"}
        status/phase "Active""#,
    );
    check(("", "v1", "namespaces"), r#"{"metadata":{"generateName":"a"}}"#, "metadata/labels -");
    check(
        ("", "v1", "nodes"),
        r#"{"spec":{"podCIDR":"10.0.0.0/24"},"status":{"capacity":{"cpu":"0.0001"}}}"#,
        r#"spec/podCIDRs ["10.0.0.0/24"]
        status/capacity {"cpu":"1m"}
        status/allocatable {"cpu":"1m"}"#,
    );
    check(
        ("", "v1", "limitranges"),
        r#"{"spec":{"limits":[{"type":"Container","max":{"cpu":"2","memory":"2"},"min":{"cpu":"1","x":"3"},"default":{"cpu":"1"}},{"type":"Pod","max":{"cpu":"1"}}]}}"#,
        r#"spec/limits/0/default {"cpu":"1","memory":"2"}
        spec/limits/0/defaultRequest {"cpu":"1","memory":"2","x":"3"}
        spec/limits/1 {"type":"Pod","max":{"cpu":"1"}}"#,
    );
    check(
        ("", "v1", "persistentvolumes"),
        r#"{"spec":{"hostPath":{"path":"/"}}}"#,
        r#"spec {"hostPath":{"path":"/","type":""},"persistentVolumeReclaimPolicy":"Retain","volumeMode":"Filesystem"}
        status/phase "Pending""#,
    );
    check(
        ("storage.k8s.io", "v1", "volumeattachments"),
        r#"{"spec":{"source":{"inlineVolumeSpec":{"hostPath":{"path":"/"}}}}}"#,
        r#"spec/source/inlineVolumeSpec {"hostPath":{"path":"/","type":""}}"#,
    );
    check(
        ("", "v1", "secrets"),
        r#"{"data":{"a":"eA==","b":"eQ=="},"stringData":{"a":"z"}}"#,
        r#"type "Opaque"
        data {"a":"eg==","b":"eQ=="}
        stringData -"#,
    );
}

#[test]
fn kinds_of_other_groups() {
    check(
        ("rbac.authorization.k8s.io", "v1", "rolebindings"),
        r#"{"roleRef":{"kind":"Role"},"subjects":[{"kind":"User"},{"kind":"ServiceAccount"}]}"#,
        r#"roleRef/apiGroup "rbac.authorization.k8s.io"
        subjects/0/apiGroup "rbac.authorization.k8s.io"
        subjects/1/apiGroup -"#,
    );
    check(
        ("networking.k8s.io", "v1", "networkpolicies"),
        r#"{"spec":{"egress":[{"ports":[{}]}]}}"#,
        r#"spec/policyTypes ["Ingress","Egress"]
        spec/egress/0/ports/0 {"protocol":"TCP"}"#,
    );
    check(("networking.k8s.io", "v1", "networkpolicies"), "{}", r#"spec/policyTypes ["Ingress"]"#);
    check(("storage.k8s.io", "v1", "csidrivers"), "{}", r#"spec/volumeLifecycleModes ["Persistent"]"#);
    let marker = r#"{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"Exists"}"#;
    let budgets = ("policy", "v1", "poddisruptionbudgets");
    let budget = |expressions: &str| format!(r#"{{"spec":{{"selector":{{"matchExpressions":[{expressions}]}}}}}}"#);
    check(budgets, &budget(marker), &format!("spec/selector/matchExpressions [{marker}]"));
    let other = r#"{"key":"a","operator":"Exists"}"#;
    check(budgets, &budget(&format!("{marker},{other}")), &format!("spec/selector/matchExpressions [{other}]"));
    check(
        ("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"),
        r#"{"webhooks":[{"rules":[{}],"clientConfig":{"service":{}}}]}"#,
        r#"webhooks/0 {"clientConfig":{"service":{"port":443}},"failurePolicy":"Fail","matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},"reinvocationPolicy":"Never","rules":[{"scope":"*"}],"timeoutSeconds":10}"#,
    );
    check(
        ("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations"),
        r#"{"spec":{"limited":{"nominalConcurrencyShares":0,"limitResponse":{"queuing":{}}}}}"#,
        r#"spec/limited {"nominalConcurrencyShares":0,"lendablePercent":0,"limitResponse":{"queuing":{"handSize":8,"queues":64,"queueLengthLimit":50}}}"#,
    );
    check(
        ("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
        r#"{"spec":{"names":{"kind":"Foo"},"versions":[{"name":"v1"},{"name":"v2","storage":true}]}}"#,
        r#"spec/names {"kind":"Foo","listKind":"FooList","singular":"foo"}
        spec/conversion {"strategy":"None"}
        status/storedVersions ["v2"]"#,
    );
}

#[test]
fn devices() {
    let claims = |version| ("resource.k8s.io", version, "resourceclaims");
    let spec = |request: &str| format!(r#"{{"spec":{{"devices":{{"requests":[{request}]}}}}}}"#);
    check(
        claims("v1"),
        &spec(r#"{"exactly":{"tolerations":[{}]}},{"firstAvailable":[{"allocationMode":"All"},{}]}"#),
        r#"spec/devices/requests/0/exactly {"allocationMode":"ExactCount","count":1,"tolerations":[{"operator":"Equal"}]}
        spec/devices/requests/1/firstAvailable [{"allocationMode":"All"},{"allocationMode":"ExactCount","count":1}]"#,
    );
    check(
        claims("v1beta1"),
        &spec(r#"{"deviceClassName":"c"},{"firstAvailable":[{}]}"#),
        r#"spec/devices/requests/0 {"allocationMode":"ExactCount","count":1,"deviceClassName":"c"}
        spec/devices/requests/1 {"firstAvailable":[{"allocationMode":"ExactCount","count":1}]}"#,
    );
    let rule = filled("resource.k8s.io", "devicetaintrules", "v1alpha3", r#"{"spec":{"taint":{}}}"#);
    assert!(at(&rule, "spec/taint/timeAdded").is_some());
}

#[test]
fn gates_bring_defaults_and_take_them_away() {
    let cases = [
        (
            "apps",
            "statefulsets",
            "MaxUnavailableStatefulSet",
            "{}",
            "spec/updateStrategy/rollingUpdate/maxUnavailable 1",
        ),
        ("storage.k8s.io", "csidrivers", "VolumeLimitScaling", "{}", "spec/preventPodSchedulingIfMissing false"),
        (
            "",
            "pods",
            "PodLevelResources",
            r#"{"spec":{"resources":{"limits":{"cpu":"1"}}}}"#,
            r#"spec/resources/requests {"cpu":"1"}"#,
        ),
    ];
    for (group, plural, gate, given, expected) in cases {
        let (path, want) = expected.split_once(' ').unwrap();
        for is_on in [true, false] {
            let defaults = Defaults::new(crate::BUILTIN, kubelith_catalog::builtin(), &|asked| asked == gate && is_on);
            let mut object = value(given);
            defaults.of(group, plural).unwrap()("v1", &mut object);
            assert_eq!(at(&object, path), is_on.then(|| value(want)).as_ref(), "{gate} {is_on}");
        }
    }
}
