//! Every check of the Pod Security Standards, with a pod that passes and one that does not, in the releases that differ.

use super::*;
use kubelith_codec::json;
use kubelith_meta::user::User;
use kubelith_meta::{GroupResource, GroupVersionKind, Str};
use kubelith_registry::{Call, Mode, Warnings};

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

fn policy(text: &str) -> LevelVersion {
    let (level, version) = text.split_once(':').unwrap();
    LevelVersion { level: Level::parse(level).unwrap(), version: Version::parse(version).unwrap() }
}

fn shown(policy: LevelVersion, pod: &Value) -> String {
    let mut judged = Judged { pod, release: THIS_RELEASE, known: Vec::new() };
    judged.violates(policy).unwrap_or_default().to_owned()
}

/// Policies, what the pod has, and what is wrong with it: nothing, if that is empty.
type Case = (&'static [&'static str], &'static str, &'static str);

const BASELINE: &[&str] = &["baseline:latest", "baseline:v1.0", "restricted:v1.0"];

/// Checks of both levels. Of containers, `c` stands for the rest of a container named so.
const CASES: &[Case] = &[
    // AppArmor
    (BASELINE, r#""spec":{"securityContext":{"appArmorProfile":{"type":"RuntimeDefault"}}}"#, ""),
    (BASELINE, r#""spec":{"securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":"p"}}}"#, ""),
    (
        BASELINE,
        r#""spec":{"securityContext":{"appArmorProfile":{"type":"Unconfined"}},
            "containers":[{"name":"a","securityContext":{"appArmorProfile":{"type":"Odd"}}}]}"#,
        r#"forbidden AppArmor profiles (pod and container "a" must not set AppArmor profile type to "Odd", "Unconfined")"#,
    ),
    (
        BASELINE,
        r#""metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"runtime/default",
            "container.apparmor.security.beta.kubernetes.io/b":"localhost/x","container.apparmor.security.beta.kubernetes.io/c":""}}"#,
        "",
    ),
    (
        BASELINE,
        r#""metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/a":"unconfined",
            "container.apparmor.security.beta.kubernetes.io/a-b":"bogus"}}"#,
        "forbidden AppArmor profiles (annotations must not set AppArmor profile type to \
         \"container.apparmor.security.beta.kubernetes.io/a-b=\"bogus\"\", \
         \"container.apparmor.security.beta.kubernetes.io/a=\"unconfined\"\")",
    ),
    // Capabilities
    (
        &["baseline:latest", "baseline:v1.0", "restricted:v1.21"],
        r#""spec":{"containers":[{"name":"a","securityContext":{"capabilities":{"add":["CHOWN","SYS_CHROOT"]}}}]}"#,
        "",
    ),
    (
        &["baseline:latest", "baseline:v1.0", "restricted:v1.21"],
        r#""spec":{"containers":[{"name":"a","securityContext":{"capabilities":{"add":["SYS_TIME","CHOWN"]}}}],
            "initContainers":[{"name":"i","securityContext":{"capabilities":{"add":["NET_RAW"]}}}],
            "ephemeralContainers":[{"name":"e","securityContext":{"capabilities":{"add":["NET_RAW"]}}}]}"#,
        r#"non-default capabilities (containers "i", "a", "e" must not include "NET_RAW", "SYS_TIME" in securityContext.capabilities.add)"#,
    ),
    (
        &["restricted:latest", "restricted:v1.22"],
        r#""spec":{"containers":[{"name":"a","securityContext":{"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}}}]}"#,
        "",
    ),
    (
        &["restricted:latest", "restricted:v1.22"],
        r#""spec":{"containers":[{"name":"a","securityContext":{"capabilities":{"drop":["NET_RAW"],"add":["CHOWN"]}}},
            {"name":"b","securityContext":{"capabilities":null}}]}"#,
        r#"unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"]; container "a" must not include "CHOWN" in securityContext.capabilities.add)"#,
    ),
    (
        &["restricted:v1.24"],
        r#""spec":{"os":{"name":"windows"},"containers":[{"name":"a","securityContext":{"capabilities":null}}]}"#,
        r#"unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"])"#,
    ),
    (
        &["restricted:v1.25", "restricted:latest"],
        r#""spec":{"os":{"name":"windows"},"containers":[{"name":"a","securityContext":{"capabilities":null}}]}"#,
        "",
    ),
    // Namespaces of the host
    (BASELINE, r#""spec":{"hostNetwork":false,"hostPID":false,"hostIPC":false}"#, ""),
    (
        BASELINE,
        r#""spec":{"hostNetwork":true,"hostPID":true,"hostIPC":true}"#,
        "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
    ),
    // Volumes
    (&["baseline:latest"], r#""spec":{"volumes":[{"name":"v","nfs":{}}]}"#, ""),
    (
        &["baseline:latest", "baseline:v1.0"],
        r#""spec":{"volumes":[{"name":"v","hostPath":{"path":"/"}}]}"#,
        r#"hostPath volumes (volume "v")"#,
    ),
    (
        &["baseline:latest"],
        r#""spec":{"volumes":[{"name":"v","hostPath":{}},{"name":"w","hostPath":{}},{"name":"x","emptyDir":{}}]}"#,
        r#"hostPath volumes (volumes "v", "w")"#,
    ),
    (
        &["restricted:latest", "restricted:v1.0"],
        r#""spec":{"volumes":[{"name":"a","configMap":{}},{"name":"b","csi":{}},{"name":"c","downwardAPI":{}},
            {"name":"d","emptyDir":{}},{"name":"e","ephemeral":{}},{"name":"f","image":{}},
            {"name":"g","persistentVolumeClaim":{}},{"name":"h","projected":{}},{"name":"i","secret":{}}]}"#,
        "",
    ),
    (
        &["restricted:latest", "restricted:v1.0"],
        r#""spec":{"volumes":[{"name":"a","nfs":{}},{"name":"b","hostPath":{}},{"name":"c","nfs":{}},{"name":"d"}]}"#,
        r#"restricted volume types (volumes "a", "b", "c", "d" use restricted volume types "hostPath", "nfs", "unknown")"#,
    ),
    (
        &["restricted:latest"],
        r#""spec":{"volumes":[{"name":"a","gitRepo":{}}]}"#,
        r#"restricted volume types (volume "a" uses restricted volume type "gitRepo")"#,
    ),
    // Ports of the host
    (BASELINE, r#""spec":{"containers":[{"name":"a","ports":[{"containerPort":1,"hostPort":0}]}]}"#, ""),
    (
        BASELINE,
        r#""spec":{"containers":[{"name":"a","ports":[{"hostPort":80}]}]}"#,
        r#"hostPort (container "a" uses hostPort 80)"#,
    ),
    (
        BASELINE,
        r#""spec":{"containers":[{"name":"a","ports":[{"hostPort":9}]},{"name":"b","ports":[{"hostPort":10}]}]}"#,
        r#"hostPort (containers "a", "b" use hostPorts 10, 9)"#,
    ),
    // Hosts of probes
    (
        &["baseline:latest", "baseline:v1.34", "restricted:v1.34"],
        r#""spec":{"containers":[{"name":"a","livenessProbe":{"httpGet":{"port":1}},"lifecycle":{"preStop":{"tcpSocket":{"host":""}}}}]}"#,
        "",
    ),
    (
        &["baseline:v1.33", "restricted:v1.33"],
        r#""spec":{"containers":[{"name":"a","livenessProbe":{"httpGet":{"host":"h"}}}]}"#,
        "",
    ),
    (
        &["baseline:latest", "baseline:v1.34", "restricted:v1.34"],
        r#""spec":{"containers":[{"name":"b","readinessProbe":{"tcpSocket":{"host":"t"}}}],
            "initContainers":[{"name":"a","startupProbe":{"httpGet":{"host":"s"}},
                "lifecycle":{"postStart":{"httpGet":{"host":"p"}},"preStop":{"tcpSocket":{"host":"s"}}}}]}"#,
        r#"probe or lifecycle host (containers "a", "b" use probe or lifecycle hosts "p", "s", "t")"#,
    ),
    (
        &["baseline:latest"],
        r#""spec":{"ephemeralContainers":[{"name":"e","livenessProbe":{"httpGet":{"host":"h"}}}]}"#,
        r#"probe or lifecycle host (container "e" uses probe or lifecycle host "h")"#,
    ),
    // Privileged
    (BASELINE, r#""spec":{"containers":[{"name":"a","securityContext":{"privileged":false}}]}"#, ""),
    (
        BASELINE,
        r#""spec":{"containers":[{"name":"a","securityContext":{"privileged":true}}]}"#,
        r#"privileged (container "a" must not set securityContext.privileged=true)"#,
    ),
    // The mount of /proc, which is free in a namespace of users from 1.35 on, but not where it is restricted
    (BASELINE, r#""spec":{"containers":[{"name":"a","securityContext":{"procMount":"Default"}}]}"#, ""),
    (
        &["baseline:latest", "baseline:v1.0", "restricted:latest", "restricted:v1.34"],
        r#""spec":{"containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}}]}"#,
        r#"procMount (container "a" must not set securityContext.procMount to "Unmasked")"#,
    ),
    (
        &["baseline:v1.35", "baseline:latest"],
        r#""spec":{"hostUsers":false,"containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}}]}"#,
        "",
    ),
    (
        &["baseline:v1.34", "restricted:v1.34", "restricted:v1.35", "restricted:latest"],
        r#""spec":{"hostUsers":false,"containers":[{"name":"a","securityContext":{"procMount":"Unmasked"}}]}"#,
        r#"procMount (container "a" must not set securityContext.procMount to "Unmasked")"#,
    ),
    // SELinux
    (
        BASELINE,
        r#""spec":{"securityContext":{"seLinuxOptions":{"level":"s0"}},
            "containers":[{"name":"a","securityContext":{"seLinuxOptions":{"type":"container_kvm_t"}}}]}"#,
        "",
    ),
    (
        BASELINE,
        r#""spec":{"securityContext":{"seLinuxOptions":{"type":"x","user":"u"}},
            "containers":[{"name":"a","securityContext":{"seLinuxOptions":{"type":"y","role":"r"}}}]}"#,
        r#"seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: types "x", "y"; user may not be set; role may not be set)"#,
    ),
    (
        &["baseline:v1.30"],
        r#""spec":{"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}}"#,
        r#"seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "container_engine_t")"#,
    ),
    (
        &["baseline:v1.31", "baseline:latest", "restricted:v1.31"],
        r#""spec":{"securityContext":{"seLinuxOptions":{"type":"container_engine_t"}}}"#,
        "",
    ),
    // Seccomp: annotations, then fields
    (
        &["baseline:v1.18", "restricted:v1.18"],
        r#""metadata":{"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"docker/default",
            "container.seccomp.security.alpha.kubernetes.io/z":"unconfined"}}"#,
        "",
    ),
    (
        &["baseline:v1.18", "restricted:v1.18"],
        r#""metadata":{"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined",
            "container.seccomp.security.alpha.kubernetes.io/c":"bogus"}}"#,
        "seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/c=\"bogus\", \
         seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")",
    ),
    (
        &["baseline:v1.19", "baseline:latest"],
        r#""spec":{"securityContext":{"seccompProfile":{"type":"Localhost"}}}"#,
        "",
    ),
    (&["baseline:v1.18"], r#""spec":{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}"#, ""),
    (
        &["baseline:v1.19", "baseline:latest", "restricted:v1.19", "restricted:latest"],
        r#""spec":{"securityContext":{"seccompProfile":{"type":"Unconfined"}},
            "containers":[{"name":"a","securityContext":{"seccompProfile":{"type":"Unconfined"}}}]}"#,
        r#"seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined")"#,
    ),
    (
        &["restricted:v1.19", "restricted:latest"],
        r#""spec":{"securityContext":{"seccompProfile":null},"containers":[{"name":"a"},
            {"name":"b","securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}}]}"#,
        r#"seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#,
    ),
    (
        &["restricted:v1.24"],
        r#""spec":{"os":{"name":"windows"},"securityContext":{"seccompProfile":null}}"#,
        r#"seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#,
    ),
    (
        &["restricted:v1.25", "restricted:latest"],
        r#""spec":{"os":{"name":"windows"},"securityContext":{"seccompProfile":null}}"#,
        "",
    ),
    // Sysctls
    (
        BASELINE,
        r#""spec":{"securityContext":{"sysctls":[{"name":"kernel.shm_rmid_forced"},{"name":"net.ipv4.ip_unprivileged_port_start"}]}}"#,
        "",
    ),
    (
        &["baseline:v1.26"],
        r#""spec":{"securityContext":{"sysctls":[{"name":"net.ipv4.ip_local_reserved_ports"},{"name":"a"}]}}"#,
        "forbidden sysctls (net.ipv4.ip_local_reserved_ports, a)",
    ),
    (
        &["baseline:v1.28"],
        r#""spec":{"securityContext":{"sysctls":[{"name":"net.ipv4.ip_local_reserved_ports"},{"name":"net.ipv4.tcp_fin_timeout"}]}}"#,
        "forbidden sysctls (net.ipv4.tcp_fin_timeout)",
    ),
    (
        &["baseline:v1.31"],
        r#""spec":{"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_fin_timeout"},{"name":"net.ipv4.tcp_rmem"}]}}"#,
        "forbidden sysctls (net.ipv4.tcp_rmem)",
    ),
    (
        &["baseline:v1.32", "baseline:latest", "restricted:latest"],
        r#""spec":{"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem"},{"name":"net.ipv4.tcp_wmem"},
            {"name":"net.ipv4.tcp_keepalive_time"},{"name":"net.ipv4.tcp_keepalive_intvl"},{"name":"net.ipv4.tcp_keepalive_probes"}]}}"#,
        "",
    ),
    // Processes of a Windows host
    (BASELINE, r#""spec":{"securityContext":{"windowsOptions":{"hostProcess":false}}}"#, ""),
    (
        BASELINE,
        r#""spec":{"securityContext":{"windowsOptions":{"hostProcess":true}},
            "containers":[{"name":"a","securityContext":{"windowsOptions":{"hostProcess":true}}}]}"#,
        r#"hostProcess (pod and container "a" must not set securityContext.windowsOptions.hostProcess=true)"#,
    ),
    // Escalation
    (
        &["restricted:v1.7"],
        r#""spec":{"containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":null}}]}"#,
        "",
    ),
    (
        &["restricted:v1.8", "restricted:latest"],
        r#""spec":{"containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":true}},
            {"name":"b","securityContext":{"allowPrivilegeEscalation":null}}]}"#,
        r#"allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false)"#,
    ),
    (
        &["restricted:v1.24"],
        r#""spec":{"os":{"name":"windows"},"containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":null}}]}"#,
        r#"allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)"#,
    ),
    (
        &["restricted:v1.25"],
        r#""spec":{"os":{"name":"windows"},"containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":null}}]}"#,
        "",
    ),
    // Who is no root
    (
        &["restricted:v1.0", "restricted:latest"],
        r#""spec":{"securityContext":{"runAsNonRoot":null}}"#,
        r#"runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)"#,
    ),
    (
        &["restricted:v1.0", "restricted:latest"],
        r#""spec":{"securityContext":{"runAsNonRoot":false},"containers":[{"name":"a","securityContext":{"runAsNonRoot":false}}]}"#,
        r#"runAsNonRoot != true (pod and container "a" must not set securityContext.runAsNonRoot=false)"#,
    ),
    (
        &["restricted:latest"],
        r#""spec":{"securityContext":{"runAsNonRoot":null},"containers":[{"name":"a","securityContext":{"runAsNonRoot":true}}]}"#,
        "",
    ),
    (
        &["restricted:v1.34"],
        r#""spec":{"hostUsers":false,"securityContext":{"runAsNonRoot":false}}"#,
        "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
    ),
    (
        &["restricted:v1.35", "restricted:latest"],
        r#""spec":{"hostUsers":false,"securityContext":{"runAsNonRoot":false,"runAsUser":0}}"#,
        "",
    ),
    (
        &["restricted:latest"],
        r#""spec":{"hostUsers":true,"securityContext":{"runAsNonRoot":false}}"#,
        "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
    ),
    (&["restricted:v1.22"], r#""spec":{"securityContext":{"runAsUser":0}}"#, ""),
    (&["restricted:v1.23"], r#""spec":{"securityContext":{"runAsUser":1}}"#, ""),
    (
        &["restricted:v1.23", "restricted:latest"],
        r#""spec":{"securityContext":{"runAsUser":0},"containers":[{"name":"a","securityContext":{"runAsUser":0}}]}"#,
        r#"runAsUser=0 (pod and container "a" must not set runAsUser=0)"#,
    ),
    (
        &["restricted:v1.34"],
        r#""spec":{"hostUsers":false,"securityContext":{"runAsUser":0}}"#,
        "runAsUser=0 (pod must not set runAsUser=0)",
    ),
    // Nothing at all is looked at.
    (
        &["privileged:latest"],
        r#""spec":{"hostNetwork":true,"containers":[{"name":"a","securityContext":{"privileged":true}}]}"#,
        "",
    ),
];

/// A pod that the restricted level takes, with what a case has instead.
fn pod(case: &str) -> Value {
    let mut base = value(
        r#"{"metadata":{"name":"p"},"spec":{"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
            "containers":[{"name":"c"}]}}"#,
    );
    merge(&mut base, &value(&format!("{{{case}}}")));
    for kind in ["containers", "initContainers", "ephemeralContainers"] {
        for container in base.at_mut(&["spec", kind]).and_then(Value::as_array_mut).into_iter().flatten() {
            let mut whole =
                value(r#"{"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}"#);
            merge(&mut whole, container);
            *container = whole;
        }
    }
    base
}

