use super::*;
use kubelith_codec::json;
use kubelith_schema::Cell;

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Two days after the times in the objects below.
/// Of the built-in kinds.
fn builtin() -> KindCells {
    KindCells::new(kubelith_kinds::BUILTIN)
}

fn now() -> Time {
    Time::parse("2025-01-03T00:00:00Z").unwrap()
}

const THEN: &str = "2025-01-01T00:00:00Z";

/// `want` is JSON, or `-` if the function has nothing to say.
fn check(function: &str, cases: &[(&str, &str)]) {
    for (object, want) in cases {
        let got = builtin().cell(function, &value(object), &[], now());
        let want = Some(*want).filter(|w| *w != "-").map(value);
        assert_eq!(got, want, "{function} of {object}");
    }
}

/// The same for functions of arguments.
fn check_arguments(function: &str, cases: &[(&[&str], &str)]) {
    for (arguments, want) in cases {
        let arguments: Vec<Value> = arguments.iter().map(|a| value(a)).collect();
        let found: Vec<Option<&Value>> = arguments.iter().map(|a| Some(a).filter(|a| !a.is_null())).collect();
        let got = builtin().cell(function, &Value::Null, &found, now());
        let want = Some(*want).filter(|w| *w != "-").map(value);
        assert_eq!(got, want, "{function}({arguments:?})");
    }
}

#[test]
fn the_catalogue_names_functions_that_exist() {
    for descriptor in &kubelith_catalog::builtin().descriptors {
        for column in descriptor.versions.iter().flat_map(|v| &v.columns) {
            if let Cell::Function(name) = &column.cell {
                assert!(builtin().0.contains_key(&**name), "{name}, for {} of {}", column.name, descriptor.plural);
            }
        }
    }
}

