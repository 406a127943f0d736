//! The checks of the Pod Security Standards. Each knows from which release on it asks for what.

use super::policy::{Level, LevelVersion, Version};
use crate::plugins::list;
use kubelith_meta::text::Quoted;
use kubelith_meta::{Map, Value};
use std::collections::BTreeSet;

/// What a pod is refused for.
pub struct Violation {
    pub reason: String,
    pub detail: String,
}

/// The last release that changed a check: later ones are the same.
const NEWEST: u64 = 35;

struct Check {
    level: Level,
    /// The first release that has it.
    since: u64,
    /// From this release on another check of the restricted level stands for it there.
    replaced_since: Option<u64>,
    run: fn(&Pod<'_>) -> Option<Violation>,
}

const fn baseline(since: u64, replaced_since: Option<u64>, run: fn(&Pod<'_>) -> Option<Violation>) -> Check {
    Check { level: Level::Baseline, since, replaced_since, run }
}

const fn restricted(since: u64, run: fn(&Pod<'_>) -> Option<Violation>) -> Check {
    Check { level: Level::Restricted, since, replaced_since: None, run }
}

/// In the order in which their violations are shown.
const CHECKS: [Check; 19] = [
    baseline(0, None, app_armor_profile),
    baseline(0, Some(22), capabilities),
    baseline(0, None, host_namespaces),
    baseline(0, Some(0), host_path_volumes),
    baseline(0, None, host_ports),
    baseline(34, None, probe_hosts),
    baseline(0, None, privileged),
    baseline(0, Some(35), proc_mount_unless_user_namespace),
    baseline(0, None, selinux_options),
    baseline(0, Some(19), seccomp_profile),
    baseline(0, None, sysctls),
    baseline(0, None, windows_host_process),
    restricted(8, privilege_escalation),
    restricted(22, restricted_capabilities),
    restricted(35, proc_mount),
    restricted(0, restricted_volumes),
    restricted(0, run_as_non_root),
    restricted(23, run_as_user),
    restricted(19, restricted_seccomp_profile),
];

/// What breaks the policy, of a pod or a template. The server may stand for an earlier release than `NEWEST`, which knows
/// no later checks.
pub fn run(policy: LevelVersion, object: &Value, release: u64) -> Vec<Violation> {
    let newest = NEWEST.min(release);
    let minor = match policy.version {
        Version::Latest => newest,
        Version::Minor(minor) => minor.min(newest),
    };
    let pod = Pod { object, minor };
    let applies = |check: &&Check| {
        let replaced =
            policy.level == Level::Restricted && check.replaced_since.is_some_and(|replaced| replaced <= minor);
        check.level <= policy.level && check.since <= minor && !replaced
    };
    CHECKS.iter().filter(applies).filter_map(|check| (check.run)(&pod)).collect()
}

/// A pod, and the release whose rules it is to follow.
struct Pod<'a> {
    object: &'a Value,
    minor: u64,
}

impl<'a> Pod<'a> {
    fn spec(&self, path: &[&str]) -> Option<&'a Value> {
        self.object.get("spec")?.at(path)
    }

    /// A member of the pod's own security context.
    fn context(&self, key: &str) -> Option<&'a Value> {
        self.spec(&["securityContext", key])
    }

    fn containers(&self) -> impl Iterator<Item = &'a Value> {
        let of = |kind| list(self.object, &["spec", kind]).iter();
        of("initContainers").chain(of("containers")).chain(of("ephemeralContainers"))
    }

    fn is_windows(&self) -> bool {
        self.spec(&["os", "name"]).and_then(Value::as_str) == Some("windows")
    }

    /// In a namespace of its own, root is nobody outside.
    fn has_user_namespace(&self) -> bool {
        self.spec(&["hostUsers"]).and_then(Value::as_bool) == Some(false)
    }

    /// Names of the containers that `is_bad`.
    fn bad(&self, mut is_bad: impl FnMut(&'a Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(|c| is_bad(c)).map(|c| c.str_at(&["name"])).collect()
    }
}

fn of_context<'a>(container: &'a Value, path: &[&str]) -> Option<&'a Value> {
    container.get("securityContext")?.at(path)
}

fn is_true(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool) == Some(true)
}

fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{item}\"")).collect();
    items.join(", ")
}

/// `container "a"`, `containers "a", "b"`.
fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names.iter().copied()))
}

/// Who set something: the pod, some containers, or both.
fn setters(pod: bool, names: &[&str]) -> Option<String> {
    let mut all = Vec::new();
    if pod {
        all.push("pod".to_owned());
    }
    if !names.is_empty() {
        all.push(containers(names));
    }
    (!all.is_empty()).then(|| all.join(" and "))
}

