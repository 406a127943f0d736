//! Sequences of requests on objects of built-in types: what `managedFields` say after each.

use super::*;
use crate::apply::{ConvertError, Force, Versions};
use crate::fieldset::{Filter, Outlines, Path, Set};
use crate::json::tests::v;
use crate::testing::text;
use crate::typed::Type;
use kubelith_catalog::builtin;
use kubelith_meta::{GroupVersion, GroupVersionKind, Str, Time, Value};
use kubelith_schema::TypedSchema;

/// A built-in kind in some of its versions.
struct Kind(Vec<(String, TypedSchema)>);

fn kind(kind: &str, versions: &[&str]) -> Kind {
    let schema = |version: &str| {
        let gvk = GroupVersion::parse(version).unwrap().with_kind(kind);
        (version.to_owned(), builtin().kind_schema(&gvk).expect("a built-in kind"))
    };
    Kind(versions.iter().map(|v| schema(v)).collect())
}

impl Versions for Kind {
    fn type_in(&self, version: &str) -> Option<Type<'_>> {
        self.0.iter().find(|(v, _)| v == version).map(|(_, schema)| Type::of(schema))
    }

    fn convert(&self, object: &Value, version: &str) -> Result<Value, ConvertError> {
        let to = GroupVersion::parse(version).unwrap().with_kind(object.str_at(&["kind"]));
        kubelith_catalog::convert(object.clone(), &names::kind_of(object), &to)
            .map_err(|e| ConvertError::Failed(format!("{e:?}")))
    }
}

/// An object on a server whose clock goes on by a second with each request.
struct World<'a> {
    versions: &'a Kind,
    object: Option<Value>,
    seconds: i64,
    subresource: &'static str,
    reset: Vec<(Str, Filter)>,
    outlines: Outlines,
}

impl<'a> World<'a> {
    fn new(versions: &'a Kind) -> World<'a> {
        World {
            versions,
            object: None,
            seconds: 1_000_000_000,
            subresource: "",
            reset: Vec::new(),
            outlines: Outlines::default(),
        }
    }

    fn manager(&self, kind: GroupVersionKind) -> FieldManager<'_> {
        FieldManager {
            versions: self.versions,
            kind,
            subresource: self.subresource,
            reset: &self.reset,
            outlines: Some(&self.outlines),
            creations: None,
        }
    }

    fn now(&mut self) -> Time {
        self.seconds += 1;
        Time::from_unix(self.seconds)
    }

    fn try_apply(&mut self, manager: &str, patch: &str, force: Force) -> Result<bool, ApplyError> {
        let now = self.now();
        let patch = v(patch);
        let kind = match &self.object {
            Some(live) => names::kind_of(live),
            None => names::kind_of(&patch),
        };
        let outcome = self.manager(kind).apply(self.object.as_ref(), &patch, manager, force, now)?;
        let mut object = outcome.object;
        object.set_at(&["metadata", "uid"], "u".into());
        self.object = Some(object);
        Ok(outcome.changed)
    }

    fn apply(&mut self, manager: &str, patch: &str) -> &mut Self {
        self.try_apply(manager, patch, Force::No).unwrap_or_else(|e| panic!("{e}: {patch}"));
        self
    }

    /// Writes `new`, or on top of the object if that is a merge patch.
    fn write(&mut self, manager: &str, new: Value) -> &mut Self {
        let now = self.now();
        let mut object = self.manager(names::kind_of(&new)).update(self.object.as_ref(), new, manager, now);
        object.set_at(&["metadata", "uid"], "u".into());
        self.object = Some(object);
        self
    }

    fn create(&mut self, manager: &str, new: &str) -> &mut Self {
        self.write(manager, v(new))
    }

    fn patch(&mut self, manager: &str, patch: &str) -> &mut Self {
        let mut new = self.object.clone().expect("an object");
        crate::merge_patch::apply(&mut new, v(patch)).unwrap();
        self.write(manager, new)
    }

