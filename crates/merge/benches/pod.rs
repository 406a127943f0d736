//! What a patch or an apply of an 8 KB pod costs, `managedFields` included: `cargo bench -p kubelith-merge`.

use kubelith_catalog::builtin;
use kubelith_merge::apply::{ConvertError, Force, Versions};
use kubelith_merge::json_patch::{Checking, JsonPatch, MAX_COPIED_BYTES};
use kubelith_merge::managers::FieldManager;
use kubelith_merge::typed::Type;
use kubelith_merge::{merge_patch, strategic};
use kubelith_meta::{GroupVersionKind, Map, Time, Value, text};
use kubelith_schema::TypedSchema;
use std::hint::black_box;
use std::time::Instant;

struct Pods(TypedSchema);

impl Versions for Pods {
    fn type_in(&self, version: &str) -> Option<Type<'_>> {
        (version == "v1").then(|| Type::of(&self.0))
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::from(members)
}

fn container(i: i64) -> Value {
    let env = |j: i64| object([("name", format!("VARIABLE_{j}").into()), ("value", format!("value-{i}-{j}").into())]);
    let port = |p: i64| {
        object([("containerPort", Value::Int(p)), ("protocol", "TCP".into()), ("name", format!("p{p}").into())])
    };
    let mount =
        |j: i64| object([("name", format!("volume-{j}").into()), ("mountPath", format!("/var/lib/data/{j}").into())]);
    let probe = object([
        ("httpGet", object([("path", "/healthz".into()), ("port", Value::Int(8080)), ("scheme", "HTTP".into())])),
        ("periodSeconds", Value::Int(10)),
        ("timeoutSeconds", Value::Int(1)),
        ("successThreshold", Value::Int(1)),
        ("failureThreshold", Value::Int(3)),
    ]);
    let amounts = || object([("cpu", "500m".into()), ("memory", "128Mi".into())]);
    object([
        ("name", format!("container-{i}").into()),
        ("image", "registry.example.com/team/application:v1.2.3".into()),
        ("command", vec!["/bin/application", "--serve", "--config=/etc/application/config.yaml"].into()),
        ("env", (0..12).map(env).collect::<Vec<_>>().into()),
        ("ports", (8080..8083).map(port).collect::<Vec<_>>().into()),
        ("volumeMounts", (0..4).map(mount).collect::<Vec<_>>().into()),
        ("resources", object([("limits", amounts()), ("requests", amounts())])),
        ("livenessProbe", probe.clone()),
        ("readinessProbe", probe),
        ("imagePullPolicy", "IfNotPresent".into()),
        ("terminationMessagePath", "/dev/termination-log".into()),
        ("terminationMessagePolicy", "File".into()),
    ])
}

fn pod() -> Value {
    let labels: Map = (0..6).map(|i| (format!("app.example.com/label-{i}"), format!("value-{i}"))).collect();
    let volume = |j: i64| object([("name", format!("volume-{j}").into()), ("emptyDir", Value::object())]);
    object([
        ("apiVersion", "v1".into()),
        ("kind", "Pod".into()),
        ("metadata", object([("name", "p".into()), ("namespace", "default".into()), ("labels", labels.into())])),
        (
            "spec",
            object([
                ("containers", (0..4).map(container).collect::<Vec<_>>().into()),
                ("volumes", (0..4).map(volume).collect::<Vec<_>>().into()),
                ("restartPolicy", "Always".into()),
                ("dnsPolicy", "ClusterFirst".into()),
                ("schedulerName", "default-scheduler".into()),
                ("serviceAccountName", "default".into()),
                ("terminationGracePeriodSeconds", Value::Int(30)),
                ("nodeSelector", object([("disk", "ssd".into())])),
            ]),
        ),
        ("status", object([("phase", "Running".into())])),
    ])
}

/// The best of many single runs: what it costs on a processor of one's own.
fn measure(name: &str, mut run: impl FnMut()) {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6
    };
    let best = (0..3000).map(|_| time(&mut run)).fold(f64::MAX, f64::min);
    println!("{name:<40} {best:>8.1} µs");
}

fn main() {
    let kind = GroupVersionKind::new("", "v1", "Pod");
    let pods = Pods(builtin().kind_schema(&kind).expect("pods are built in"));
    let manager = FieldManager { versions: &pods, kind, subresource: "", reset: &[], outlines: None, creations: None };
    let now = Time::from_unix(1_700_000_000);
    let config = pod();
    println!("pod: {} bytes of JSON", text::json(&config).len());

    let applied = manager.apply(None, &config, "applier", Force::No, now).expect("an apply").object;
    let mut live = applied;
    live.set_at(&["metadata", "uid"], "u".into());
    let mut changed = live.clone();
    changed.set_at(&["metadata", "annotations", "note"], "new".into());
    live = manager.update(Some(&live), changed, "updater", now);
    println!("live: {} bytes with managedFields", text::json(&live).len());

    measure("clone of the object", || drop(black_box(live.clone())));
    measure("apply, nothing changes", || {
        black_box(manager.apply(Some(&live), &config, "applier", Force::No, now).expect("an apply"));
    });
    let mut other = config.clone();
    other.at_mut(&["spec", "containers"]).and_then(Value::as_array_mut).expect("containers")[1]
        .set_at(&["image"], "registry.example.com/team/application:v2".into());
    measure("apply, an image changes", || {
        black_box(manager.apply(Some(&live), &other, "applier", Force::No, now).expect("an apply"));
    });
    let mut fewer = config.clone();
    fewer.at_mut(&["spec", "containers"]).and_then(Value::as_array_mut).expect("containers").pop();
    measure("apply, a container is dropped", || {
        black_box(manager.apply(Some(&live), &fewer, "applier", Force::No, now).expect("an apply"));
    });
    let mut updated = live.clone();
    updated.set_at(&["status", "phase"], "Failed".into());
    measure("update, a field changes (with clone)", || {
        black_box(manager.update(Some(&live), updated.clone(), "updater", now));
    });
    measure("create (with clone)", || {
        black_box(manager.update(None, config.clone(), "creator", now));
    });

    let patch = object([(
        "spec",
        object([("containers", vec![object([("name", "container-2".into()), ("image", "other".into())])].into())]),
    )]);
    measure("strategic merge patch (with clone)", || {
        let mut object = live.clone();
        strategic::apply(&mut object, patch.clone(), &pods.0).expect("a patch");
        black_box(object);
    });
    let merge = object([("metadata", object([("labels", object([("a", "b".into())]))]))]);
    measure("merge patch (with clone)", || {
        let mut object = live.clone();
        merge_patch::apply(&mut object, merge.clone()).expect("a patch");
        black_box(object);
    });
    let operation =
        object([("op", "replace".into()), ("path", "/spec/containers/1/image".into()), ("value", "x".into())]);
    measure("JSON patch (with clone)", || {
        let mut object = live.clone();
        let (patch, _) = JsonPatch::decode(vec![operation.clone()].into(), Checking::Checked).expect("a patch");
        patch.apply(&mut object, MAX_COPIED_BYTES).expect("to apply");
        black_box(object);
    });
}