fn violation(reason: &str, detail: String) -> Option<Violation> {
    Some(Violation { reason: reason.into(), detail })
}

fn app_armor_profile(pod: &Pod<'_>) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let mut values = BTreeSet::new();
    let mut is_bad = |profile: Option<&Value>| {
        let kind = profile.map(|p| p.str_at(&["type"]).to_owned());
        let bad = kind.filter(|kind| !matches!(kind.as_str(), "RuntimeDefault" | "Localhost"));
        bad.map(|kind| values.insert(kind)).is_some()
    };
    let pod_is_bad = is_bad(pod.context("appArmorProfile"));
    let names = pod.bad(|c| is_bad(of_context(c, &["appArmorProfile"])));
    let annotations = pod.object.meta().annotations().into_iter().flat_map(Map::iter);
    let mut forbidden: Vec<String> = annotations
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| {
            key.starts_with(PREFIX)
                && !(value.is_empty() || *value == "runtime/default" || value.starts_with("localhost/"))
        })
        .map(|(key, value)| format!("{key}={}", Quoted(value)))
        .collect();
    forbidden.sort();
    let mut who: Vec<String> = setters(pod_is_bad, &names).into_iter().collect();
    if !forbidden.is_empty() {
        who.push(plural("annotation", "annotations", forbidden.len()).to_owned());
    }
    if who.is_empty() {
        return None;
    }
    let all: Vec<&str> = values.iter().map(String::as_str).chain(forbidden.iter().map(String::as_str)).collect();
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", all.len());
    let (who, count) = (who.join(" and "), all);
    violation(reason, format!("{who} must not set AppArmor profile type to {}", quoted(count)))
}

/// Capabilities that containers have anyway.
const DEFAULT_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Containers that add capabilities beyond `allowed`, and those capabilities.
fn added<'a>(pod: &Pod<'a>, allowed: &[&str]) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let mut extra = BTreeSet::new();
    let names = pod.bad(|container| {
        let adds = list(container, &["securityContext", "capabilities", "add"]).iter().filter_map(Value::as_str);
        let beyond: Vec<&str> = adds.filter(|c| !allowed.contains(c)).collect();
        extra.extend(beyond.iter().copied());
        !beyond.is_empty()
    });
    (names, extra)
}

fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let (names, extra) = added(pod, &DEFAULT_CAPABILITIES);
    if names.is_empty() {
        return None;
    }
    let (who, what) = (containers(&names), quoted(extra));
    violation("non-default capabilities", format!("{who} must not include {what} in securityContext.capabilities.add"))
}

fn restricted_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 25 && pod.is_windows() {
        return None;
    }
    let keeps = pod.bad(|container| {
        let drops = list(container, &["securityContext", "capabilities", "drop"]);
        !drops.iter().any(|c| c.as_str() == Some("ALL"))
    });
    let (adds, extra) = added(pod, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keeps.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeps)));
    }
    if !adds.is_empty() {
        let (who, what) = (containers(&adds), quoted(extra));
        details.push(format!("{who} must not include {what} in securityContext.capabilities.add"));
    }
    if details.is_empty() { None } else { violation("unrestricted capabilities", details.join("; ")) }
}

fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let used = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|key| is_true(pod.spec(&[key])));
    let used: Vec<String> = used.map(|key| format!("{key}=true")).collect();
    if used.is_empty() { None } else { violation("host namespaces", used.join(", ")) }
}

fn host_path_volumes(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = list(pod.object, &["spec", "volumes"]).iter().filter(|v| v.get("hostPath").is_some());
    let names: Vec<&str> = volumes.map(|v| v.str_at(&["name"])).collect();
    if names.is_empty() {
        return None;
    }
    let word = plural("volume", "volumes", names.len());
    violation("hostPath volumes", format!("{word} {}", quoted(names)))
}

fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let mut ports = BTreeSet::new();
    let names = pod.bad(|container| {
        let used = list(container, &["ports"]).iter().filter_map(|p| p.get("hostPort").and_then(Value::as_i64));
        let used: Vec<String> = used.filter(|port| *port != 0).map(|port| port.to_string()).collect();
        let bad = !used.is_empty();
        ports.extend(used);
        bad
    });
    if names.is_empty() {
        return None;
    }
    let (who, verb) = (containers(&names), plural("uses", "use", names.len()));
    let word = plural("hostPort", "hostPorts", ports.len());
    let ports: Vec<String> = ports.into_iter().collect();
    violation("hostPort", format!("{who} {verb} {word} {}", ports.join(", ")))
}

