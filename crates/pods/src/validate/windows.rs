//! Pods of Windows nodes, and what an operating system rules out.

use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::is_dns1123_subdomain;
use kubelith_rules::Env;
use kubelith_rules::common::{Fields, member};

const MAX_CREDENTIAL_SPEC_KIB: usize = 64;
/// Bytes.
const MAX_DOMAIN: usize = 256;
const MAX_USER: usize = 104;
const MAX_NETBIOS: usize = 15;
const MAX_DNS_LABEL: usize = 63;
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// `windowsOptions` of a security context.
pub fn check_options(context: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(options) = context.some("windowsOptions") else { return };
    let path = path.child("windowsOptions");
    let text = |key: &str| options.some(key).map(Value::or_empty);
    let mut refuse = |key: &str, text: &str, detail: String| {
        errors.push(Error::invalid(&path.child(key), BadValue::json(text), detail));
    };
    if let Some(name) = text("gmsaCredentialSpecName") {
        for problem in is_dns1123_subdomain(name) {
            refuse("gmsaCredentialSpecName", name, problem);
        }
    }
    match text("gmsaCredentialSpec") {
        Some("") => refuse("gmsaCredentialSpec", "", "gmsaCredentialSpec cannot be an empty string".into()),
        Some(spec) if spec.len() > MAX_CREDENTIAL_SPEC_KIB * 1024 => {
            let detail = format!("gmsaCredentialSpec size must be under {MAX_CREDENTIAL_SPEC_KIB} KiB");
            refuse("gmsaCredentialSpec", spec, detail);
        }
        _ => {}
    }
    if let Some(name) = text("runAsUserName") {
        for problem in user_name_problems(name) {
            refuse("runAsUserName", name, problem);
        }
    }
}

/// A user, or a domain and a user.
fn user_name_problems(name: &str) -> Vec<String> {
    let one = |problem: &str| vec![format!("runAsUserName {problem}")];
    if name.is_empty() {
        return one("cannot be an empty string");
    }
    if name.bytes().any(|b| b.is_ascii_control()) {
        return one("cannot contain control characters");
    }
    let (domain, user) = name.split_once('\\').map_or((None, name), |(domain, user)| (Some(domain), user));
    if user.contains('\\') {
        return one("cannot contain more than one backslash");
    }
    let mut problems = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= MAX_DOMAIN {
            problems.push(format!("runAsUserName's Domain length must be under {MAX_DOMAIN} characters"));
        }
        if !is_netbios(domain) && !is_dns(domain) {
            problems.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format".into());
        }
    }
    if user.is_empty() {
        problems.push("runAsUserName's User cannot be empty".into());
    } else if user.len() > MAX_USER {
        problems.push(format!("runAsUserName's User length must not be longer than {MAX_USER} characters"));
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        problems.push("runAsUserName's User cannot contain only periods or spaces".into());
    }
    if user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']) {
        let list = r#""/\:;|=,+*?<>@[]"#;
        problems.push(format!("runAsUserName's User cannot contain the following characters: {list}"));
    }
    problems
}