    /// One line per entry: name, operation, seconds since the start or `-`, subresource, fields.
    fn entries(&self) -> Vec<String> {
        let list = self.object.as_ref().and_then(|o| o.at(&["metadata", "managedFields"]));
        let entry = |e: &Value| {
            let time = match Time::parse(e.str_at(&["time"])) {
                Ok(time) => (time.unix_seconds() - 1_000_000_000).to_string(),
                Err(_) => "-".to_owned(),
            };
            let mut words = vec![e.str_at(&["manager"]).to_owned(), e.str_at(&["operation"]).to_owned(), time];
            words.extend(Some(e.str_at(&["subresource"]).to_owned()).filter(|s| !s.is_empty()));
            words.push(text(e.get("fieldsV1").expect("fields")));
            words.join(" ")
        };
        list.and_then(Value::as_array).unwrap_or_default().iter().map(entry).collect()
    }
}

fn config_map(data: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}}{data}}}"#)
}

#[test]
fn appliers_of_one_object() {
    let kind = kind("ConfigMap", &["v1"]);
    let mut w = World::new(&kind);
    w.apply("m1", &config_map(r#","data":{"one":"1","two":"2"}"#));
    w.apply("m2", &config_map(r#","data":{"one":"1","three":"3"}"#));
    assert_eq!(
        w.entries(),
        [r#"m1 Apply 1 {"f:data":{"f:one":{},"f:two":{}}}"#, r#"m2 Apply 2 {"f:data":{"f:one":{},"f:three":{}}}"#]
    );
    let err = w.try_apply("m3", &config_map(r#","data":{"one":"X","two":"Y"}"#), Force::No).unwrap_err();
    assert_eq!(
        err.to_string(),
        "Apply failed with 3 conflicts: conflicts with \"m1\":\n- .data.one\n- .data.two\nconflicts with \"m2\":\n- .data.one"
    );
    // Who only shares gets an entry without a time, which sorts first.
    assert!(!w.try_apply("m4", &config_map(r#","data":{"two":"2"}"#), Force::No).unwrap());
    w.apply("m1", &config_map(r#","data":{"one":"1"}"#));
    assert_eq!(
        w.entries(),
        [
            r#"m4 Apply - {"f:data":{"f:two":{}}}"#,
            r#"m1 Apply 1 {"f:data":{"f:one":{}}}"#,
            r#"m2 Apply 2 {"f:data":{"f:one":{},"f:three":{}}}"#
        ]
    );
    // An applier that wants nothing has no entry.
    w.apply("m1", &config_map(""));
    w.try_apply("m5", &config_map(r#","data":{"three":"forced"}"#), Force::Yes).unwrap();
    w.patch("u1", r#"{"data":{"two":"updated"}}"#).patch("u2", r#"{"data":{"two":null}}"#);
    assert_eq!(w.entries(), [r#"m2 Apply 2 {"f:data":{"f:one":{}}}"#, r#"m5 Apply 7 {"f:data":{"f:three":{}}}"#]);
}

#[test]
fn one_name_for_updates_and_applies() {
    let kind = kind("ConfigMap", &["v1"]);
    let mut w = World::new(&kind);
    w.create("m1", &config_map(r#","data":{"k":"v","l":"w"}"#)).apply("m1", &config_map(r#","data":{"k":"v"}"#));
    assert_eq!(
        w.entries(),
        [r#"m1 Apply - {"f:data":{"f:k":{}}}"#, r#"m1 Update 1 {"f:data":{".":{},"f:k":{},"f:l":{}}}"#]
    );
    let err = w.try_apply("m1", &config_map(r#","data":{"k":"changed"}"#), Force::No).unwrap_err();
    assert_eq!(err.to_string(), r#"Apply failed with 1 conflict: conflict with "m1" using v1: .data.k"#);
    w.try_apply("m1", &config_map(r#","data":{"k":"changed"}"#), Force::Yes).unwrap();
    w.apply("m1", &config_map("")).patch("m1", r#"{"data":{"k":"again"}}"#).patch("m1", r#"{"data":{"l":null}}"#);
    // Losing a field does not count as a change of one's own.
    assert_eq!(w.entries(), [r#"m1 Update 6 {"f:data":{".":{},"f:k":{}}}"#]);
}

#[test]
fn tracking_starts_at_creation_or_at_the_first_apply() {
    let kind = kind("ConfigMap", &["v1"]);
    let mut w = World::new(&kind);
    w.object = Some(v(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"u"},"data":{"k":"v"}}"#));
    w.patch("u1", r#"{"data":{"l":"w"}}"#);
    assert!(w.entries().is_empty());
    w.apply("m1", &config_map(r#","data":{"k":"v"}"#));
    assert_eq!(
        w.entries(),
        [r#"m1 Apply - {"f:data":{"f:k":{}}}"#, r#"before-first-apply Update 2 {"f:data":{".":{},"f:k":{},"f:l":{}}}"#]
    );
    // Nothing is owned in an object that is nothing but identity.
    let mut w = World::new(&kind);
    w.create("m", &config_map(""));
    assert!(w.entries().is_empty());
}

#[test]
fn requests_can_rewrite_entries() {
    let kind = kind("ConfigMap", &["v1"]);
    let entry = |fields: &str, operation: &str| {
        format!(
            r#"{{"manager":"x","operation":"{operation}","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields},"time":"2001-09-09T01:46:40Z"}}"#
        )
    };
    let good = entry(r#"{"f:data":{"f:k":{}}}"#, "Update");
    // What the request carries, and what comes out of changing l with it.
    let table = [
        (format!("[{good}]"), vec![r#"x Update 0 {"f:data":{"f:k":{}}}"#, r#"u Update 2 {"f:data":{"f:l":{}}}"#]),
        (
            format!("[{good},{good}]"),
            vec![r#"x Update 0 {"f:data":{"f:k":{}}}"#, r#"u Update 2 {"f:data":{"f:l":{}}}"#],
        ),
        ("[]".into(), vec![]),
        ("[{}]".into(), vec![]),
        // What cannot be read does not count.
        (
            format!("[{}]", entry("{}", "Nonsense")),
            vec![r#"c Update 1 {"f:data":{".":{},"f:k":{}}}"#, r#"u Update 2 {"f:data":{"f:l":{}}}"#],
        ),
        (
            format!("[{}]", entry(r#"{"bogus":1}"#, "Update")),
            vec![r#"c Update 1 {"f:data":{".":{},"f:k":{}}}"#, r#"u Update 2 {"f:data":{"f:l":{}}}"#],
        ),
        // Fields that do not exist may be owned, versions that do not exist may not.
        (
            format!("[{}]", entry(r#"{"f:nosuch":{}}"#, "Update")),
            vec![r#"x Update 0 {"f:nosuch":{}}"#, r#"u Update 2 {"f:data":{"f:l":{}}}"#],
        ),
        (format!("[{}]", good.replace(r#""v1""#, r#""v9""#)), vec![r#"u Update 2 {"f:data":{"f:l":{}}}"#]),
    ];
    for (list, want) in table {
        let mut w = World::new(&kind);
        w.create("c", &config_map(r#","data":{"k":"v"}"#));
        w.patch("u", &format!(r#"{{"metadata":{{"managedFields":{list}}},"data":{{"l":"w"}}}}"#));
        assert_eq!(w.entries(), want, "{list}");
    }
    // A subresource takes no entries from the request.
    let mut w = World::new(&kind);
    w.create("c", &config_map(r#","data":{"k":"v"}"#));
    w.subresource = "status";
    w.patch("u", r#"{"metadata":{"managedFields":[{}]},"data":{"l":"w"}}"#);
    assert_eq!(
        w.entries(),
        [r#"c Update 1 {"f:data":{".":{},"f:k":{}}}"#, r#"u Update 2 status {"f:data":{"f:l":{}}}"#]
    );
}

#[test]
fn bad_requests() {
    let kind = kind("ConfigMap", &["v1"]);
    let table = [
        (r#"{"apiVersion":"apps/v1beta1","kind":"Deployment"}"#, "invalid object type: apps/v1beta1, Kind=Deployment"),
        (r#"{"apiVersion":"a/b/c","kind":"ConfigMap"}"#, "invalid object type: /, Kind="),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[]}}"#,
            "metadata.managedFields must be nil",
        ),
    ];
    for (patch, want) in table {
        let mut w = World::new(&kind);
        w.create("c", &config_map(""));
        assert_eq!(w.try_apply("m", patch, Force::No), Err(ApplyError::BadRequest(want.into())));
    }
    let typed = [
        (r#","bogus":1"#, ".bogus: field not declared in schema"),
        (r#","data":{"k":5}"#, ".data.k: expected string, got &value.valueUnstructured{Value:5}"),
        (r#","data":["x"]"#, ".data: expected map, got &{[x]}"),
    ];
    for (data, want) in typed {
        let err = World::new(&kind).try_apply("m", &config_map(data), Force::No).unwrap_err();
        let want = format!("failed to create typed patch object (/a; /v1, Kind=ConfigMap): {want}");
        assert_eq!(err, ApplyError::Internal(want));
    }
    let mut w = World::new(&kind);
    w.object = Some(v(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{"operation":"x"}]}}"#));
    let err = w.try_apply("m", &config_map(""), Force::No).unwrap_err();
    assert_eq!(err.to_string(), "failed to decode managed fields: operation must be `Apply` or `Update`");
}

#[test]
fn creation_is_compared_with_an_empty_object() {
    let kind = kind("Deployment", &["apps/v1"]);
    let mut w = World::new(&kind);
    w.create(
        "m",
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","labels":{"a":"b"}},
            "spec":{"replicas":1,"selector":{"matchLabels":{"app":"x"}},"strategy":{"type":"Recreate"},
            "template":{"metadata":{"labels":{"app":"x"}},"spec":{"volumes":[{"name":"v","emptyDir":{}}],
            "containers":[{"name":"c","image":"i","resources":{},"ports":[{"containerPort":80,"protocol":"TCP"}]}]}}},"status":{}}"#,
    );
    // containers is never omitted, so the list itself was there; volumes was not.
    let want = r#"m Update 1 {"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:strategy":{"f:type":{}},"f:template":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{}}},"f:volumes":{".":{},"k:{\"name\":\"v\"}":{".":{},"f:emptyDir":{},"f:name":{}}}}}}}"#;
    assert_eq!(w.entries(), [want]);
}

#[test]
fn versions_of_one_kind() {
    let kind = kind("HorizontalPodAutoscaler", &["autoscaling/v1", "autoscaling/v2"]);
    let mut w = World::new(&kind);
    let hpa = |version: &str, labels: &str, spec: &str| {
        format!(
            r#"{{"apiVersion":"autoscaling/{version}","kind":"HorizontalPodAutoscaler","metadata":{{"name":"h","labels":{{{labels}}}}},"spec":{{{spec}}}}}"#
        )
    };
    let spec =
        r#""scaleTargetRef":{"kind":"Deployment","name":"d"},"maxReplicas":3,"targetCPUUtilizationPercentage":50"#;
    w.apply("m1", &hpa("v1", r#""a":"1","b":"2""#, spec));
    w.object = Some(kind.convert(w.object.as_ref().unwrap(), "autoscaling/v2").unwrap());
    let err = w.try_apply("m2", &hpa("v2", "", r#""maxReplicas":4"#), Force::No).unwrap_err();
    assert_eq!(err.to_string(), r#"Apply failed with 1 conflict: conflict with "m1": .spec.maxReplicas"#);
    // A conflict is named in the version of the owner.
    let metrics = r#""metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}}]"#;
    let err = w.try_apply("m2", &hpa("v2", "", metrics), Force::No).unwrap_err();
    let want = r#"Apply failed with 1 conflict: conflict with "m1": .spec.targetCPUUtilizationPercentage"#;
    assert_eq!(err.to_string(), want);
    // The same applier in the other version has one entry, in that version, and drops what it applied before.
    w.apply("m1", &hpa("v2", r#""b":"2""#, r#""maxReplicas":3"#));
    assert_eq!(w.entries(), [r#"m1 Apply 4 {"f:metadata":{"f:labels":{"f:b":{}}},"f:spec":{"f:maxReplicas":{}}}"#]);
    assert_eq!(text(w.object.unwrap().at(&["metadata", "labels"]).unwrap()), r#"{"b":"2"}"#);
}

#[test]
fn subresources_own_apart_and_reset_fields_are_not_owned() {
    let kind = kind("Deployment", &["apps/v1"]);
    let mut w = World::new(&kind);
    let deployment =
        |rest: &str| format!(r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"d"}},{rest}}}"#);
    w.reset = vec![("apps/v1".into(), Filter::Exclude(Set::of_fields(&[&["status"]])))];
    w.apply("m", &deployment(r#""spec":{"replicas":3},"status":{"replicas":9}"#));
    w.subresource = "status";
    w.reset = vec![("apps/v1".into(), Filter::Exclude(Set::of_fields(&[&["spec"], &["metadata", "labels"]])))];
    w.apply("m", &deployment(r#""spec":{"replicas":4},"status":{"replicas":3}"#));
    assert_eq!(
        w.entries(),
        [r#"m Apply 1 {"f:spec":{"f:replicas":{}}}"#, r#"m Apply 2 status {"f:status":{"f:replicas":{}}}"#]
    );
    let err = w.try_apply("n", &deployment(r#""status":{"replicas":5}"#), Force::No).unwrap_err();
    let want = r#"Apply failed with 1 conflict: conflict with "m" with subresource "status": .status.replicas"#;
    assert_eq!(err.to_string(), want);
}

#[test]
fn old_updaters_are_merged() {
    let kind = kind("ConfigMap", &["v1"]);
    let mut w = World::new(&kind);
    w.create("u0", &config_map(r#","data":{"k0":"v"}"#));
    for i in 1..10 {
        w.patch(&format!("u{i}"), &format!(r#"{{"data":{{"k{i}":"v"}}}}"#));
    }
    assert_eq!(w.entries().len(), 10);
    w.patch("u10", r#"{"data":{"k10":"v"}}"#);
    let entries = w.entries();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0], r#"ancient-changes Update 2 {"f:data":{".":{},"f:k0":{},"f:k1":{}}}"#);
    w.patch("u11", r#"{"data":{"k11":"v"}}"#);
    assert_eq!(w.entries()[0], r#"ancient-changes Update 3 {"f:data":{".":{},"f:k0":{},"f:k1":{},"f:k2":{}}}"#);
    // Appliers do not count.
    w.apply("m", &config_map(r#","data":{"m":"1"}"#));
    assert_eq!(w.entries().len(), 11);
}

#[test]
fn kubectl_takes_over_from_itself() {
    let kind = kind("ConfigMap", &["v1"]);
    let applied = r#"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"1\",\"l\":\"1\"}}"#;
    let start = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","annotations":{{"{LAST_APPLIED_ANNOTATION}":"{applied}"}}}},"data":{{"k":"1","l":"2"}}}}"#
    );
    let mut w = World::new(&kind);
    w.create("kubectl-client-side-apply", &start);
    // k still has the value that was applied, l has not.
    let err = w.try_apply("kubectl", &config_map(r#","data":{"k":"9","l":"9"}"#), Force::No).unwrap_err();
    assert_eq!(
        err.to_string(),
        r#"Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.l"#
    );
    assert!(w.try_apply("other", &config_map(r#","data":{"k":"9"}"#), Force::No).is_err());
    w.apply("kubectl", &config_map(r#","data":{"k":"<9>"}"#));
    let object = w.object.as_ref().unwrap();
    assert_eq!(
        object.str_at(&["metadata", "annotations", LAST_APPLIED_ANNOTATION]),
        "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"\\u003c9\\u003e\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n"
    );
    assert_eq!(
        w.entries(),
        [
            r#"kubectl Apply 4 {"f:data":{"f:k":{}}}"#,
            r#"kubectl-client-side-apply Update 1 {"f:data":{".":{},"f:l":{}},"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}"#
        ]
    );
}

#[test]
fn replicas_belong_to_resource_and_scale() {
    let kind = kind("Deployment", &["apps/v1"]);
    let mut w = World::new(&kind);
    w.apply(
        "m1",
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":2,"paused":true}}"#,
    );
    let replicas = [(Str::from("apps/v1"), Some(Path::fields(&["spec", "replicas"]))), (Str::from("apps/v2"), None)];
    let handler = |object: &Value| ScaleHandler::new(object, "apps/v1", &replicas).unwrap();
    let scale = handler(w.object.as_ref().unwrap()).to_subresource();
    assert_eq!(
        text(&scale),
        r#"[{"apiVersion":"autoscaling/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"manager":"m1","operation":"Apply","time":"2001-09-09T01:46:41Z"}]"#
    );
    // Nothing changed: everything is as it was.
    let before = w.entries();
    let list = handler(w.object.as_ref().unwrap()).to_parent(&scale).unwrap();
    w.object.as_mut().unwrap().set_at(&["metadata", "managedFields"], list);
    assert_eq!(w.entries(), before);
    // Another one took the replicas.
    let taken = v(
        r#"[{"apiVersion":"autoscaling/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"manager":"u","operation":"Update","subresource":"scale","time":"2001-09-09T01:46:45Z"}]"#,
    );
    let list = handler(w.object.as_ref().unwrap()).to_parent(&taken).unwrap();
    w.object.as_mut().unwrap().set_at(&["metadata", "managedFields"], list);
    assert_eq!(
        w.entries(),
        [r#"m1 Apply 1 {"f:spec":{"f:paused":{}}}"#, r#"u Update - scale {"f:spec":{"f:replicas":{}}}"#]
    );
    let scale = handler(w.object.as_ref().unwrap()).to_subresource();
    assert_eq!(scale.as_array().unwrap()[0].str_at(&["apiVersion"]), "autoscaling/v1");
}

#[test]
fn deduced_types_for_objects_without_a_schema() {
    struct Unknown;
    impl Versions for Unknown {
        fn type_in(&self, version: &str) -> Option<Type<'_>> {
            (version == "e.com/v1").then_some(Type::Deduced)
        }

        fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
            Err(ConvertError::MissingVersion)
        }
    }
    let manager = FieldManager {
        versions: &Unknown,
        kind: GroupVersionKind::new("e.com", "v1", "Thing"),
        subresource: "",
        reset: &[],
        outlines: None,
        creations: None,
    };
    let patch = v(
        r#"{"apiVersion":"e.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":{"l":[{"a":1}],"m":{"x":{"y":1}}}}"#,
    );
    let outcome = manager.apply(None, &patch, "m", Force::No, Time::UNIX_EPOCH).unwrap();
    assert_eq!(
        text(
            outcome.object.at(&["metadata", "managedFields"]).unwrap().as_array().unwrap()[0].get("fieldsV1").unwrap()
        ),
        r#"{"f:spec":{".":{},"f:l":{},"f:m":{".":{},"f:x":{".":{},"f:y":{}}}}}"#
    );
}

#[test]
fn times_are_all_that_differs() {
    let object = |time: &str, data: &str| {
        v(&format!(
            r#"{{"metadata":{{"name":"a","managedFields":[{{"manager":"m","time":"{time}","fieldsV1":{{}}}}]}},"data":"{data}"}}"#
        ))
    };
    let (old, time) = (object("2001-01-01T00:00:00Z", "x"), "2002-02-02T00:00:00Z");
    let mut new = object(time, "x");
    revert_unchanged_timestamps(&mut new, &old);
    assert_eq!(new, old);
    let mut new = object(time, "y");
    revert_unchanged_timestamps(&mut new, &old);
    assert_eq!(new, object(time, "y"));
    let mut new = object(time, "x");
    new.set_at(&["metadata", "labels"], v("{}"));
    let before = new.clone();
    revert_unchanged_timestamps(&mut new, &old);
    assert_eq!(new, before);
}

#[test]
fn manager_names() {
    let table = [
        ("m", "agent/1.0", "m"),
        ("", "kubectl/v1.36 (linux)", "kubectl"),
        ("", "Mozilla/5.0", "Mozilla"),
        ("", "a\u{7}b c", "ab c"),
        ("", "", ""),
    ];
    for (manager, agent, want) in table {
        assert_eq!(manager_or_user_agent(manager, agent), want);
    }
    assert_eq!(manager_or_user_agent("", &"x".repeat(300)).len(), FIELD_MANAGER_MAX_LENGTH);
}

#[test]
fn entries_are_validated() {
    use kubelith_meta::field::Path;
    let long = "x".repeat(129);
    let list = v(&format!(
        r#"[{{"operation":"Apply","manager":"ok"}},{{"operation":"x","fieldsType":"FieldsV2","manager":"{long}","subresource":"{}"}},{{"operation":"Update","manager":"a\tb"}}]"#,
        "s".repeat(257)
    ));
    let errors = validate_managed_fields(&list, &Path::of(&["metadata", "managedFields"]));
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            r#"metadata.managedFields[1].operation: Invalid value: "x": must be `Apply` or `Update`"#,
            r#"metadata.managedFields[1].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`"#,
            "metadata.managedFields[1].manager: Too long: may not be more than 128 bytes",
            "metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes",
            r#"metadata.managedFields[2].manager: Invalid value: "a\tb": invalid character U+0009 (at position 1)"#,
        ]
    );
}
