//! Warnings about pods and the templates of pods: what works, but hardly as meant.

use kubelith_meta::field::Path;
use kubelith_meta::names::{ip_warnings, is_label_value};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::text::Quoted;
use kubelith_meta::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Arguments, Display, Formatter};

mod paths;

/// Labels of nodes that have newer names.
const OLD_NODE_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

/// Volume plugins that are on their way out or gone, before and after claims of ephemeral volumes are looked at.
const OLD_VOLUMES: [(&str, &str, &str); 7] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
];
const OLDER_VOLUMES: [(&str, &str); 2] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Why a node label should not be used, if it should not.
pub fn old_node_label(key: &str) -> Option<&'static str> {
    OLD_NODE_LABELS.iter().find(|(label, _)| *label == key).map(|(_, why)| *why)
}

/// Of a pod.
pub fn of_pod(pod: &Value) -> Vec<String> {
    Subject { prefix: String::new(), object: pod, is_template: false }.warnings()
}

/// Of a template at `path`. The template before the change is not looked at, as yet.
pub fn of_template(path: &Path<'_>, template: &Value, _old: Option<&Value>) -> Vec<String> {
    Subject { prefix: format!("{path}."), object: template, is_template: true }.warnings()
}

/// Of the spec of a claim at `path`.
pub fn of_claim_spec(path: &str, spec: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    for list in ["requests", "limits"] {
        let amount = spec.and_then(|s| s.at(&["resources", list, "storage"]));
        warnings.extend(amount.and_then(|a| fractional(format_args!("{path}.resources.{list}[storage]"), a)));
    }
    warnings
}

/// Of a term that selects nodes.
pub fn of_node_selector_term(path: &str, term: &Value, check_values: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for (i, expression) in list(term, "matchExpressions").iter().enumerate() {
        let key = expression.str_at(&["key"]);
        if let Some(why) = old_node_label(key) {
            warnings.push(format!("{path}.matchExpressions[{i}].key: {key} is {why}"));
        }
        if check_values {
            for (j, value) in list(expression, "values").iter().enumerate() {
                let value = value.as_str().unwrap_or("");
                for problem in is_label_value(value) {
                    warnings.push(format!("{path}.matchExpressions[{i}].values[{j}]: {value} is invalid, {problem}"));
                }
            }
        }
    }
    warnings
}

/// A pod or a template, and where its fields are.
struct Subject<'a> {
    /// Before every path: empty, or the template's path with a dot.
    prefix: String,
    object: &'a Value,
    is_template: bool,
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or(&[])
}

/// Where a container is: written only if there is something to say about it.
#[derive(Clone, Copy)]
struct ContainerPath<'s> {
    prefix: &'s str,
    list: &'static str,
    index: usize,
}

impl Display for ContainerPath<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}spec.{}[{}]", self.prefix, self.list, self.index)
    }
}

#[derive(Clone, Copy)]
struct PortPath<'s>(ContainerPath<'s>, usize);

impl Display for PortPath<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.ports[{}]", self.0, self.1)
    }
}

fn fractional(path: Arguments<'_>, amount: &Value) -> Option<String> {
    let amount = Quantity::from_value(amount).ok()?;
    if amount.milli_value() % 1000 == 0 {
        return None;
    }
    let text = amount.canonical();
    Some(format!("{path}: fractional byte value {} is invalid, must be an integer", Quoted(&text)))
}