/// As a merge patch does.
fn merge(base: &mut Value, change: &Value) {
    let Some(members) = change.as_object() else { return };
    for (key, new) in members.iter() {
        let has_both = new.as_object().is_some() && base.get(key).is_some_and(|old| old.as_object().is_some());
        match new {
            Value::Null => drop(base.remove_at(&[key])),
            new if has_both => merge(base.at_mut(&[key]).unwrap(), new),
            new => base.set_at(&[key], new.clone()),
        }
    }
}

#[test]
fn checks_of_each_level_and_release() {
    for (policies, case, want) in CASES {
        for text in *policies {
            assert_eq!(shown(policy(text), &pod(case)), *want, "{text} {case}");
        }
    }
    assert_eq!(shown(policy("restricted:latest"), &pod("")), "");
}

/// What lists allow, item by item, with the release that has it first.
#[test]
fn sysctls_and_types_of_each_release() {
    const SYSCTLS: [(&str, u64); 13] = [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
        ("net.ipv4.other", 37),
    ];
    const TYPES: [(&str, u64); 6] = [
        ("", 0),
        ("container_t", 0),
        ("container_init_t", 0),
        ("container_kvm_t", 0),
        ("container_engine_t", 31),
        ("other_t", 37),
    ];
    for minor in 0..=THIS_RELEASE {
        for level in ["baseline", "restricted"] {
            let policy = policy(&format!("{level}:v1.{minor}"));
            for (name, since) in SYSCTLS {
                let pod = pod(&format!(r#""spec":{{"securityContext":{{"sysctls":[{{"name":"{name}"}}]}}}}"#));
                let want = if minor < since { format!("forbidden sysctls ({name})") } else { String::new() };
                assert_eq!(shown(policy, &pod), want, "{level}:v1.{minor}");
            }
            for (name, since) in TYPES {
                let options = format!(r#"{{"seLinuxOptions":{{"type":"{name}"}}}}"#);
                let pod = pod(&format!(r#""spec":{{"securityContext":{options}}}"#));
                let forbidden = "pod set forbidden securityContext.seLinuxOptions: type";
                let want = format!("seLinuxOptions ({forbidden} \"{name}\")");
                assert_eq!(shown(policy, &pod), if minor < since { want } else { String::new() }, "v1.{minor}");
            }
        }
    }
}

/// Capabilities and volumes, of each kind that there is.
#[test]
fn capabilities_and_volumes() {
    const CAPABILITIES: &str = "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP \
        SETUID SYS_CHROOT";
    let adding = |name: &str| {
        let security = format!(r#"{{"capabilities":{{"drop":["ALL"],"add":["{name}"]}}}}"#);
        pod(&format!(r#""spec":{{"containers":[{{"name":"a","securityContext":{security}}}]}}"#))
    };
    for name in CAPABILITIES.split(' ').filter(|name| !name.is_empty()) {
        assert_eq!(shown(policy("baseline:latest"), &adding(name)), "", "{name}");
        let refused = format!(
            "unrestricted capabilities (container \"a\" must not include \"{name}\" in securityContext.capabilities.add)"
        );
        let want = if name == "NET_BIND_SERVICE" { String::new() } else { refused };
        assert_eq!(shown(policy("restricted:latest"), &adding(name)), want);
    }
    for name in ["NET_RAW", "SYS_ADMIN", "ALL", "chown", "CAP_CHOWN"] {
        let want = format!(
            "non-default capabilities (container \"a\" must not include \"{name}\" in securityContext.capabilities.add)"
        );
        assert_eq!(shown(policy("baseline:latest"), &adding(name)), want);
    }
    const VOLUMES: &str = "awsElasticBlockStore azureDisk azureFile cephfs cinder fc flexVolume flocker gcePersistentDisk gitRepo \
        glusterfs hostPath iscsi nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume";
    for kind in VOLUMES.split(' ').filter(|kind| !kind.is_empty()) {
        let pod = pod(&format!(r#""spec":{{"volumes":[{{"name":"v","{kind}":{{}}}}]}}"#));
        let want = format!("restricted volume types (volume \"v\" uses restricted volume type \"{kind}\")");
        assert_eq!(shown(policy("restricted:v1.0"), &pod), want);
        let of_host = if kind == "hostPath" { "hostPath volumes (volume \"v\")" } else { "" };
        assert_eq!(shown(policy("baseline:v1.0"), &pod), of_host);
    }
}

/// What is asked of containers is asked of all kinds of them.
#[test]
fn containers_of_each_kind() {
    for (container, want) in [
        (
            r#""securityContext":{"privileged":true}"#,
            "privileged (container \"k\" must not set securityContext.privileged=true)",
        ),
        (
            r#""securityContext":{"allowPrivilegeEscalation":true}"#,
            "allowPrivilegeEscalation != false (container \"k\" must set securityContext.allowPrivilegeEscalation=false)",
        ),
        (
            r#""securityContext":{"capabilities":{"drop":["KILL"]}}"#,
            "unrestricted capabilities (container \"k\" must set securityContext.capabilities.drop=[\"ALL\"])",
        ),
        (
            r#""securityContext":{"procMount":"Unmasked"}"#,
            "procMount (container \"k\" must not set securityContext.procMount to \"Unmasked\")",
        ),
        (
            r#""securityContext":{"runAsNonRoot":false}"#,
            "runAsNonRoot != true (container \"k\" must not set securityContext.runAsNonRoot=false)",
        ),
        (r#""securityContext":{"runAsUser":0}"#, "runAsUser=0 (container \"k\" must not set runAsUser=0)"),
        (
            r#""securityContext":{"seccompProfile":{"type":"Unconfined"}}"#,
            "seccompProfile (container \"k\" must not set securityContext.seccompProfile.type to \"Unconfined\")",
        ),
        (
            r#""securityContext":{"seLinuxOptions":{"user":"u"}}"#,
            "seLinuxOptions (container \"k\" set forbidden securityContext.seLinuxOptions: user may not be set)",
        ),
        (
            r#""securityContext":{"windowsOptions":{"hostProcess":true}}"#,
            "hostProcess (container \"k\" must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (
            r#""securityContext":{"appArmorProfile":{"type":"Unconfined"}}"#,
            "forbidden AppArmor profile (container \"k\" must not set AppArmor profile type to \"Unconfined\")",
        ),
        (r#""ports":[{"hostPort":80}]"#, "hostPort (container \"k\" uses hostPort 80)"),
        (
            r#""readinessProbe":{"tcpSocket":{"host":"h"}}"#,
            "probe or lifecycle host (container \"k\" uses probe or lifecycle host \"h\")",
        ),
    ] {
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            let pod = pod(&format!(r#""spec":{{"{list}":[{{"name":"k",{container}}}]}}"#));
            assert_eq!(shown(policy("restricted:latest"), &pod), want, "{list}");
        }
    }
    for minor in 0..=THIS_RELEASE {
        assert_eq!(shown(policy(&format!("restricted:v1.{minor}")), &pod("")), "", "v1.{minor}");
    }
}

/// Several are shown in one order, those of the baseline first.
#[test]
fn violations_in_order() {
    let bare =
        value(r#"{"spec":{"hostNetwork":true,"containers":[{"name":"c","securityContext":{"privileged":true}}]}}"#);
    assert_eq!(
        shown(policy("restricted:latest"), &bare),
        "host namespaces (hostNetwork=true), privileged (container \"c\" must not set securityContext.privileged=true), \
         allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), \
         unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), \
         runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true), \
         seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    // A server that stands for an earlier release knows no later checks.
    let probed = value(r#"{"spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"host":"h"}}}]}}"#);
    for (release, count) in [(33, 0), (34, 1), (36, 1)] {
        assert_eq!(checks::run(policy("baseline:latest"), &probed, release).len(), count, "{release}");
        assert_eq!(checks::run(policy("baseline:v1.99"), &probed, release).len(), count, "{release}");
    }
}

fn call(user: &str, namespace: &str, resource: &str) -> Call {
    Call {
        verb: "create".into(),
        user: Arc::new(User::named(user)),
        resource: GroupResource::new("", resource),
        version: "v1".into(),
        kind: GroupVersionKind::new("", "v1", "Pod"),
        namespace: namespace.into(),
        name: "p".into(),
        subresource: Str::default(),
        mode: Mode::Real,
        deadline: None,
        warnings: Warnings::default(),
    }
}

fn plugin() -> PodSecurity {
    let text = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n\
                exemptions: {usernames: [bob], namespaces: [free], runtimeClasses: [kata]}\n";
    PodSecurity::new(&Objects::new(), Arc::new(()), 36, Some(text.as_bytes())).unwrap()
}

/// What the audit log is told.
#[test]
fn annotations() {
    let plugin = plugin();
    let labelled = |labels: &[(&str, &str)]| {
        let find = |key: &str| {
            let key = key.strip_prefix("pod-security.kubernetes.io/")?;
            labels.iter().find(|(k, _)| *k == key).map(|(_, value)| *value)
        };
        Ok(Policy::of(find, &Policy::PRIVILEGED))
    };
    let privileged =
        r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","securityContext":{"privileged":true}}]}}"#;
    let fault = "privileged (container \"c\" must not set securityContext.privileged=true)";
    let would = |policy: &str| format!("would violate PodSecurity \"{policy}\": {fault}");
    type Said = (bool, Vec<(&'static str, String)>, Vec<String>);
    type Labels = Result<(Policy, ErrorList), String>;
    let cases: [(Labels, &str, Said); 7] = [
        (labelled(&[]), privileged, (true, vec![("enforce-policy", "privileged:latest".into())], vec![])),
        (
            labelled(&[("enforce", "baseline"), ("enforce-version", "v1.30"), ("audit", "baseline")]),
            privileged,
            (
                false,
                vec![("enforce-policy", "baseline:v1.30".into()), ("audit-violations", would("baseline:latest"))],
                vec![],
            ),
        ),
        (
            labelled(&[("audit", "baseline"), ("warn", "baseline")]),
            privileged,
            (
                true,
                vec![("enforce-policy", "privileged:latest".into()), ("audit-violations", would("baseline:latest"))],
                vec![would("baseline:latest")],
            ),
        ),
        (
            labelled(&[("enforce", "baseline")]),
            r#"{"spec":{"runtimeClassName":"kata","hostNetwork":true}}"#,
            (true, vec![("exempt", "runtimeClass".into())], vec![]),
        ),
        // What cannot be read is enforced as the strictest, and noted of the others.
        (
            labelled(&[("audit", "odd")]),
            privileged,
            (
                true,
                vec![
                    (
                        "error",
                        "Failed to parse policy: metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: \"odd\": \
                         must be one of privileged, baseline, restricted"
                            .into(),
                    ),
                    ("enforce-policy", "privileged:latest".into()),
                ],
                vec![],
            ),
        ),
        (
            labelled(&[("enforce", "baseline")]),
            r#"{"spec":{"containers":[{"name":"c"}]}}"#,
            (true, vec![("enforce-policy", "baseline:latest".into())], vec![]),
        ),
        (
            Err("namespaces \"n\" not found".to_owned()),
            privileged,
            (
                false,
                vec![(
                    "error",
                    "Internal error occurred: failed to lookup namespace \"n\": namespaces \"n\" not found".into(),
                )],
                vec![],
            ),
        ),
    ];
    for (policy, pod, (passes, want, warnings)) in cases {
        let call = call("ann", "n", "pods");
        let request = Request::new(&call, Operation::Create);
        let pod = value(pod);
        assert_eq!(plugin.check_pod(request, policy.clone(), &pod).is_ok(), passes, "{pod:?}");
        let want: Vec<(String, String)> =
            want.into_iter().map(|(key, text)| (format!("pod-security.kubernetes.io/{key}"), text)).collect();
        assert_eq!(call.warnings.take_annotations(), want, "{policy:?} {pod:?}");
        assert_eq!(call.warnings.take(), warnings, "{policy:?} {pod:?}");
    }
    for (user, namespace, by) in [("bob", "n", "user"), ("ann", "free", "namespace")] {
        let call = call(user, namespace, "pods");
        let request = Request::new(&call, Operation::Create);
        assert!(matches!(plugin.validate(request, &value(privileged)), Verdict::Idle));
        let want = [("pod-security.kubernetes.io/exempt".to_owned(), by.to_owned())];
        assert_eq!(call.warnings.take_annotations(), want);
    }
}

/// Updates of pods are looked at if an image changes or a container comes.
#[test]
fn updates() {
    let old = value(
        r#"{"spec":{"containers":[{"name":"a","image":"1"}],"initContainers":[{"name":"i","image":"1"}],
            "ephemeralContainers":[{"name":"e","image":"1"}]}}"#,
    );
    for (change, want) in [
        (r#"{"metadata":{"labels":{"a":"b"}}}"#, false),
        (r#"{"spec":{"containers":[{"name":"a","image":"2"}]}}"#, true),
        (r#"{"spec":{"initContainers":[{"name":"i","image":"2"}]}}"#, true),
        (r#"{"spec":{"initContainers":[]}}"#, true),
        (r#"{"spec":{"ephemeralContainers":[{"name":"e","image":"2"}]}}"#, true),
        (r#"{"spec":{"ephemeralContainers":[{"name":"e","image":"1"},{"name":"f","image":"1"}]}}"#, true),
        (r#"{"spec":{"ephemeralContainers":[]}}"#, false),
    ] {
        let mut new = old.clone();
        merge(&mut new, &value(change));
        assert_eq!(changes_images(&new, &old), want, "{change}");
    }
}

/// Labels of namespaces that are exempt mean nothing, which is told.
#[test]
fn exempt_namespaces() {
    let plugin = plugin();
    let namespace = |labels: &[(&str, &str)]| {
        let mut namespace = Value::object();
        namespace.meta_mut().set("name", "free");
        for (key, value) in labels {
            namespace.meta_mut().set_label(&format!("pod-security.kubernetes.io/{key}"), value);
        }
        namespace
    };
    for (labels, want) in [
        (&[][..], None),
        (&[("enforce", "privileged"), ("warn-version", "v1.20")], None),
        (&[("enforce", "baseline"), ("enforce-version", "v1.30")], Some("enforce=baseline:v1.30")),
        (&[("audit", "restricted"), ("warn", "baseline")], Some("audit=restricted:latest, warn=baseline:latest")),
    ] {
        let namespace = namespace(labels);
        let call = call("ann", "", "namespaces");
        let request = Request::new(&call, Operation::Create);
        plugin.check_namespace(request, &namespace).unwrap();
        let want = want.map(|policy| {
            format!("namespace \"free\" is exempt from Pod Security, and the policy ({policy}) will be ignored")
        });
        assert_eq!(call.warnings.take(), want.into_iter().collect::<Vec<_>>(), "{labels:?}");
    }
    let [baseline, old] = ["baseline:v1.30", "baseline:latest"].map(policy);
    for (new, before, stricter) in [
        ("baseline:latest", "privileged:latest", true),
        ("restricted:latest", "baseline:latest", true),
        ("baseline:latest", "restricted:latest", false),
        ("baseline:v1.30", "restricted:latest", true),
        ("privileged:latest", "baseline:latest", false),
        ("baseline:latest", "baseline:latest", false),
    ] {
        assert_eq!(policy(new).is_stricter_than(policy(before)), stricter, "{new} after {before}");
    }
    assert!(baseline.is_stricter_than(old));
}
