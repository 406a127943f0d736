use super::*;
use crate::catalog::builtin;
use kubelith_codec::json::parse;
use kubelith_meta::{GroupVersion, Map};
use kubelith_schema::{Schema, Shape, TypeTable};
use std::collections::HashSet;

fn gvk(api_version: &str, kind: &str) -> GroupVersionKind {
    GroupVersion::parse(api_version).unwrap().with_kind(kind)
}

fn json(text: &str) -> Value {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}: {text}"))
}

/// Converts an object with only these members, and gives back the members that `want` has.
fn check(kind: &str, from: &str, to: &str, input: &str, want: &str) {
    let mut input = json(input);
    input.set_at(&["apiVersion"], from.into());
    let got = convert(input, &gvk(from, kind), &gvk(to, kind)).unwrap();
    let want = json(want);
    let got_members: Map =
        got.as_object().unwrap().iter().filter(|(k, _)| want.get(k).is_some()).map(|(k, v)| (k, v.clone())).collect();
    assert_eq!(Value::Object(got_members), want);
    assert_eq!(got.str_at(&["apiVersion"]), to);
}

/// Whether objects of one shape are objects of the other, but for what is printed when nothing is there.
fn same_shape(table: &TypeTable, a: &Schema, b: &Schema, seen: &mut HashSet<(u32, u32)>) -> bool {
    match (&a.shape, &b.shape) {
        (Shape::Named(x), Shape::Named(y)) => {
            if x == y || !seen.insert((x.0, y.0)) {
                return true;
            }
            let (x, y) = (table.get(*x), table.get(*y));
            x.fields.len() == y.fields.len()
                && x.fields
                    .iter()
                    .zip(&y.fields)
                    .all(|(f, g)| f.name == g.name && same_shape(table, &f.schema, &g.schema, seen))
        }
        (Shape::List(x), Shape::List(y)) | (Shape::Map(x), Shape::Map(y)) => same_shape(table, x, y, seen),
        (x, y) => std::mem::discriminant(x) == std::mem::discriminant(y),
    }
}

/// A version that changes the shape of a kind must come with a conversion.
#[test]
fn every_version_has_the_hubs_shape_or_is_a_spoke() {
    let c = builtin();
    for (a, id) in c.kinds() {
        let hub = c.kinds().find(|(b, _)| b.group == a.group && b.kind == a.kind && find(b).is_none());
        let Some((hub, hub_id)) = hub else {
            assert!(matches!(a.group.as_str(), "events.k8s.io" | "extensions"), "{a}");
            continue;
        };
        let schema = |id| Schema { shape: Shape::Named(id), ..Schema::default() };
        let is_list = c.kind_type(&GroupVersionKind { kind: item_kind(&a.kind).into(), ..a.clone() }) != Some(id);
        let same = is_list || same_shape(&c.table, &schema(hub_id), &schema(id), &mut HashSet::new());
        assert_eq!(
            same,
            find(a).is_none() || a.kind == "PodDisruptionBudget" || a.version == "v1beta3",
            "{a} and {hub}"
        );
    }
}

#[test]
fn only_versions_of_one_kind_convert() {
    let ok = [
        ("apps/v1", "Deployment", "apps/v1beta2", "Deployment"),
        ("apps/v1", "Deployment", "extensions/v1beta1", "Deployment"),
        ("v1", "Event", "events.k8s.io/v1", "Event"),
        ("v1", "EventList", "events.k8s.io/v1", "EventList"),
        ("admission.k8s.io/v1", "AdmissionReview", "admission.k8s.io/v1beta1", "AdmissionReview"),
    ];
    for (from, kind, to, to_kind) in ok {
        assert!(convert(Value::object(), &gvk(from, kind), &gvk(to, to_kind)).is_ok(), "{from} {kind}");
    }
    let wrong = [
        ("apps/v1", "Deployment", "apps/v1", "ReplicaSet"),
        ("apps/v1", "Deployment", "networking.k8s.io/v1", "Ingress"),
        ("apps/v1", "Deployment", "apps/v3", "Deployment"),
        ("example.com/v1", "Thing", "example.com/v2", "Thing"),
    ];
    for (from, kind, to, to_kind) in wrong {
        let error = convert(Value::object(), &gvk(from, kind), &gvk(to, to_kind)).unwrap_err();
        assert!(error.to_string().contains("cannot be converted to"), "{error}");
    }
}

#[test]
fn lists_convert_item_by_item() {
    let list = r#"{"items":[{"message":"m"},{"apiVersion":"v1","kind":"Event","message":"n"}]}"#;
    let got = convert(json(list), &gvk("v1", "EventList"), &gvk("events.k8s.io/v1", "EventList")).unwrap();
    let items = got.get("items").and_then(Value::as_array).unwrap();
    assert_eq!((items[0].str_at(&["note"]), items[1].str_at(&["note"])), ("m", "n"));
    assert_eq!((items[0].get("apiVersion"), items[1].str_at(&["apiVersion"])), (None, "events.k8s.io/v1"));
    assert_eq!(got.str_at(&["apiVersion"]), "events.k8s.io/v1");
}

