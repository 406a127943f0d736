//! Who pods and containers run as, and what they may do.

use super::windows;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::is_user_or_group_id;
use kubelith_rules::Env;
use kubelith_rules::common::{Fields, descending_path, supported};
use kubelith_rules::internal;

const MAX_PROFILE_PATH: usize = 4095;
const MAX_SYSCTL: usize = 253;
/// Settings of the kernel that each IPC namespace has its own of.
const OF_IPC: [&str; 10] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

fn check_id(context: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(id) = context.int(key) {
        errors.extend(is_user_or_group_id(id).into_iter().map(|m| Error::invalid(&path.child(key), id, m)));
    }
}

pub fn check_pod(env: &Env, context: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        check_id(context, key, path, errors);
    }
    for (i, id) in context.list("supplementalGroups").iter().filter_map(Value::as_i64).enumerate() {
        let path = path.item("supplementalGroups", i);
        errors.extend(is_user_or_group_id(id).into_iter().map(|m| Error::invalid(&path, id, m)));
    }
    if spec.flag("shareProcessNamespace") && spec.flag("hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(Error::invalid(&path.child("shareProcessNamespace"), true, detail));
    }
    check_sysctls(context, spec, &path.child("sysctls"), errors);
    if let Some(policy) = context.some("fsGroupChangePolicy").and_then(Value::as_str) {
        supported(policy, &["Always", "OnRootMismatch"], &path.child("fsGroupChangePolicy"), errors);
    }
    check_seccomp(context, path, errors);
    windows::check_options(context, path, errors);
    check_apparmor(context, path, errors);
    let of_selinux: &[&str] = match env.features.any_selinux_policy {
        true => &["MountOption", "Recursive"],
        false => &["Recursive"],
    };
    let policies: [(&str, &[&str]); 2] =
        [("supplementalGroupsPolicy", &["Merge", "Strict"]), ("seLinuxChangePolicy", of_selinux)];
    for (key, known) in policies {
        if let Some(policy) = context.some(key).and_then(Value::as_str) {
            supported(policy, known, &path.child(key), errors);
        }
    }
}

fn check_sysctls(context: &Value, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    const RULE: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    let mut seen = Vec::new();
    for (i, sysctl) in context.list("sysctls").iter().enumerate() {
        let (name, item) = (sysctl.text("name"), path.index(i));
        let path = item.child("name");
        if name.is_empty() {
            errors.push(Error::required(&path, ""));
        } else if !is_sysctl(name) {
            let detail = format!("must have at most {MAX_SYSCTL} characters and match regex {RULE}");
            errors.push(Error::invalid(&path, name, detail));
        } else if seen.contains(&name) {
            errors.push(Error::duplicate(&path, name));
        }
        let dotted = dotted(name);
        let is_ipc = OF_IPC.contains(&dotted.as_str()) || dotted.starts_with("fs.mqueue.");
        if dotted.starts_with("net.") && spec.flag("hostNetwork") {
            errors.push(Error::invalid(&path, name, "may not be specified when 'hostNetwork' is true"));
        } else if is_ipc && spec.flag("hostIPC") {
            errors.push(Error::invalid(&path, name, "may not be specified when 'hostIPC' is true"));
        }
        seen.push(name);
    }
}

/// With dots between its parts: one that is written with slashes has dots within parts.
fn dotted(name: &str) -> String {
    let plain = name.split('*').next().unwrap_or_default();
    match plain.find(['.', '/']).map(|i| plain.as_bytes()[i]) {
        Some(b'/') => {
            let swap = |c| match c {
                '.' => '/',
                '/' => '.',
                other => other,
            };
            plain.chars().map(swap).collect()
        }
        _ => plain.to_owned(),
    }
}

fn is_sysctl(name: &str) -> bool {
    let part = |p: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = p.as_bytes();
        matches!((bytes.first(), bytes.last()), (Some(a), Some(z)) if inner(*a) && inner(*z))
            && bytes.iter().all(|b| inner(*b) || matches!(b, b'-' | b'_'))
    };
    name.len() <= MAX_SYSCTL && name.split(['.', '/']).all(part)
}

