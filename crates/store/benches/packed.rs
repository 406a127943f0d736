//! What packing the objects of a watch cache saves and what it costs, by the number of objects:
//! `cargo bench -p kubelith-store --bench packed`. Figures behind `--` are the numbers of objects, of some 8 KB each.

use kubelith_store::cache::{CachedObject, Change, EventKind, Rendered, ResourceCache, Sweeping};
use std::hint::black_box;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 2] = [1_000, 10_000];
/// Deployments that they belong to.
const APPS: u64 = 500;

/// A number that looks like chance and is the same in each run.
fn chance(seed: u64, of: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ of.wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

fn hex(seed: u64, length: usize) -> String {
    let text: String = (0..length.div_ceil(16)).map(|i| format!("{:016x}", chance(seed, i as u64))).collect();
    text[..length].to_owned()
}

/// Like a pod that runs: what a deployment's pods have in common is drawn by its number, the rest by the pod's.
fn pod(i: u64, revision: i64) -> String {
    let app = chance(i, 1) % APPS;
    let (name, hash) = (format!("{}-service", hex(app, 7)), hex(app + APPS, 9));
    let environment = 6 + chance(app, 2) % 10;
    let containers = 1 + chance(app, 3) % 3;
    let (uid, ip) = (hex(i, 32), format!("10.{}.{}.{}", chance(i, 4) % 256, chance(i, 5) % 256, chance(i, 6) % 256));
    let time = |what: u64| {
        format!(
            "2026-{:02}-{:02}T{:02}:17:{:02}Z",
            1 + chance(i, what) % 12,
            10 + chance(i, what + 1) % 18,
            10 + i % 12,
            10 + i % 49
        )
    };
    let (mut spec, mut fields, mut statuses) = (Vec::new(), Vec::new(), Vec::new());
    for c in 0..containers {
        let names: Vec<String> =
            (0..environment).map(|e| format!("{}_SETTING", hex(chance(app, e) % 60, 6).to_uppercase())).collect();
        let values: Vec<String> = names
            .iter()
            .enumerate()
            .map(|(e, n)| {
                format!(
                    r#"{{"name":"{n}","value":"https://{}.svc.cluster.local:{}"}}"#,
                    hex(app * 99 + e as u64, 12),
                    1000 + chance(app, e as u64) % 9000
                )
            })
            .collect();
        spec.push(format!(r#"{{"name":"c{c}","image":"registry.example.com/{name}:{}","env":[{}],"imagePullPolicy":"IfNotPresent","resources":{{"limits":{{"cpu":"500m","memory":"512Mi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}},"livenessProbe":{{"failureThreshold":3,"httpGet":{{"path":"/healthz","port":8080,"scheme":"HTTP"}},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-{}","readOnly":true}}]}}"#, chance(app, 7) % 90, values.join(","), hex(i + 5, 5)));
        let keys: Vec<String> = names
            .iter()
            .map(|n| format!(r#""k:{{\"name\":\"{n}\"}}":{{".":{{}},"f:name":{{}},"f:value":{{}}}}"#))
            .collect();
        fields.push(format!(r#""k:{{\"name\":\"c{c}\"}}":{{".":{{}},"f:env":{{".":{{}},{}}},"f:image":{{}},"f:imagePullPolicy":{{}},"f:livenessProbe":{{".":{{}},"f:failureThreshold":{{}},"f:httpGet":{{".":{{}},"f:path":{{}},"f:port":{{}},"f:scheme":{{}}}},"f:periodSeconds":{{}},"f:successThreshold":{{}},"f:timeoutSeconds":{{}}}},"f:name":{{}},"f:resources":{{".":{{}},"f:limits":{{".":{{}},"f:cpu":{{}},"f:memory":{{}}}},"f:requests":{{".":{{}},"f:cpu":{{}},"f:memory":{{}}}}}}}}"#, keys.join(",")));
        statuses.push(format!(r#"{{"containerID":"containerd://{}","image":"registry.example.com/{name}","imageID":"registry.example.com/{name}@sha256:{}","lastState":{{}},"name":"c{c}","ready":true,"restartCount":0,"started":true,"state":{{"running":{{"startedAt":"{}"}}}}}}"#, hex(i * 7 + c, 64), hex(app + c, 64), time(20)));
    }
    let conditions: Vec<String> =
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
            .map(|kind| {
                format!(
                    r#"{{"lastProbeTime":null,"lastTransitionTime":"{}","status":"True","type":"{kind}"}}"#,
                    time(30)
                )
            })
            .to_vec();
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"creationTimestamp":"{}","generateName":"{name}-{hash}-","labels":{{"app.kubernetes.io/name":"{name}","pod-template-hash":"{hash}"}},"managedFields":[{{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:generateName":{{}},"f:labels":{{".":{{}},"f:app.kubernetes.io/name":{{}},"f:pod-template-hash":{{}}}}}},"f:spec":{{"f:containers":{{{}}}}}}},"manager":"kube-controller-manager","operation":"Update","time":"{}"}},{{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:status":{{"f:podIPs":{{".":{{}},"k:{{\"ip\":\"{ip}\"}}":{{".":{{}},"f:ip":{{}}}}}}}}}},"manager":"kubelet","operation":"Update","subresource":"status","time":"{}"}}],"name":"{name}-{hash}-{}","namespace":"team-{}","resourceVersion":"{revision}","uid":"{uid}"}},"spec":{{"containers":[{}],"dnsPolicy":"ClusterFirst","nodeName":"node-{}","restartPolicy":"Always","schedulerName":"default-scheduler"}},"status":{{"conditions":[{}],"containerStatuses":[{}],"phase":"Running","podIP":"{ip}","podIPs":[{{"ip":"{ip}"}}],"startTime":"{}"}}}}"#,
        time(10),
        fields.join(","),
        time(10),
        time(20),
        hex(i, 5),
        app % 40,
        spec.join(","),
        chance(i, 8) % 500,
        conditions.join(","),
        statuses.join(","),
        time(10)
    )
}

fn object(i: u64, revision: i64) -> CachedObject {
    let rendered = Rendered { json: pod(i, revision).into(), ..Rendered::default() };
    let key = format!("team-{}/{}-service-{i}", chance(i, 1) % APPS % 40, hex(chance(i, 1) % APPS, 7));
    CachedObject::new(key.as_str().into(), revision, EventKind::Added, rendered)
}

/// Anonymous memory of this process.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).unwrap_or_default() * 1024.0
}

/// Processor time of this thread in microseconds, which other work of the machine changes less than the time that passes.
fn processor_time() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|time| time.parse::<f64>().ok()).unwrap_or_default() / 1000.0
}