fn probe_hosts(pod: &Pod<'_>) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let mut hosts = BTreeSet::new();
    let names: BTreeSet<&str> = pod
        .bad(|container| {
            let handlers = HANDLERS.iter().filter_map(|path| container.at(path));
            let named = handlers.flat_map(|h| [h.str_at(&["httpGet", "host"]), h.str_at(&["tcpSocket", "host"])]);
            let named: Vec<&str> = named.filter(|host| !host.is_empty()).collect();
            hosts.extend(named.iter().copied());
            !named.is_empty()
        })
        .into_iter()
        .collect();
    if names.is_empty() {
        return None;
    }
    let names: Vec<&str> = names.into_iter().collect();
    let (who, verb) = (containers(&names), plural("uses", "use", names.len()));
    let word = plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.len());
    violation("probe or lifecycle host", format!("{who} {verb} {word} {}", quoted(hosts)))
}

fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let names = pod.bad(|c| is_true(of_context(c, &["privileged"])));
    if names.is_empty() {
        return None;
    }
    violation("privileged", format!("{} must not set securityContext.privileged=true", containers(&names)))
}

fn proc_mount_unless_user_namespace(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 35 && pod.has_user_namespace() { None } else { proc_mount(pod) }
}

fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    let mut kinds = BTreeSet::new();
    let names = pod.bad(|container| {
        let kind = of_context(container, &["procMount"]).and_then(Value::as_str).filter(|kind| *kind != "Default");
        kind.map(|kind| kinds.insert(kind.to_owned())).is_some()
    });
    if names.is_empty() {
        return None;
    }
    let what = quoted(kinds.iter().map(String::as_str));
    violation("procMount", format!("{} must not set securityContext.procMount to {what}", containers(&names)))
}

fn selinux_options(pod: &Pod<'_>) -> Option<Violation> {
    let (mut kinds, mut user, mut role) = (BTreeSet::new(), false, false);
    let mut is_bad = |options: Option<&Value>| {
        let Some(options) = options else { return false };
        let kind = options.str_at(&["type"]);
        let known = matches!(kind, "" | "container_t" | "container_init_t" | "container_kvm_t");
        let bad_kind = !(known || (pod.minor >= 31 && kind == "container_engine_t"));
        if bad_kind {
            kinds.insert(kind.to_owned());
        }
        let (sets_user, sets_role) = (!options.str_at(&["user"]).is_empty(), !options.str_at(&["role"]).is_empty());
        user |= sets_user;
        role |= sets_role;
        bad_kind || sets_user || sets_role
    };
    let pod_is_bad = is_bad(pod.context("seLinuxOptions"));
    let names = pod.bad(|c| is_bad(of_context(c, &["seLinuxOptions"])));
    let who = setters(pod_is_bad, &names)?;
    let mut data = Vec::new();
    if !kinds.is_empty() {
        let word = plural("type", "types", kinds.len());
        data.push(format!("{word} {}", quoted(kinds.iter().map(String::as_str))));
    }
    if user {
        data.push("user may not be set".into());
    }
    if role {
        data.push("role may not be set".into());
    }
    violation("seLinuxOptions", format!("{who} set forbidden securityContext.seLinuxOptions: {}", data.join("; ")))
}

fn seccomp_profile(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor < 19 {
        return seccomp_annotations(pod);
    }
    let mut values = BTreeSet::new();
    let pod_is_bad = bad_seccomp(pod.context("seccompProfile"), &mut values);
    let names = pod.bad(|c| bad_seccomp(of_context(c, &["seccompProfile"]), &mut values));
    forbidden_seccomp(setters(pod_is_bad, &names)?, &values)
}

fn bad_seccomp(profile: Option<&Value>, values: &mut BTreeSet<String>) -> bool {
    let kind = profile.map(|p| p.str_at(&["type"]));
    let bad = kind.filter(|kind| !matches!(*kind, "RuntimeDefault" | "Localhost"));
    bad.map(|kind| values.insert(kind.to_owned())).is_some()
}

fn forbidden_seccomp(who: String, values: &BTreeSet<String>) -> Option<Violation> {
    let what = quoted(values.iter().map(String::as_str));
    violation("seccompProfile", format!("{who} must not set securityContext.seccompProfile.type to {what}"))
}

/// Before there were fields for it.
fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let of_containers = pod.containers().map(|c| {
        let name = c.str_at(&["name"]);
        format!("container.seccomp.security.alpha.kubernetes.io/{name}")
    });
    let keys = std::iter::once("seccomp.security.alpha.kubernetes.io/pod".to_owned()).chain(of_containers);
    let forbidden: BTreeSet<String> = keys
        .filter_map(|key| Some((pod.object.meta().annotation(&key)?, key)))
        .filter(|(value, _)| {
            !matches!(*value, "runtime/default" | "docker/default") && !value.starts_with("localhost/")
        })
        .map(|(value, key)| format!("{key}={}", Quoted(value)))
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    let word = plural("annotation", "annotations", forbidden.len());
    let forbidden: Vec<String> = forbidden.into_iter().collect();
    violation("seccompProfile", format!("forbidden {word} {}", forbidden.join(", ")))
}