impl<'a> Subject<'a> {
    fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.node_labels(&mut out);
        self.annotations(&mut out);
        self.volumes(&mut out);
        self.duplicates(&mut out);
        self.overhead(&mut out);
        self.containers(&mut out);
        self.ports(&mut out);
        if self.spec("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|s| s < 0) {
            let prefix = &self.prefix;
            out.push(format!(
                "{prefix}spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
            ));
        }
        self.affinity(&mut out);
        self.addresses(&mut out);
        out
    }

    fn spec(&self, key: &str) -> Option<&'a Value> {
        self.object.get("spec")?.get(key)
    }

    fn items(&self, key: &str) -> &'a [Value] {
        self.spec(key).and_then(Value::as_array).unwrap_or(&[])
    }

    fn has_annotation(&self, key: &str) -> bool {
        self.object.meta().annotation(key).is_some()
    }

    /// The annotation about a container, by its key: a prefix and the container's name.
    fn annotation_of(&self, prefix: &str, container: &str) -> Option<&'a str> {
        let annotations = self.object.at(&["metadata", "annotations"]).and_then(Value::as_object);
        annotations.into_iter().flat_map(Map::keys).find(|key| key.strip_prefix(prefix) == Some(container))
    }

    /// All containers with their paths, in the order in which they are looked at.
    fn each_container(&self) -> impl Iterator<Item = (ContainerPath<'_>, &'a Value)> {
        ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |list| {
            let named = move |(index, c)| (ContainerPath { prefix: &self.prefix, list, index }, c);
            self.items(list).iter().enumerate().map(named)
        })
    }

    fn node_labels(&self, out: &mut Vec<String>) {
        let prefix = &self.prefix;
        for key in self.spec("nodeSelector").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            if let Some(why) = old_node_label(key) {
                out.push(format!("{prefix}spec.nodeSelector[{key}]: {why}"));
            }
        }
        if let Some(affinity) = self.spec("affinity").and_then(|a| a.get("nodeAffinity")) {
            let path = format!("{prefix}spec.affinity.nodeAffinity");
            if let Some(required) = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") {
                for (i, term) in list(required, "nodeSelectorTerms").iter().enumerate() {
                    let at = format!("{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{i}]");
                    out.extend(of_node_selector_term(&at, term, false));
                }
            }
            for (i, term) in list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
                let at = format!("{path}.preferredDuringSchedulingIgnoredDuringExecution[{i}].preference");
                out.extend(term.get("preference").map(|t| of_node_selector_term(&at, t, true)).unwrap_or_default());
            }
        }
        for (i, constraint) in self.items("topologySpreadConstraints").iter().enumerate() {
            let key = constraint.str_at(&["topologyKey"]);
            let at = format!("{prefix}spec.topologySpreadConstraints[{i}]");
            if let Some(why) = old_node_label(key) {
                out.push(format!("{at}.topologyKey: {key} is {why}"));
            }
            if constraint.get("labelSelector").is_none() {
                out.push(format!("{at}.labelSelector: a null labelSelector results in matching no pod"));
            }
        }
    }

    fn annotations(&self, out: &mut Vec<String>) {
        for (key, why) in OLD_ANNOTATIONS {
            if self.has_annotation(key) {
                out.push(format!("{}metadata.annotations[{key}]: {why}", self.prefix));
            }
        }
    }

    fn volumes(&self, out: &mut Vec<String>) {
        for (i, volume) in self.items("volumes").iter().enumerate() {
            let at = format!("{}spec.volumes[{i}]", self.prefix);
            for (key, shown, why) in OLD_VOLUMES {
                if volume.get(key).is_some() {
                    out.push(format!("{at}.{shown}: {why}"));
                }
            }
            if let Some(template) = volume.at(&["ephemeral", "volumeClaimTemplate"]) {
                let at = format!("{at}.ephemeral.volumeClaimTemplate.spec");
                out.extend(of_claim_spec(&at, template.get("spec")));
            }
            for (key, why) in OLDER_VOLUMES {
                if volume.get(key).is_some() {
                    out.push(format!("{at}.{key}: {why}"));
                }
            }
        }
        for volume in self.items("volumes") {
            paths::overlaps(volume, out);
        }
    }

    fn duplicates(&self, out: &mut Vec<String>) {
        let prefix = &self.prefix;
        for (key, member, word) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
            let mut seen = HashSet::new();
            for (i, item) in self.items(key).iter().enumerate() {
                let text = item.str_at(&[member]);
                if !seen.insert(text) {
                    out.push(format!("{prefix}spec.{key}[{i}].{member}: duplicate {word} {}", Quoted(text)));
                }
            }
        }
        for (i, secret) in self.items("imagePullSecrets").iter().enumerate() {
            if secret.str_at(&["name"]).is_empty() {
                out.push(format!("{prefix}spec.imagePullSecrets[{i}].name: invalid empty name \"\""));
            }
        }
    }

    fn overhead(&self, out: &mut Vec<String>) {
        for name in ["memory", "ephemeral-storage"] {
            let amount = self.spec("overhead").and_then(|o| o.get(name));
            out.extend(amount.and_then(|a| fractional(format_args!("{}spec.overhead[{name}]", self.prefix), a)));
        }
    }

    fn containers(&self, out: &mut Vec<String>) {
        const POD_SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
        const CONTAINER_SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
        const INSTEAD: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
        let prefix = &self.prefix;
        let context = self.spec("securityContext");
        if context.and_then(|c| c.get("seccompProfile")).is_none() && self.has_annotation(POD_SECCOMP) {
            out.push(format!("{prefix}metadata.annotations[{POD_SECCOMP}]: {INSTEAD}"));
        }
        for (at, container) in self.each_container() {
            let name = container.str_at(&["name"]);
            if let Some(key) = self.annotation_of(CONTAINER_SECCOMP, name)
                && container.at(&["securityContext", "seccompProfile"]).is_none()
            {
                out.push(format!("{prefix}metadata.annotations[{key}]: {INSTEAD}"));
            }
            self.app_armor(container, name, out);
            for (list, name) in [
                ("limits", "memory"),
                ("requests", "memory"),
                ("limits", "ephemeral-storage"),
                ("requests", "ephemeral-storage"),
            ] {
                let amount = container.at(&["resources", list, name]);
                out.extend(amount.and_then(|a| fractional(format_args!("{at}.resources.{list}[{name}]"), a)));
            }
            environment(at, container, out);
        }
    }

    /// Templates only: pods get their profile in place of the annotation.
    fn app_armor(&self, container: &Value, name: &str, out: &mut Vec<String>) {
        let Some(key) = self.annotation_of("container.apparmor.security.beta.kubernetes.io/", name) else { return };
        let annotation = self.object.meta().annotation(key).unwrap_or_default();
        if !self.is_template || container.at(&["securityContext", "appArmorProfile"]).is_some() {
            return;
        }
        let profile = self.spec("securityContext").and_then(|c| c.get("appArmorProfile"));
        let same = profile.is_some_and(|profile| match annotation {
            "runtime/default" => profile.str_at(&["type"]) == "RuntimeDefault",
            "unconfined" => profile.str_at(&["type"]) == "Unconfined",
            local => {
                let name = local.strip_prefix("localhost/");
                profile.str_at(&["type"]) == "Localhost" && name == Some(profile.str_at(&["localhostProfile"]))
            }
        });
        if !same {
            out.push(format!(
                "{}metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead",
                self.prefix
            ));
        }
    }

    fn ports(&self, out: &mut Vec<String>) {
        let mut all: HashMap<(i64, &str), Vec<(PortPath<'_>, &Value)>> = HashMap::new();
        for (at, container) in self.each_container() {
            for (i, port) in list(container, "ports").iter().enumerate() {
                let at = PortPath(at, i);
                let (host_ip, host_port) = host(port);
                if !host_ip.is_empty() && host_port == 0 {
                    out.push(format!("{at}: hostIP set without hostPort: {}", go_port(port)));
                }
                let number = port.get("containerPort").and_then(Value::as_i64).unwrap_or(0);
                let others = all.entry((number, port.str_at(&["protocol"]))).or_default();
                for (other_at, other) in others.iter() {
                    let (other_ip, other_port) = host(other);
                    let problem = if host_ip == other_ip && host_port == other_port {
                        "duplicate"
                    } else if host_port == 0 || other_port == 0 {
                        "overlapping"
                    } else if host_port == other_port && host_ip.is_empty() != other_ip.is_empty() {
                        "dangerously ambiguous"
                    } else {
                        continue;
                    };
                    out.push(format!("{at}: {problem} port definition with {other_at}"));
                }
                others.push((at, port));
            }
        }
        let mut names: HashMap<&str, PortPath<'_>> = HashMap::new();
        for (at, container) in self.each_container() {
            for (i, port) in list(container, "ports").iter().enumerate() {
                let name = port.str_at(&["name"]);
                let at = PortPath(at, i);
                match names.get(name) {
                    _ if name.is_empty() => {}
                    Some(other) => out.push(format!(
                        "{at}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                        Quoted(name)
                    )),
                    None => drop(names.insert(name, at)),
                }
            }
        }
    }

    fn affinity(&self, out: &mut Vec<String>) {
        const EMPTY: &str = "labelSelector: a null labelSelector results in matching no pod";
        for kind in ["podAffinity", "podAntiAffinity"] {
            let Some(affinity) = self.spec("affinity").and_then(|a| a.get(kind)) else { continue };
            let at = format!("{}spec.affinity.{kind}", self.prefix);
            for (i, term) in list(affinity, "requiredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
                if term.get("labelSelector").is_none() {
                    out.push(format!("{at}.requiredDuringSchedulingIgnoredDuringExecution[{i}].{EMPTY}"));
                }
            }
            for (i, term) in list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
                if term.at(&["podAffinityTerm", "labelSelector"]).is_none() {
                    out.push(format!(
                        "{at}.preferredDuringSchedulingIgnoredDuringExecution[{i}].podAffinityTerm.{EMPTY}"
                    ));
                }
            }
        }
    }

    fn addresses(&self, out: &mut Vec<String>) {
        let servers = self.spec("dnsConfig").map_or(&[][..], |c| list(c, "nameservers"));
        for (i, server) in servers.iter().enumerate() {
            let at = format!("{}spec.dnsConfig.nameservers[{i}]", self.prefix);
            out.extend(ip_warnings(server.as_str().unwrap_or(""), &Path::new(&at)));
        }
        for (i, alias) in self.items("hostAliases").iter().enumerate() {
            let at = format!("{}spec.hostAliases[{i}].ip", self.prefix);
            out.extend(ip_warnings(alias.str_at(&["ip"]), &Path::new(&at)));
        }
    }
}

/// A variable that hides an earlier one without building on it.
fn environment(at: ContainerPath<'_>, container: &Value, out: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for (i, variable) in list(container, "env").iter().enumerate() {
        let name = variable.str_at(&["name"]);
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = variable.str_at(&["value"]);
        if variable.get("valueFrom").is_some() || value == reference || !value.contains(&reference) {
            out.push(format!(
                "{at}.env[{i}]: hides previous definition of {}, which may be dropped when using apply",
                Quoted(name)
            ));
        }
    }
}

fn host(port: &Value) -> (&str, i64) {
    (port.str_at(&["hostIP"]), port.get("hostPort").and_then(Value::as_i64).unwrap_or(0))
}

/// The port as Go prints a struct: the reference shows it so.
fn go_port(port: &Value) -> String {
    let (ip, host_port) = host(port);
    let (name, protocol) = (port.str_at(&["name"]), port.str_at(&["protocol"]));
    let number = port.get("containerPort").and_then(Value::as_i64).unwrap_or(0);
    format!("{{Name:{name} HostPort:{host_port} ContainerPort:{number} Protocol:{protocol} HostIP:{ip}}}")
}