#[test]
fn autoscalers_keep_in_annotations_what_v1_cannot_say() {
    let hpa = |from: &str, to: &str, input: &str, want: &str| check("HorizontalPodAutoscaler", from, to, input, want);
    let target = r#""scaleTargetRef":{"kind":"Deployment","name":"x"},"maxReplicas":5"#;
    let cpu =
        r#"{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}}"#;
    hpa(
        "autoscaling/v1",
        "autoscaling/v2",
        &format!(r#"{{"spec":{{{target},"targetCPUUtilizationPercentage":60}}}}"#),
        &format!(r#"{{"spec":{{{target},"metrics":[{cpu}]}},"status":{{"desiredReplicas":0,"currentMetrics":null}}}}"#),
    );
    // Without any metric, the default is one of 80 %.
    hpa(
        "autoscaling/v1",
        "autoscaling/v2",
        &format!(r#"{{"spec":{{{target}}}}}"#),
        &format!(r#"{{"spec":{{{target},"metrics":[{}]}}}}"#, cpu.replace("60", "80")),
    );
    // Text that is no metrics is dropped without a word.
    hpa(
        "autoscaling/v1",
        "autoscaling/v2",
        &format!(
            r#"{{"metadata":{{"annotations":{{"a":"b","autoscaling.alpha.kubernetes.io/metrics":"garbage"}}}},
            "spec":{{{target},"targetCPUUtilizationPercentage":60}}}}"#
        ),
        &format!(r#"{{"metadata":{{"annotations":{{"a":"b"}}}},"spec":{{{target},"metrics":[{cpu}]}}}}"#),
    );
    let others = r#"{"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"}}},
        {"type":"Pods","pods":{"metric":{"name":"q","selector":{"matchExpressions":[{"key":"k","operator":"Exists"}],
        "matchLabels":{"z":"1"}}},"target":{"type":"AverageValue","averageValue":"5"}}},
        {"type":"Object","object":{"describedObject":{"kind":"K","name":"n"},"metric":{"name":"o"},
        "target":{"type":"AverageValue","averageValue":"2"}}}"#;
    let behavior =
        r#"{"scaleUp":{"stabilizationWindowSeconds":30,"policies":[{"type":"Pods","value":4,"periodSeconds":15}]}}"#;
    let v2 = format!(
        r#"{{"metadata":{{}},"spec":{{{target},"metrics":[{others},{cpu}],"behavior":{behavior}}},
        "status":{{"desiredReplicas":0,"currentMetrics":null,
        "conditions":[{{"type":"A","status":"True","lastTransitionTime":null,"reason":"<r>"}}]}}}}"#
    );
    let v1 = format!(
        r#"{{"metadata":{{"annotations":{{
        "autoscaling.alpha.kubernetes.io/behavior":"{{\"ScaleUp\":{{\"StabilizationWindowSeconds\":30,\"SelectPolicy\":null,\"Policies\":[{{\"Type\":\"Pods\",\"Value\":4,\"PeriodSeconds\":15}}],\"Tolerance\":null}},\"ScaleDown\":null}}",
        "autoscaling.alpha.kubernetes.io/conditions":"[{{\"type\":\"A\",\"status\":\"True\",\"lastTransitionTime\":null,\"reason\":\"\\u003cr\\u003e\"}}]",
        "autoscaling.alpha.kubernetes.io/metrics":"[{{\"type\":\"Resource\",\"resource\":{{\"name\":\"memory\",\"targetAverageValue\":\"1Gi\"}}}},{{\"type\":\"Pods\",\"pods\":{{\"metricName\":\"q\",\"targetAverageValue\":\"5\",\"selector\":{{\"matchLabels\":{{\"z\":\"1\"}},\"matchExpressions\":[{{\"key\":\"k\",\"operator\":\"Exists\"}}]}}}}}},{{\"type\":\"Object\",\"object\":{{\"target\":{{\"kind\":\"K\",\"name\":\"n\"}},\"metricName\":\"o\",\"targetValue\":\"0\",\"averageValue\":\"2\"}}}}]"
        }}}},"spec":{{{target},"targetCPUUtilizationPercentage":60}},"status":{{"currentReplicas":0,"desiredReplicas":0}}}}"#
    );
    hpa("autoscaling/v2", "autoscaling/v1", &v2, &v1);
    hpa("autoscaling/v1", "autoscaling/v2", &v1, &v2);
}