/// The best of some runs, in microseconds for each of the objects.
fn best(of: usize, mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let start = processor_time();
        run();
        (processor_time() - start) / of as f64
    };
    (0..5).map(time).fold(f64::MAX, f64::min)
}

fn measure(of: usize) {
    let idle = memory();
    let each = |bytes: f64| bytes / of as f64;
    let cache = ResourceCache::new(None);
    for i in 0..of {
        cache.apply([Change::Put(EventKind::Added, object(i as u64, i as i64 + 1))]);
    }
    let json = each(cache.snapshot().objects.values().map(|object| object.json_len() as f64).sum());
    let plain = each(memory() - idle);
    let read_all = || cache.snapshot().objects.values().for_each(|object| drop(black_box(object.json_once())));
    let plainly = best(of, read_all);
    cache.pack_unused(1, &mut usize::MAX.clone(), Sweeping::All);
    let start = processor_time();
    cache.pack_unused(1000, &mut usize::MAX.clone(), Sweeping::All);
    let pack = (processor_time() - start) / of as f64;
    let unpack = best(of, read_all);
    // The allocator gives back what is free a second later, when it is called.
    std::thread::sleep(Duration::from_millis(1500));
    read_all();
    let packed = each(memory() - idle);
    let walk = best(of, || cache.pack_unused(1001, &mut usize::MAX.clone(), Sweeping::All));
    let stats = cache.stats().packed;
    assert_eq!(stats.objects, cache.stats().object_bytes, "all of them are packed");
    println!(
        "{of:>9} {json:>8.0} {plain:>10.0} {packed:>10.0} {:>10.0} {plainly:>8.2} {unpack:>8.2} {:>8.0} {pack:>8.2} {walk:>8.3}",
        each(stats.bytes as f64),
        json / unpack
    );
}

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    println!("           bytes of an object:                           µs for an object:");
    println!("  objects     json   resident     packed  of it text     read   unpack     MB/s     pack     walk");
    for of in if given.is_empty() { &SIZES[..] } else { &given[..] } {
        measure(*of);
    }
}