fn check_seccomp(context: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(profile) = context.some("seccompProfile") else { return };
    let path = path.child("seccompProfile");
    let kind = profile.text("type");
    if kind.is_empty() {
        errors.push(Error::required(&path.child("type"), "type is required when seccompProfile is set"));
    } else {
        supported(kind, &["Localhost", "RuntimeDefault", "Unconfined"], &path.child("type"), errors);
    }
    let file = profile.some("localhostProfile").and_then(Value::as_str);
    let path = path.child("localhostProfile");
    match (kind, file) {
        ("Localhost", None) => errors.push(Error::required(&path, "must be set when seccomp type is Localhost")),
        ("Localhost", Some(file)) => descending_path(file, &path, errors),
        (_, Some(file)) => {
            let shown = format!(
                "{{\"Type\":{},\"LocalhostProfile\":{}}}",
                kubelith_meta::text::quote(kind),
                kubelith_meta::text::quote(file)
            );
            let detail = "can only be set when seccomp type is Localhost";
            errors.push(Error::invalid(&path, BadValue::text(shown), detail));
        }
        (_, None) => {}
    }
}

fn check_apparmor(context: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(profile) = context.some("appArmorProfile") else { return };
    let path = path.child("appArmorProfile");
    let file = profile.some("localhostProfile").and_then(Value::as_str);
    let file_path = path.child("localhostProfile");
    const MISSING: &str = "must be set when AppArmor type is Localhost";
    match profile.text("type") {
        "Localhost" => match file {
            None => errors.push(Error::required(&file_path, MISSING)),
            Some(file) => {
                if file.trim() != file {
                    errors.push(Error::invalid(&file_path, file, "must not be padded with whitespace"));
                } else if file.is_empty() {
                    errors.push(Error::required(&file_path, MISSING));
                }
                if file.len() > MAX_PROFILE_PATH {
                    errors.push(Error::too_long(&file_path, MAX_PROFILE_PATH));
                }
            }
        },
        "RuntimeDefault" | "Unconfined" => {
            if let Some(file) = file {
                let detail = "can only be set when AppArmor type is Localhost";
                errors.push(Error::invalid(&file_path, BadValue::json(file), detail));
            }
        }
        "" => {
            let detail = "type is required when appArmorProfile is set";
            errors.push(Error::required(&path.child("type"), detail));
        }
        other => supported(other, &["Localhost", "RuntimeDefault", "Unconfined"], &path.child("type"), errors),
    }
}

pub fn check_container(env: &Env, context: &Value, host_users: bool, path: &Path<'_>, errors: &mut ErrorList) {
    if context.flag("privileged") && !env.allow_privileged {
        errors.push(Error::forbidden(&path.child("privileged"), "disallowed by cluster policy"));
    }
    for key in ["runAsUser", "runAsGroup"] {
        check_id(context, key, path, errors);
    }
    if let Some(kind) = context.some("procMount").and_then(Value::as_str) {
        let path = path.child("procMount");
        supported(kind, &["Default", "Unmasked"], &path, errors);
        if host_users && kind == "Unmasked" {
            let detail = "`hostUsers` must be false to use `Unmasked`";
            errors.push(Error::invalid(&path, BadValue::json(kind), detail));
        }
    }
    check_seccomp(context, path, errors);
    if context.get("allowPrivilegeEscalation").and_then(Value::as_bool) == Some(false) {
        let shown = || internal::shown("SecurityContext", Some(context));
        if context.flag("privileged") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(Error::invalid(path, shown(), detail));
        }
        let added = context.some("capabilities").map_or_else(Vec::new, |c| c.texts("add"));
        for _ in added.into_iter().filter(|c| *c == "CAP_SYS_ADMIN") {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.push(Error::invalid(path, shown(), detail));
        }
    }
    windows::check_options(context, path, errors);
    check_apparmor(context, path, errors);
}

pub fn check_host_users(env: &Env, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if spec.get("hostUsers").and_then(Value::as_bool) != Some(false) {
        return;
    }
    for (key, name) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        let is_fine = key == "hostNetwork" && env.features.host_network_of_user_namespaces;
        if spec.flag(key) && !is_fine {
            errors.push(Error::forbidden(&path.child(name), "when `hostUsers` is false"));
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (i, container) in spec.list(list).iter().enumerate() {
            if !container.list("volumeDevices").is_empty() {
                let path = path.item(list, i);
                errors.push(Error::forbidden(&path.child("volumeDevices"), "when `hostUsers` is false"));
            }
        }
    }
}