#[test]
fn shapes_change_and_change_back() {
    let cases = [
        (
            "Event",
            ["v1", "events.k8s.io/v1"],
            r#"{"involvedObject":{"name":"a"},"message":"m","source":{"component":"c"},"count":2,"reportingComponent":"r"}"#,
            r#"{"regarding":{"name":"a"},"note":"m","deprecatedSource":{"component":"c"},"deprecatedCount":2,"reportingController":"r"}"#,
        ),
        (
            "ResourceClaim",
            ["resource.k8s.io/v1", "resource.k8s.io/v1beta1"],
            r#"{"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c","count":2}},{"name":"b","firstAvailable":[{"name":"x","deviceClassName":"d"}]}]}}}"#,
            r#"{"spec":{"devices":{"requests":[{"name":"a","deviceClassName":"c","count":2},{"name":"b","deviceClassName":"","firstAvailable":[{"name":"x","deviceClassName":"d"}]}]}}}"#,
        ),
        (
            "ResourceSlice",
            ["resource.k8s.io/v1", "resource.k8s.io/v1beta1"],
            r#"{"spec":{"driver":"d","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[{"name":"a","bindsToNode":true}]}}"#,
            r#"{"spec":{"driver":"d","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[{"name":"a","basic":{"bindsToNode":true}}]}}"#,
        ),
        (
            "CustomResourceDefinition",
            ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"],
            r#"{"spec":{"group":"g","names":{"kind":"K","plural":"ks"},"scope":"Cluster","conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"u"}}},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".a"}]},{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
            r#"{"spec":{"group":"g","version":"v1","preserveUnknownFields":false,"names":{"kind":"K","plural":"ks"},"scope":"Cluster","conversion":{"strategy":"Webhook","conversionReviewVersions":["v1"],"webhookClientConfig":{"url":"u"}},"validation":{"openAPIV3Schema":{"type":"object"}},"versions":[{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":[{"name":"A","type":"string","JSONPath":".a"}]},{"name":"v2","served":true,"storage":false}]}}"#,
        ),
        (
            "PriorityLevelConfiguration",
            ["flowcontrol.apiserver.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1beta2"],
            r#"{"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":5,"limitResponse":{"type":"Reject"}}}}"#,
            r#"{"spec":{"type":"Limited","limited":{"assuredConcurrencyShares":5,"limitResponse":{"type":"Reject"}}}}"#,
        ),
        (
            "SubjectAccessReview",
            ["authorization.k8s.io/v1", "authorization.k8s.io/v1beta1"],
            r#"{"spec":{"user":"u","groups":["g"]}}"#,
            r#"{"spec":{"user":"u","group":["g"]}}"#,
        ),
        (
            "EndpointSlice",
            ["discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"],
            r#"{"endpoints":[{"addresses":["10.0.0.1"],"conditions":{},"nodeName":"n","zone":"z","deprecatedTopology":{"rack":"r"}}]}"#,
            r#"{"endpoints":[{"addresses":["10.0.0.1"],"conditions":{},"nodeName":"n","topology":{"kubernetes.io/hostname":"n","rack":"r","topology.kubernetes.io/zone":"z"}}]}"#,
        ),
        (
            "Ingress",
            ["networking.k8s.io/v1", "networking.k8s.io/v1beta1"],
            r#"{"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}"#,
            r#"{"spec":{"backend":{"serviceName":"s","servicePort":80}}}"#,
        ),
        (
            "RuntimeClass",
            ["node.k8s.io/v1", "node.k8s.io/v1alpha1"],
            r#"{"handler":"h","scheduling":{"nodeSelector":{"a":"b"}}}"#,
            r#"{"spec":{"runtimeHandler":"h","scheduling":{"nodeSelector":{"a":"b"}}}}"#,
        ),
        (
            "RoleBinding",
            ["rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/v1alpha1"],
            r#"{"subjects":[{"kind":"User","name":"u","apiGroup":"rbac.authorization.k8s.io"},{"kind":"ServiceAccount","name":"s"}]}"#,
            r#"{"subjects":[{"kind":"User","name":"u","apiVersion":"rbac.authorization.k8s.io/v1alpha1"},{"kind":"ServiceAccount","name":"s","apiVersion":"v1"}]}"#,
        ),
        (
            "PodDisruptionBudget",
            ["policy/v1", "policy/v1beta1"],
            r#"{"spec":{"selector":{}}}"#,
            r#"{"spec":{"selector":{"matchExpressions":[{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"DoesNotExist"}]}}}"#,
        ),
        (
            "Deployment",
            ["apps/v1", "apps/v1beta1"],
            r#"{"metadata":{"annotations":{"deprecated.deployment.rollback.revision":"3"}}}"#,
            r#"{"spec":{"rollbackTo":{"revision":3},"strategy":{},"template":{"metadata":{},"spec":{"containers":null}}}}"#,
        ),
    ];
    for (kind, [hub, other], hub_form, other_form) in cases {
        check(kind, hub, other, hub_form, other_form);
        check(kind, other, hub, other_form, hub_form);
    }
}