/// No object is so empty or so odd that a cell panics.
#[test]
fn odd_objects() {
    let odd =
        ["null", "{}", "[]", r#"{"spec":[],"status":"x","metadata":3}"#, r#"{"status":{"conditions":[null,3,{}]}}"#];
    for descriptor in &kubelith_catalog::builtin().descriptors {
        for column in descriptor.versions.iter().flat_map(|v| &v.columns) {
            if let Cell::Function(name) = &column.cell {
                for object in odd.map(value) {
                    builtin().cell(name, &object, &[Some(&object)], now());
                    builtin().cell(name, &object, &[None], now());
                }
            }
        }
    }
}

#[test]
fn generic_functions() {
    check_arguments(
        "age",
        &[(&["null"], "-"), (&[r#""2025-01-01T00:00:00Z""#], r#""2d""#), (&[r#""x""#], r#""<invalid>""#)],
    );
    check_arguments("count", &[(&["null"], "0"), (&["[1,2]", r#"{"a":1}"#], "3")]);
    check_arguments("flag", &[(&["true"], r#""True""#), (&["false"], r#""False""#), (&["null"], "-")]);
    check_arguments("fraction", &[(&["null", "3"], r#""0/3""#), (&["1", "2"], r#""1/2""#)]);
    check_arguments("join", &[(&[r#"["a","b"]"#], r#""a,b""#), (&["null"], "-")]);
    check_arguments("labels", &[(&["null"], r#""<none>""#), (&[r#"{"b":"2","a":"1"}"#], r#""a=1,b=2""#)]);
    check_arguments("nonempty", &[(&[r#""""#], "-"), (&[r#""x""#], r#""x""#)]);
    check_arguments("text", &[(&["3"], r#""3""#), (&[r#""50%""#], r#""50%""#), (&["null"], "-")]);
    let selector = r#"{"matchLabels":{"b":"c"},"matchExpressions":[{"key":"a","operator":"In","values":["y","x"]},{"key":"d","operator":"DoesNotExist"}]}"#;
    check_arguments(
        "selector",
        &[
            (&["null"], r#""<none>""#),
            (&["{}"], r#""<none>""#),
            (&[selector], r#""a in (x,y),b=c,!d""#),
            (&[r#"{"matchExpressions":[{"key":"a","operator":"?"}]}"#], r#""<error>""#),
        ],
    );
}

/// `phase` and the states of containers and init containers make the status.
#[test]
fn status_of_pods() {
    let waiting = |reason: &str| format!(r#"{{"state":{{"waiting":{{"reason":"{reason}"}}}}}}"#);
    let ended = |code: i32, reason: &str, signal: i32| {
        format!(r#"{{"state":{{"terminated":{{"exitCode":{code},"reason":"{reason}","signal":{signal}}}}}}}"#)
    };
    let running = r#"{"ready":true,"state":{"running":{}}}"#;
    let pod = |init: &str, containers: &[&str], conditions: &str| {
        format!(
            r#"{{"spec":{{"containers":[{{}},{{}}],"initContainers":[{{"name":"i"}},{{"name":"j"}}]}},
            "status":{{"phase":"Phase","initContainerStatuses":[{init}],"containerStatuses":[{}],"conditions":[{conditions}]}}}}"#,
            containers.join(",")
        )
    };
    let (completed, failed) = (ended(0, "Completed", 0), ended(1, "Error", 0));
    let ready = r#"{"type":"Ready","status":"True"}"#;
    let cases = [
        (pod("", &[], ""), "Phase"),
        (pod("", &[&waiting("CrashLoopBackOff"), running], ""), "CrashLoopBackOff"),
        (pod("", &[&ended(3, "", 0)], ""), "ExitCode:3"),
        (pod("", &[&ended(3, "", 9)], ""), "Signal:9"),
        (pod("", &[&completed, running], ready), "Running"),
        (pod("", &[&completed, running], ""), "NotReady"),
        (pod("", &[&completed, &failed], ""), "Error"),
        (pod("", &[&completed], ""), "Completed"),
        (pod(&waiting("PodInitializing"), &[running], ""), "Init:0/2"),
        (pod(&waiting("ErrImagePull"), &[], ""), "Init:ErrImagePull"),
        (pod(&format!("{},{{}}", ended(0, "", 0)), &[], ""), "Init:1/2"),
        (pod(&ended(1, "", 0), &[], ""), "Init:ExitCode:1"),
        (pod(&ended(1, "", 2), &[], ""), "Init:Signal:2"),
        (pod(&ended(1, "OOMKilled", 0), &[], ""), "Init:OOMKilled"),
        (pod(&ended(1, "", 0), &[&waiting("X")], r#"{"type":"Initialized","status":"True"}"#), "X"),
        (pod("", &[], r#"{"type":"PodScheduled","reason":"SchedulingGated"}"#), "SchedulingGated"),
        (r#"{"status":{"phase":"Failed","reason":"Evicted"}}"#.to_owned(), "Evicted"),
        (format!(r#"{{"metadata":{{"deletionTimestamp":"{THEN}"}},"status":{{"phase":"Running"}}}}"#), "Terminating"),
        (format!(r#"{{"metadata":{{"deletionTimestamp":"{THEN}"}},"status":{{"phase":"Failed"}}}}"#), "Failed"),
        (format!(r#"{{"metadata":{{"deletionTimestamp":"{THEN}"}},"status":{{"reason":"NodeLost"}}}}"#), "Unknown"),
    ];
    for (object, want) in cases {
        check("pod_status", &[(&object, &format!("{want:?}"))]);
    }
}

#[test]
fn containers_of_pods() {
    let restarted = format!(
        r#"{{"name":"x","restartCount":2,"lastState":{{"terminated":{{"finishedAt":"{THEN}"}}}},"state":{{"running":{{}}}},"ready":true,"started":true}}"#
    );
    let pod = format!(
        r#"{{"spec":{{"containers":[{{}}],"initContainers":[{{"name":"x","restartPolicy":"Always"}}]}},
        "status":{{"initContainerStatuses":[{restarted}],"containerStatuses":[{restarted}],"podIPs":[{{"ip":"1.1.1.1"}}]}}}}"#
    );
    check("pod_ready", &[("{}", r#""0/0""#), (&pod, r#""2/2""#)]);
    check("pod_restarts", &[("{}", r#""0""#), (&pod, r#""4 (2d ago)""#)]);
    check("pod_ip", &[("{}", r#""<none>""#), (&pod, r#""1.1.1.1""#)]);
    let gates = r#"{"spec":{"readinessGates":[{"conditionType":"a"},{"conditionType":"b"}]},"status":{"conditions":[{"type":"a","status":"True"}]}}"#;
    check("pod_readiness_gates", &[("{}", r#""<none>""#), (gates, r#""1/2""#)]);
}

#[test]
fn ended_pods_say_so_in_their_row() {
    let pod = |phase: &str| value(&format!(r#"{{"apiVersion":"v1","kind":"Pod","status":{{"phase":"{phase}"}}}}"#));
    assert_eq!(builtin().row_conditions(&pod("Running")), None);
    let conditions = builtin().row_conditions(&pod("Failed")).unwrap();
    assert_eq!(
        conditions,
        value(r#"[{"type":"Completed","status":"True","reason":"Failed","message":"The pod failed."}]"#)
    );
}

#[test]
fn workloads() {
    let condition = |kind: &str| format!(r#"{{"status":{{"conditions":[{{"type":"{kind}","status":"True"}}]}}}}"#);
    for kind in ["Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"] {
        check("job_status", &[(&condition(kind), &format!("{kind:?}"))]);
    }
    check("job_status", &[("{}", r#""Running""#)]);
    check(
        "job_completions",
        &[
            (r#"{"spec":{"completions":3},"status":{"succeeded":1}}"#, r#""1/3""#),
            (r#"{"spec":{"parallelism":1}}"#, r#""0/1""#),
            (r#"{"spec":{"parallelism":4}}"#, r#""0/1 of 4""#),
        ],
    );
    let started = format!(r#"{{"status":{{"startTime":"{THEN}"}}}}"#);
    let done = format!(r#"{{"status":{{"startTime":"{THEN}","completionTime":"2025-01-01T00:01:00Z"}}}}"#);
    check("job_duration", &[("{}", "-"), (&started, r#""2d""#), (&done, r#""60s""#)]);
    check(
        "controller_name",
        &[
            ("{}", r#""<none>""#),
            (
                r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"y"},{"apiVersion":"apps/v1","kind":"StatefulSet","name":"web","controller":true}]}}"#,
                r#""statefulset.apps/web""#,
            ),
        ],
    );
    check(
        "deployment_selector",
        &[("{}", r#""""#), (r#"{"spec":{"selector":{"matchLabels":{"a":"b"}}}}"#, r#""a=b""#)],
    );
    check_arguments("container_names", &[(&["null"], r#""""#), (&[r#"[{"name":"a"},{"name":"b"}]"#], r#""a,b""#)]);
    check("pod_group_policy", &[("{}", r#""Basic""#), (r#"{"spec":{"schedulingPolicy":{"gang":{}}}}"#, r#""Gang""#)]);
    check("pod_group_status", &[("{}", r#""Pending""#), (&condition("PodGroupScheduled"), r#""Scheduled""#)]);
}

#[test]
fn services_and_endpoints() {
    let service = |kind: &str, external: &str, ingress: &str| {
        format!(
            r#"{{"spec":{{"type":"{kind}","externalIPs":[{external}],"externalName":"n"}},"status":{{"loadBalancer":{{"ingress":[{ingress}]}}}}}}"#
        )
    };
    let ingress = r#"{"ip":"9.9.9.9"},{"hostname":"a.b"},{"ip":"1.1.1.1"}"#;
    check(
        "service_external_ip",
        &[
            (&service("ClusterIP", "", ""), r#""<none>""#),
            (&service("NodePort", r#""1.2.3.4","5.6.7.8""#, ""), r#""1.2.3.4,5.6.7.8""#),
            (&service("LoadBalancer", "", ""), r#""<pending>""#),
            (&service("LoadBalancer", "", ingress), r#""1.1.1.1,9.9.9.9,a.b""#),
            (&service("LoadBalancer", r#""2.2.2.2""#, ingress), r#""1.1.1.1,9.9.9.9,a.b,2.2.2.2""#),
            (&service("ExternalName", "", ""), r#""n""#),
            (&service("", "", ""), r#""<unknown>""#),
        ],
    );
    check(
        "service_ports",
        &[
            ("{}", r#""<none>""#),
            (
                r#"{"spec":{"ports":[{"port":80,"protocol":"TCP"},{"port":53,"nodePort":30053,"protocol":"UDP"}]}}"#,
                r#""80/TCP,53:30053/UDP""#,
            ),
        ],
    );
    check(
        "endpoints",
        &[
            ("{}", r#""<none>""#),
            (r#"{"subsets":[{"addresses":[{"ip":"1.1.1.1"}]}]}"#, r#""1.1.1.1""#),
            (
                r#"{"subsets":[{"addresses":[{"ip":"1.1.1.1"},{"ip":"::1"}],"ports":[{"port":80},{"port":81}]},{"addresses":[{"ip":"2.2.2.2"}],"ports":[{"port":1}]}]}"#,
                r#""1.1.1.1:80,[::1]:80,1.1.1.1:81 + 2 more...""#,
            ),
        ],
    );
    check(
        "slice_ports",
        &[("{}", r#""<unset>""#), (r#"{"ports":[{"port":80},{"name":"x"},{},{"port":1}]}"#, r#""80,x,* + 1 more...""#)],
    );
    check("slice_endpoints", &[(r#"{"endpoints":[{"addresses":["1.1.1.1","2.2.2.2"]}]}"#, r#""1.1.1.1,2.2.2.2""#)]);
    check(
        "ingress_hosts",
        &[
            ("{}", r#""*""#),
            (r#"{"spec":{"rules":[{"host":"a"},{},{"host":"b"},{"host":"c"}]}}"#, r#""a,b,c""#),
            (
                r#"{"spec":{"rules":[{"host":"a"},{"host":"b"},{"host":"c"},{"host":"d"},{}]}}"#,
                r#""a,b,c + 2 more...""#,
            ),
        ],
    );
    check("ingress_ports", &[("{}", r#""80""#), (r#"{"spec":{"tls":[{}]}}"#, r#""80, 443""#)]);
    check(
        "ingress_class_parameters",
        &[
            ("{}", r#""<none>""#),
            (r#"{"spec":{"parameters":{"apiGroup":"g","kind":"K","name":"n"}}}"#, r#""K.g/n""#),
            (r#"{"spec":{"parameters":{"kind":"K","name":"n"}}}"#, r#""K/n""#),
        ],
    );
    check(
        "ipaddress_parent",
        &[
            (r#"{"spec":{"parentRef":{"resource":"services","namespace":"a","name":"b"}}}"#, r#""services/a/b""#),
            (r#"{"spec":{"parentRef":{"group":"g.x","resource":"things","name":"b"}}}"#, r#""things.g.x/b""#),
        ],
    );
}

#[test]
fn volumes_and_classes() {
    check("volume_capacity", &[("{}", r#""0""#), (r#"{"spec":{"capacity":{"storage":"1Gi"}}}"#, r#""1Gi""#)]);
    check(
        "volume_access_modes",
        &[(
            r#"{"spec":{"accessModes":["ReadWriteOncePod","ReadWriteMany","ReadWriteOnce","ReadWriteOnce"]}}"#,
            r#""RWO,RWX,RWOP""#,
        )],
    );
    check("volume_claim", &[("{}", "-"), (r#"{"spec":{"claimRef":{"namespace":"a","name":"b"}}}"#, r#""a/b""#)]);
    let status = r#""status":{"accessModes":["ReadOnlyMany"],"capacity":{"storage":"2Gi"}}"#;
    let bound = format!(r#"{{"spec":{{"volumeName":"v"}},{status}}}"#);
    let unbound = format!("{{{status}}}");
    check("claim_capacity", &[(&unbound, r#""""#), (&bound, r#""2Gi""#)]);
    check("claim_access_modes", &[(&unbound, r#""""#), (&bound, r#""ROX""#)]);
    check(
        "volume_phase",
        &[(r#"{"metadata":{"deletionTimestamp":"x"},"status":{"phase":"Bound"}}"#, r#""Terminating""#)],
    );
    check(
        "storage_class",
        &[
            ("{}", "-"),
            (r#"{"spec":{"storageClassName":"new"}}"#, r#""new""#),
            (
                r#"{"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"old"}},"spec":{"storageClassName":"new"}}"#,
                r#""old""#,
            ),
        ],
    );
    check(
        "default_class_name",
        &[
            (
                r#"{"kind":"StorageClass","metadata":{"name":"a","annotations":{"storageclass.beta.kubernetes.io/is-default-class":"true"}}}"#,
                r#""a (default)""#,
            ),
            (
                r#"{"kind":"IngressClass","metadata":{"name":"a","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}"#,
                r#""a""#,
            ),
        ],
    );
    check("csidriver_modes", &[("{}", r#""<none>""#), (r#"{"spec":{"volumeLifecycleModes":["A","B"]}}"#, r#""A,B""#)]);
    check(
        "csidriver_token_requests",
        &[("{}", r#""<unset>""#), (r#"{"spec":{"tokenRequests":[{"audience":"a"},{}]}}"#, r#""a,""#)],
    );
    check("migration_resource", &[(r#"{"spec":{"resource":{"group":"apps","resource":"x"}}}"#, r#""x.apps""#)]);
    check(
        "migration_status",
        &[
            ("{}", r#""Unknown""#),
            (
                r#"{"status":{"conditions":[{"type":"Succeeded","status":"True"},{"type":"Running","status":"False"}]}}"#,
                r#""Succeeded""#,
            ),
        ],
    );
    check(
        "storage_versions",
        &[
            ("{}", r#""<unset>""#),
            (r#"{"status":{"storageVersions":[{"apiServerID":"a","encodingVersion":"v1"}]}}"#, r#""a=v1""#),
        ],
    );
}

#[test]
fn events_of_both_groups() {
    let core = r#"{"involvedObject":{"kind":"Pod","name":"p"},"message":" m ","source":{"component":"kubelet","host":"n"},
        "firstTimestamp":"2025-01-01T00:00:00Z","lastTimestamp":"2025-01-02T00:00:00Z","count":4}"#;
    let own = r#"{"regarding":{"kind":"Pod"},"note":"n","reportingController":"c","reportingInstance":"i",
        "eventTime":"2025-01-01T00:00:00.000000Z","series":{"count":5,"lastObservedTime":"2025-01-02T12:00:00.000000Z"}}"#;
    check("event_object", &[(core, r#""pod/p""#), (own, r#""pod""#)]);
    check("event_message", &[(core, r#""m""#), (own, r#""n""#)]);
    check(
        "event_source",
        &[(core, r#""kubelet, n""#), (own, r#""c, i""#), (r#"{"source":{"component":"a"}}"#, r#""a""#)],
    );
    check("event_first_seen", &[(core, r#""2d""#), (own, r#""2d""#), ("{}", r#""<unknown>""#)]);
    check(
        "event_last_seen",
        &[(core, r#""24h""#), (own, r#""12h""#), (r#"{"firstTimestamp":"2025-01-01T00:00:00Z"}"#, r#""2d""#)],
    );
    check("event_count", &[(core, "4"), (own, "5"), ("{}", "1")]);
}

#[test]
fn bindings() {
    let binding = r#"{"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"Group","name":"g"},{"kind":"User","name":"v"},{"kind":"ServiceAccount","namespace":"n","name":"s"}]}"#;
    check("role_reference", &[(binding, r#""Role/r""#)]);
    check("subject_users", &[("{}", r#""""#), (binding, r#""u, v""#)]);
    check("subject_groups", &[(binding, r#""g""#)]);
    check("subject_service_accounts", &[(binding, r#""n/s""#)]);
}

#[test]
fn nodes_quotas_and_components() {
    let node = r#"{"metadata":{"labels":{"node-role.kubernetes.io/worker":"","kubernetes.io/role":"a"}},"spec":{"unschedulable":true},
        "status":{"conditions":[{"type":"Ready","status":"True"}],"addresses":[{"type":"InternalIP","address":"1.1.1.1"}],
        "nodeInfo":{"kernelVersion":"6.1","architecture":"amd64"}}}"#;
    check("node_status", &[("{}", r#""Unknown""#), (node, r#""Ready,SchedulingDisabled""#)]);
    check("node_status", &[(r#"{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}"#, r#""NotReady""#)]);
    check("node_roles", &[("{}", r#""<none>""#), (node, r#""a,worker""#)]);
    check("node_internal_ip", &[(node, r#""1.1.1.1""#)]);
    check("node_external_ip", &[(node, r#""<none>""#)]);
    check("node_kernel", &[("{}", r#""<unknown>""#), (node, r#""6.1 (amd64)""#)]);
    let quota = r#"{"status":{"hard":{"pods":"3","limits.cpu":"4","requests.cpu":"2"},"used":{"pods":"1","limits.cpu":"500m"}}}"#;
    check("quota_requests", &[("{}", r#""""#), (quota, r#""pods: 1/3, requests.cpu: 0/2""#)]);
    check("quota_limits", &[(quota, r#""limits.cpu: 500m/4""#)]);
    let component = r#"{"conditions":[{"type":"Healthy","status":"False","message":"m","error":"e"}]}"#;
    check("component_status", &[("{}", r#""Unknown""#), (component, r#""Unhealthy""#)]);
    check("component_message", &[("{}", "-"), (component, r#""m""#)]);
    check("component_error", &[(component, r#""e""#)]);
    check(
        "flow_schema_dangling",
        &[("{}", r#""?""#), (r#"{"status":{"conditions":[{"type":"Dangling","status":"False"}]}}"#, r#""False""#)],
    );
}

#[test]
fn flow_schemas_stand_in_the_order_of_matching() {
    let schema = |precedence: i64, name: &str| {
        value(&format!(
            r#"{{"kind":"FlowSchema","metadata":{{"name":"{name}"}},"spec":{{"matchingPrecedence":{precedence}}}}}"#
        ))
    };
    assert_eq!(builtin().compare(&schema(2, "a"), &schema(1, "b")), Ordering::Greater);
    assert_eq!(builtin().compare(&schema(1, "a"), &schema(1, "b")), Ordering::Less);
    assert_eq!(builtin().compare(&value(r#"{"kind":"Pod"}"#), &value(r#"{"kind":"Pod"}"#)), Ordering::Equal);
}

#[test]
fn autoscalers() {
    let autoscaler = |metrics: &str, current: &str| {
        format!(
            r#"{{"apiVersion":"autoscaling/v2","spec":{{"scaleTargetRef":{{"kind":"Deployment","name":"d"}},"metrics":[{metrics}]}},"status":{{"currentMetrics":[{current}]}}}}"#
        )
    };
    let cpu = r#"{"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":80}}}"#;
    let used = r#"{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":55}}}"#;
    let pods = r#"{"type":"Pods","pods":{"target":{"averageValue":"20"}}}"#;
    let external = r#"{"type":"External","external":{"target":{"averageValue":"10"}}}"#;
    let object = r#"{"type":"Object","object":{"target":{"value":"5"}}}"#;
    check(
        "autoscaler_targets",
        &[
            (&autoscaler("", ""), r#""<none>""#),
            (&autoscaler(cpu, used), r#""cpu: 55%/80%""#),
            (&autoscaler(cpu, ""), r#""cpu: <unknown>/80%""#),
            (&autoscaler(r#"{"type":"Resource","resource":{"name":"cpu"}}"#, ""), r#""cpu: <unknown>/<auto>""#),
            (&autoscaler(pods, r#"{"pods":{"current":{}}}"#), r#""<nil>/20""#),
            (&autoscaler(&[external, object, pods].join(","), ""), r#""<unknown>/10 (avg), <unknown>/5 + 1 more...""#),
            (&autoscaler(r#"{"type":"X"}"#, ""), r#""<unknown type>""#),
        ],
    );
    check("autoscaler_reference", &[(&autoscaler("", ""), r#""Deployment/d""#)]);
    let first = r#"{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","spec":{"targetCPUUtilizationPercentage":70}}"#;
    check("autoscaler_targets", &[(first, r#""cpu: <unknown>/70%""#)]);
}

#[test]
fn policies_certificates_and_devices() {
    check(
        "policy_param_kind",
        &[("{}", r#""<unset>""#), (r#"{"spec":{"paramKind":{"apiVersion":"v1","kind":"K"}}}"#, r#""v1/K""#)],
    );
    check(
        "binding_param",
        &[
            ("{}", r#""<unset>""#),
            (r#"{"spec":{"paramRef":{"name":"n"}}}"#, r#""*/n""#),
            (r#"{"spec":{"paramRef":{"name":"n","namespace":"m"}}}"#, r#""m/n""#),
            (
                r#"{"spec":{"paramRef":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"In","values":["x","y"]}]}}}}"#,
                r#""&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}""#,
            ),
        ],
    );
    check(
        "csr_condition",
        &[
            ("{}", r#""Pending""#),
            (r#"{"status":{"conditions":[{"type":"Approved"}],"certificate":"eA=="}}"#, r#""Approved,Issued""#),
            (
                r#"{"status":{"conditions":[{"type":"Approved"},{"type":"Denied"},{"type":"Failed"}]}}"#,
                r#""Denied,Failed""#,
            ),
        ],
    );
    check("csr_requested_duration", &[("{}", r#""<none>""#), (r#"{"spec":{"expirationSeconds":86400}}"#, r#""24h""#)]);
    check(
        "pod_certificate_state",
        &[("{}", r#""Pending""#), (r#"{"status":{"conditions":[{"type":"Issued"}]}}"#, r#""Issued""#)],
    );
    check(
        "claim_state",
        &[
            ("{}", r#""pending""#),
            (
                r#"{"metadata":{"deletionTimestamp":"x"},"status":{"allocation":{},"reservedFor":[{}]}}"#,
                r#""deleted,allocated,reserved""#,
            ),
        ],
    );
    let pools = r#"{"status":{"poolCount":3,"pools":[{"totalDevices":4,"availableDevices":1},{"totalDevices":2,"validationError":"x"}],
        "conditions":[{"type":"Complete","status":"True","lastTransitionTime":"2025-01-01T00:00:00Z"}]}}"#;
    check("pool_total", &[("{}", r#""-""#), (pools, r#""6""#)]);
    check("pool_errors", &[("{}", r#""-""#), (pools, r#""1""#)]);
    check("pool_status", &[("{}", r#""Pending""#), (pools, r#""Complete (2/3 pools)""#)]);
    check("pool_completed", &[("{}", r#""<none>""#), (pools, r#""2d""#)]);
    check(
        "apiservice_service",
        &[("{}", r#""Local""#), (r#"{"spec":{"service":{"namespace":"n","name":"s"}}}"#, r#""n/s""#)],
    );
    check(
        "apiservice_available",
        &[
            ("{}", r#""Unknown""#),
            (r#"{"status":{"conditions":[{"type":"Available","status":"False","reason":"R"}]}}"#, r#""False (R)""#),
        ],
    );
}

#[test]
fn views_of_metadata_hide_annotations_that_stand_for_fields() {
    let hidden = |text: &str| builtin().field_annotations(&value(text)).len();
    assert_eq!(hidden(r#"{"apiVersion":"apps/v1","kind":"DaemonSet"}"#), 1);
    assert_eq!(hidden(r#"{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler"}"#), 6);
    assert_eq!(hidden(r#"{"apiVersion":"v1","kind":"Pod"}"#), 0);
}