fn is_netbios(domain: &str) -> bool {
    (1..=MAX_NETBIOS).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

fn is_dns(domain: &str) -> bool {
    let is_label = |label: &str| {
        (1..=MAX_DNS_LABEL).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    domain.split('.').all(is_label)
}

fn host_process(context: Option<&Value>) -> Option<bool> {
    context?.get("windowsOptions")?.get("hostProcess")?.as_bool()
}

/// Containers of the host stand together, in its network.
pub fn check_host_process(env: &Env, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let of_pod = host_process(spec.get("securityContext"));
    let (mut all, mut of_host) = (0, 0);
    for list in LISTS {
        for (i, container) in spec.list(list).iter().enumerate() {
            let own = host_process(container.get("securityContext"));
            if let (Some(of_pod), Some(own)) = (of_pod, own)
                && of_pod != own
            {
                let path = path.item(list, i);
                let path = path.children(&["securityContext", "windowsOptions", "hostProcess"]);
                let detail = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
                errors.push(Error::invalid(&path, own, detail));
            }
            all += 1;
            of_host += usize::from(own.or(of_pod) == Some(true));
        }
    }
    if of_host == 0 {
        return;
    }
    if of_host != all {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(Error::invalid(path, "", detail));
    }
    if !spec.flag("hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(Error::invalid(&path.child("hostNetwork"), false, detail));
    }
    if !env.allow_privileged {
        errors.push(Error::forbidden(path, "hostProcess containers are disallowed by cluster policy"));
    }
}

/// What cannot be set for a pod of this operating system.
pub fn check_system(system: &str, spec: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match system {
        "linux" => forbid(spec, &[In::Context("windowsOptions")], &["windowsOptions"], LINUX, path, errors),
        _ => forbid(spec, &NOT_ON_WINDOWS, &NOT_IN_WINDOWS_CONTAINERS, WINDOWS, path, errors),
    }
}

const LINUX: &str = "windows options cannot be set for a linux pod";
const WINDOWS: &str = "cannot be set for a windows pod";

/// Where a pod's field is.
#[derive(Clone, Copy)]
enum In {
    Context(&'static str),
    Spec(&'static str),
}

const NOT_ON_WINDOWS: [In; 15] = [
    In::Context("appArmorProfile"),
    In::Context("seLinuxOptions"),
    In::Spec("hostUsers"),
    In::Spec("hostPID"),
    In::Spec("hostIPC"),
    In::Context("seccompProfile"),
    In::Context("fsGroup"),
    In::Context("fsGroupChangePolicy"),
    In::Context("sysctls"),
    In::Spec("shareProcessNamespace"),
    In::Context("runAsUser"),
    In::Context("runAsGroup"),
    In::Context("supplementalGroups"),
    In::Context("supplementalGroupsPolicy"),
    In::Context("seLinuxChangePolicy"),
];

const NOT_IN_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

fn forbid(spec: &Value, pod: &[In], containers: &[&str], why: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let context = member(spec, "securityContext");
    for field in pod {
        match *field {
            In::Spec(key @ ("hostPID" | "hostIPC")) if !spec.flag(key) => {}
            In::Spec(key) if spec.has(key) => errors.push(Error::forbidden(&path.child(key), why)),
            In::Context("sysctls") if context.list("sysctls").is_empty() => {}
            In::Context(key) if context.has(key) => {
                errors.push(Error::forbidden(&path.children(&["securityContext", key]), why));
            }
            _ => {}
        }
    }
    for list in LISTS {
        for (i, container) in spec.list(list).iter().enumerate() {
            let (path, context) = (path.item(list, i), member(container, "securityContext"));
            for key in containers.iter().filter(|key| context.has(key)) {
                errors.push(Error::forbidden(&path.children(&["securityContext", key]), why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_rules::testing::value;

    fn texts(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn options() {
        let cases = [
            (r#"{"gmsaCredentialSpecName":"a","gmsaCredentialSpec":"x","runAsUserName":"D.x\\u"}"#, vec![]),
            (
                r#"{"gmsaCredentialSpec":"","runAsUserName":""}"#,
                vec![
                    "p.windowsOptions.gmsaCredentialSpec: Invalid value: \"\": gmsaCredentialSpec cannot be an empty string",
                    "p.windowsOptions.runAsUserName: Invalid value: \"\": runAsUserName cannot be an empty string",
                ],
            ),
            (
                r#"{"runAsUserName":"a\\b\\c"}"#,
                vec![
                    "p.windowsOptions.runAsUserName: Invalid value: \"a\\\\b\\\\c\": runAsUserName cannot contain more than \
                     one backslash",
                ],
            ),
            (
                r#"{"runAsUserName":"?\\a=b"}"#,
                vec![
                    "p.windowsOptions.runAsUserName: Invalid value: \"?\\\\a=b\": runAsUserName's Domain doesn't match the \
                     NetBios nor the DNS format",
                    "p.windowsOptions.runAsUserName: Invalid value: \"?\\\\a=b\": runAsUserName's User cannot contain the \
                     following characters: \"/\\:;|=,+*?<>@[]",
                ],
            ),
            (
                r#"{"runAsUserName":". ."}"#,
                vec![
                    "p.windowsOptions.runAsUserName: Invalid value: \". .\": runAsUserName's User cannot contain only \
                     periods or spaces",
                ],
            ),
        ];
        for (options, expected) in cases {
            let mut errors = ErrorList::new();
            check_options(&value(&format!(r#"{{"windowsOptions":{options}}}"#)), &Path::new("p"), &mut errors);
            assert_eq!(texts(&errors), expected, "{options}");
        }
    }

    #[test]
    fn host_processes() {
        let yes = r#"{"windowsOptions":{"hostProcess":true}}"#;
        let spec = value(&format!(r#"{{"containers":[{{"securityContext":{yes}}},{{}}]}}"#));
        let mut errors = ErrorList::new();
        check_host_process(&Env::default(), &spec, &Path::new("spec"), &mut errors);
        let expected = [
            "spec: Invalid value: \"\": If pod contains any hostProcess containers then all containers must be HostProcess \
             containers",
            "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers",
        ];
        assert_eq!(texts(&errors)[..2], expected);
    }

    #[test]
    fn systems() {
        let spec = value(
            r#"{"hostPID":true,"securityContext":{"runAsUser":1,"windowsOptions":{}},
                "containers":[{"securityContext":{"privileged":false,"windowsOptions":{}}}]}"#,
        );
        let check = |system| {
            let mut errors = ErrorList::new();
            check_system(system, &spec, &Path::new("spec"), &mut errors);
            texts(&errors)
        };
        assert_eq!(
            check("windows"),
            [
                "spec.hostPID: Forbidden: cannot be set for a windows pod",
                "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
                "spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod",
            ]
        );
        assert_eq!(
            check("linux"),
            [
                "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
                "spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
            ]
        );
    }
}