/// Definitions from before there was pruning say nothing of it.
#[test]
fn old_definitions_do_not_prune() {
    check(
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1beta1",
        "apiextensions.k8s.io/v1",
        r#"{"spec":{"group":"g","version":"v1","names":{"kind":"K","plural":"ks"},"scope":"Cluster"}}"#,
        r#"{"spec":{"group":"g","names":{"kind":"K","plural":"ks"},"scope":"Cluster","preserveUnknownFields":true,"versions":[{"name":"v1","served":true,"storage":true}]}}"#,
    );
}

#[test]
fn objects_are_normalized_as_the_internal_types_do() {
    let template = r#"{"metadata":{},"spec":{"containers":null,"securityContext":{},"serviceAccount":"a","serviceAccountName":"a"}}"#;
    let cases = [
        (
            "v1",
            "Pod",
            r#"{"spec":{"containers":null,"serviceAccount":"a"}}"#,
            r#"{"spec":{"containers":null,"securityContext":{},"serviceAccount":"a","serviceAccountName":"a"}}"#,
        ),
        (
            "v1",
            "Pod",
            r#"{"spec":{"containers":null,"serviceAccount":"a","serviceAccountName":"b","terminationGracePeriodSeconds":-5}}"#,
            r#"{"spec":{"containers":null,"securityContext":{},"serviceAccount":"b","serviceAccountName":"b","terminationGracePeriodSeconds":1}}"#,
        ),
        (
            "v1",
            "Pod",
            r#"{"metadata":{"annotations":{"pod.beta.kubernetes.io/init-containers":"[]","a":"b"}}}"#,
            r#"{"metadata":{"annotations":{"a":"b"}}}"#,
        ),
        (
            "v1",
            "Pod",
            r#"{"status":{"podIP":"1.1.1.1","podIPs":[{"ip":"2.2.2.2"},{"ip":"::1"}]}}"#,
            r#"{"status":{"podIP":"1.1.1.1","podIPs":[{"ip":"1.1.1.1"}]}}"#,
        ),
        (
            "v1",
            "Pod",
            r#"{"status":{"podIPs":[{"ip":"2.2.2.2"},{"ip":"::1"}]}}"#,
            r#"{"status":{"podIP":"2.2.2.2","podIPs":[{"ip":"2.2.2.2"},{"ip":"::1"}]}}"#,
        ),
        (
            "v1",
            "Node",
            r#"{"spec":{"podCIDR":"10.0.0.0/24"}}"#,
            r#"{"spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24"]}}"#,
        ),
        (
            "v1",
            "Node",
            r#"{"spec":{"podCIDRs":["10.0.0.0/24","fd::/64"]}}"#,
            r#"{"spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24","fd::/64"]}}"#,
        ),
        (
            "v1",
            "Secret",
            r#"{"data":{"a":"eA==","b":"eQ=="},"stringData":{"a":"z"}}"#,
            r#"{"data":{"a":"eg==","b":"eQ=="}}"#,
        ),
        (
            "apps/v1",
            "DaemonSet",
            r#"{"metadata":{"name":"d"}}"#,
            r#"{"metadata":{"name":"d","annotations":{"deprecated.daemonset.template.generation":"0"}}}"#,
        ),
        (
            "apps/v1",
            "StatefulSet",
            r#"{"spec":{"selector":null,"serviceName":"","volumeClaimTemplates":[{"metadata":{"name":"c"}}]}}"#,
            r#"{"spec":{"selector":null,"serviceName":"","template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{},"volumeClaimTemplates":[{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"resources":{}},"status":{}}]}}"#,
        ),
        (
            "v1",
            "PodTemplate",
            r#"{"template":{"spec":{"serviceAccount":"a"}}}"#,
            &format!(r#"{{"template":{template}}}"#),
        ),
        ("v1", "ConfigMap", r#"{"data":{"a":"b"}}"#, r#"{"data":{"a":"b"}}"#),
        (
            "policy/v1",
            "PodDisruptionBudget",
            r#"{"spec":{"selector":{"matchExpressions":[{"key":"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match","operator":"Exists"},{"key":"a","operator":"Exists"}]}}}"#,
            r#"{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}}"#,
        ),
    ];
    for (api_version, kind, input, want) in cases {
        let mut got = json(input);
        normalize(&mut got, &gvk(api_version, kind));
        for (key, value) in json(want).as_object().unwrap().iter() {
            assert_eq!(got.get(key), Some(value), "{api_version} {kind} {input}");
        }
    }
}