fn restricted_seccomp_profile(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 25 && pod.is_windows() {
        return None;
    }
    let mut values = BTreeSet::new();
    let of_pod = pod.context("seccompProfile");
    let pod_is_bad = bad_seccomp(of_pod, &mut values);
    let names = pod.bad(|c| bad_seccomp(of_context(c, &["seccompProfile"]), &mut values));
    if let Some(who) = setters(pod_is_bad, &names) {
        return forbidden_seccomp(who, &values);
    }
    let silent = pod.bad(|c| of_context(c, &["seccompProfile"]).is_none());
    if of_pod.is_some() || silent.is_empty() {
        return None;
    }
    let who = containers(&silent);
    violation(
        "seccompProfile",
        format!("pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""),
    )
}

/// Sysctls that stay within a pod, with the release that found so.
const SAFE_SYSCTLS: [(&str, u64); 12] = [
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
];

fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
    let is_safe = |name: &str| SAFE_SYSCTLS.iter().any(|(safe, since)| *safe == name && *since <= pod.minor);
    let set = list(pod.object, &["spec", "securityContext", "sysctls"]).iter().map(|s| s.str_at(&["name"]));
    let forbidden: Vec<&str> = set.filter(|name| !is_safe(name)).collect();
    if forbidden.is_empty() { None } else { violation("forbidden sysctls", forbidden.join(", ")) }
}

fn windows_host_process(pod: &Pod<'_>) -> Option<Violation> {
    let pod_is_bad = is_true(pod.spec(&["securityContext", "windowsOptions", "hostProcess"]));
    let names = pod.bad(|c| is_true(of_context(c, &["windowsOptions", "hostProcess"])));
    let who = setters(pod_is_bad, &names)?;
    violation("hostProcess", format!("{who} must not set securityContext.windowsOptions.hostProcess=true"))
}

fn privilege_escalation(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 25 && pod.is_windows() {
        return None;
    }
    let may = |c| of_context(c, &["allowPrivilegeEscalation"]).and_then(Value::as_bool) != Some(false);
    let names = pod.bad(may);
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    violation(
        "allowPrivilegeEscalation != false",
        format!("{who} must set securityContext.allowPrivilegeEscalation=false"),
    )
}

fn restricted_volumes(pod: &Pod<'_>) -> Option<Violation> {
    const ALLOWED: [&str; 9] = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let mut kinds = BTreeSet::new();
    let mut names = Vec::new();
    for volume in list(pod.object, &["spec", "volumes"]) {
        if ALLOWED.iter().any(|kind| volume.get(kind).is_some()) {
            continue;
        }
        names.push(volume.str_at(&["name"]));
        let members = volume.as_object().into_iter().flat_map(Map::keys);
        kinds.insert(members.into_iter().find(|key| *key != "name").unwrap_or("unknown"));
    }
    if names.is_empty() {
        return None;
    }
    let (word, verb) = (plural("volume", "volumes", names.len()), plural("uses", "use", names.len()));
    let kind = plural("restricted volume type", "restricted volume types", kinds.len());
    let (names, kinds) = (quoted(names), quoted(kinds));
    violation("restricted volume types", format!("{word} {names} {verb} {kind} {kinds}"))
}

fn run_as_non_root(pod: &Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if pod.minor >= 35 && pod.has_user_namespace() {
        return None;
    }
    let of_pod = pod.context("runAsNonRoot").and_then(Value::as_bool);
    let of = |c| of_context(c, &["runAsNonRoot"]).and_then(Value::as_bool);
    let explicit = pod.bad(|c| of(c) == Some(false));
    if let Some(who) = setters(of_pod == Some(false), &explicit) {
        return violation(REASON, format!("{who} must not set securityContext.runAsNonRoot=false"));
    }
    let silent = pod.bad(|c| of(c).is_none());
    if of_pod == Some(true) || silent.is_empty() {
        return None;
    }
    violation(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent)))
}

fn run_as_user(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 35 && pod.has_user_namespace() {
        return None;
    }
    let is_root = |user: Option<&Value>| user.and_then(Value::as_i64) == Some(0);
    let names = pod.bad(|c| is_root(of_context(c, &["runAsUser"])));
    let who = setters(is_root(pod.context("runAsUser")), &names)?;
    violation("runAsUser=0", format!("{who} must not set runAsUser=0"))
}
