//! Warnings about pods and the templates of pods: what works, but hardly as meant.

mod paths;
mod ports;

use crate::warnings::paths::overlaps;
use kubelith_meta::field::Path;
use kubelith_meta::names::{ip_warnings, is_label_value};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::text::Quoted;
use kubelith_meta::{Map, Value, members};
use kubelith_rules::Seen;
use std::fmt::{self, Arguments, Display, Formatter};

/// Labels of nodes that have newer names.
pub const OLD_NODE_LABELS: [(&str, &str); 8] = [
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

pub const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

/// Volume plugins that are on their way out or gone, before and after claims of ephemeral volumes are looked at.
pub const OLD_VOLUMES: [(&str, &str, &str); 7] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
];

pub const OLDER_VOLUMES: [(&str, &str); 2] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Why a node label should not be used, if it should not.
pub fn old_node_label(key: &str) -> Option<&'static str> {
    OLD_NODE_LABELS.iter().find(|(label, _)| *label == key).map(|(_, why)| *why)
}

/// Of a pod.
pub fn of_pod(pod: &Value) -> Vec<String> {
    Subject::new(String::new(), pod, false).warnings()
}

/// Of a template at `path`. The template before the change is not looked at, as yet.
pub fn of_template(path: &Path<'_>, template: &Value, _old: Option<&Value>) -> Vec<String> {
    Subject::new(format!("{path}."), template, true).warnings()
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
pub struct Subject<'a> {
    /// Before every path: empty, or the template's path with a dot.
    prefix: String,
    annotations: Option<&'a Map>,
    /// The annotations, if there are any about a container.
    container_annotations: Option<&'a Map>,
    spec: Spec<'a>,
    /// All of them, in the order in which they are looked at.
    containers: Vec<Container<'a>>,
    is_template: bool,
}

/// What is looked at of a spec; null if absent.
pub struct Spec<'a> {
    affinity: &'a Value,
    aliases: &'a Value,
    constraints: &'a Value,
    context: &'a Value,
    dns: &'a Value,
    grace_period: &'a Value,
    node_selector: &'a Value,
    overhead: &'a Value,
    pull_secrets: &'a Value,
    volumes: &'a Value,
}

/// What is looked at of a container, and where it is.
pub struct Container<'a> {
    list: &'static str,
    index: usize,
    name: &'a str,
    context: &'a Value,
    resources: &'a Value,
    env: &'a [Value],
    ports: &'a [Value],
}

impl<'a> Container<'a> {
    fn new(list: &'static str, index: usize, container: &'a Value) -> Container<'a> {
        members!(container =>
            name: "name",
            context: "securityContext",
            resources: "resources",
            env: "env",
            ports: "ports",
        );
        let (env, ports) = (env.items(), ports.items());
        Container { list, index, name: name.or_empty(), context, resources, env, ports }
    }
}

/// Few pods have warnings: the way to them is kept out of the way of the checks.
#[cold]
pub fn note(out: &mut Vec<String>, warning: Arguments<'_>) {
    out.push(warning.to_string());
}

pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or(&[])
}

/// Where a container is: written only if there is something to say about it.
#[derive(Clone, Copy)]
pub struct ContainerPath<'s> {
    prefix: &'s str,
    list: &'static str,
    index: usize,
}

impl Display for ContainerPath<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for part in [self.prefix, "spec.", self.list, "["] {
            f.write_str(part)?;
        }
        self.index.fmt(f)?;
        f.write_str("]")
    }
}

pub fn fractional(path: Arguments<'_>, amount: &Value) -> Option<String> {
    // A few digits with a suffix that makes them more are whole. What does not fit into 64 bits need not be.
    const FITS: usize = 7;
    let makes_more = |b: u8| b.is_ascii_digit() || matches!(b, b'k' | b'K' | b'M' | b'G' | b'i');
    if amount.as_str().is_some_and(|text| text.len() <= FITS && text.bytes().all(makes_more)) {
        return None;
    }
    let amount = Quantity::from_value(amount).ok()?;
    if amount.milli_value() % 1000 == 0 {
        return None;
    }
    let text = amount.canonical();
    Some(format!("{path}: fractional byte value {} is invalid, must be an integer", Quoted(&text)))
}

impl<'a> Subject<'a> {
    fn new(prefix: String, object: &'a Value, is_template: bool) -> Subject<'a> {
        let spec = object.get("spec").unwrap_or(Value::NULL);
        members!(spec =>
            affinity: "affinity",
            aliases: "hostAliases",
            constraints: "topologySpreadConstraints",
            containers: "containers",
            context: "securityContext",
            dns: "dnsConfig",
            ephemeral: "ephemeralContainers",
            grace_period: "terminationGracePeriodSeconds",
            init: "initContainers",
            node_selector: "nodeSelector",
            overhead: "overhead",
            pull_secrets: "imagePullSecrets",
            volumes: "volumes",
        );
        let lists = [("initContainers", init), ("containers", containers), ("ephemeralContainers", ephemeral)];
        let mut all = Vec::with_capacity(containers.items().len());
        for (list, containers) in lists {
            for (i, container) in containers.items().iter().enumerate() {
                all.push(Container::new(list, i, container));
            }
        }
        let annotations = object.at(&["metadata", "annotations"]).and_then(Value::as_object);
        Subject {
            prefix,
            annotations,
            container_annotations: annotations.filter(|all| all.keys().any(|key| key.starts_with("container."))),
            containers: all,
            spec: Spec {
                affinity,
                aliases,
                constraints,
                context,
                dns,
                grace_period,
                node_selector,
                overhead,
                pull_secrets,
                volumes,
            },
            is_template,
        }
    }

    fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.node_labels(&mut out);
        self.annotations(&mut out);
        self.volumes(&mut out);
        self.duplicates(&mut out);
        self.overhead(&mut out);
        self.containers(&mut out);
        self.ports(&mut out);
        if self.spec.grace_period.as_i64().is_some_and(|s| s < 0) {
            let prefix = &self.prefix;
            note(
                &mut out,
                format_args!(
                    "{prefix}spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
                ),
            );
        }
        self.affinity(&mut out);
        self.addresses(&mut out);
        out
    }

    fn has_annotation(&self, key: &str) -> bool {
        self.annotations.and_then(|all| all.get(key)).is_some_and(|value| value.as_str().is_some())
    }

    /// The annotation about a container: its key, which is a prefix and the container's name, and what it says.
    fn annotation_of(&self, prefix: &str, container: &str) -> Option<(&'a str, &'a Value)> {
        let mut all = self.container_annotations?.iter();
        all.find(|(key, _)| key.strip_prefix(prefix) == Some(container))
    }

    fn path(&self, container: &Container<'_>) -> ContainerPath<'_> {
        ContainerPath { prefix: &self.prefix, list: container.list, index: container.index }
    }

    fn node_labels(&self, out: &mut Vec<String>) {
        let prefix = &self.prefix;
        for key in self.spec.node_selector.as_object().into_iter().flat_map(Map::keys) {
            if let Some(why) = old_node_label(key) {
                note(out, format_args!("{prefix}spec.nodeSelector[{key}]: {why}"));
            }
        }
        if let Some(affinity) = self.spec.affinity.get("nodeAffinity") {
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
        for (i, constraint) in self.spec.constraints.items().iter().enumerate() {
            let key = constraint.str_at(&["topologyKey"]);
            let at = format!("{prefix}spec.topologySpreadConstraints[{i}]");
            if let Some(why) = old_node_label(key) {
                note(out, format_args!("{at}.topologyKey: {key} is {why}"));
            }
            if constraint.get("labelSelector").is_none() {
                note(out, format_args!("{at}.labelSelector: a null labelSelector results in matching no pod"));
            }
        }
    }

    fn annotations(&self, out: &mut Vec<String>) {
        for (key, why) in OLD_ANNOTATIONS {
            if self.has_annotation(key) {
                note(out, format_args!("{}metadata.annotations[{key}]: {why}", self.prefix));
            }
        }
    }

    fn volumes(&self, out: &mut Vec<String>) {
        for (i, volume) in self.spec.volumes.items().iter().enumerate() {
            let is_noted = |key: &str| {
                key == "ephemeral"
                    || OLD_VOLUMES.iter().any(|(old, ..)| *old == key)
                    || OLDER_VOLUMES.iter().any(|(old, _)| *old == key)
            };
            if !volume.as_object().is_some_and(|volume| volume.keys().any(is_noted)) {
                continue;
            }
            let at = format!("{}spec.volumes[{i}]", self.prefix);
            for (key, shown, why) in OLD_VOLUMES {
                if volume.get(key).is_some() {
                    note(out, format_args!("{at}.{shown}: {why}"));
                }
            }
            if let Some(template) = volume.at(&["ephemeral", "volumeClaimTemplate"]) {
                let at = format!("{at}.ephemeral.volumeClaimTemplate.spec");
                out.extend(of_claim_spec(&at, template.get("spec")));
            }
            for (key, why) in OLDER_VOLUMES {
                if volume.get(key).is_some() {
                    note(out, format_args!("{at}.{key}: {why}"));
                }
            }
        }
        for volume in self.spec.volumes.items() {
            overlaps(volume, out);
        }
    }

    fn duplicates(&self, out: &mut Vec<String>) {
        let prefix = &self.prefix;
        for (key, items, member) in
            [("hostAliases", self.spec.aliases, "ip"), ("imagePullSecrets", self.spec.pull_secrets, "name")]
        {
            let mut seen = Seen::default();
            for (i, item) in items.items().iter().enumerate() {
                let text = item.str_at(&[member]);
                if !seen.insert(text) {
                    let text = Quoted(text);
                    note(out, format_args!("{prefix}spec.{key}[{i}].{member}: duplicate {member} {text}"));
                }
            }
        }
        for (i, secret) in self.spec.pull_secrets.items().iter().enumerate() {
            if secret.str_at(&["name"]).is_empty() {
                note(out, format_args!("{prefix}spec.imagePullSecrets[{i}].name: invalid empty name \"\""));
            }
        }
    }

    fn overhead(&self, out: &mut Vec<String>) {
        for name in ["memory", "ephemeral-storage"] {
            let amount = self.spec.overhead.get(name);
            out.extend(amount.and_then(|a| fractional(format_args!("{}spec.overhead[{name}]", self.prefix), a)));
        }
    }

    fn containers(&self, out: &mut Vec<String>) {
        const POD_SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
        const CONTAINER_SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
        const INSTEAD: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
        let prefix = &self.prefix;
        if self.spec.context.get("seccompProfile").is_none() && self.has_annotation(POD_SECCOMP) {
            note(out, format_args!("{prefix}metadata.annotations[{POD_SECCOMP}]: {INSTEAD}"));
        }
        for container in &self.containers {
            let at = self.path(container);
            if let Some((key, _)) = self.annotation_of(CONTAINER_SECCOMP, container.name)
                && container.context.get("seccompProfile").is_none()
            {
                note(out, format_args!("{prefix}metadata.annotations[{key}]: {INSTEAD}"));
            }
            self.app_armor(container, out);
            members!(container.resources => limits: "limits", requests: "requests");
            for name in ["memory", "ephemeral-storage"] {
                for (list, amounts) in [("limits", limits), ("requests", requests)] {
                    let amount = amounts.get(name);
                    out.extend(amount.and_then(|a| fractional(format_args!("{at}.resources.{list}[{name}]"), a)));
                }
            }
            environment(at, container.env, out);
        }
    }

    /// Templates only: pods get their profile in place of the annotation.
    fn app_armor(&self, container: &Container<'_>, out: &mut Vec<String>) {
        const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
        let Some((key, annotation)) = self.annotation_of(PREFIX, container.name) else { return };
        if !self.is_template || container.context.get("appArmorProfile").is_some() {
            return;
        }
        let profile = self.spec.context.get("appArmorProfile");
        let same = profile.is_some_and(|profile| match annotation.or_empty() {
            "runtime/default" => profile.str_at(&["type"]) == "RuntimeDefault",
            "unconfined" => profile.str_at(&["type"]) == "Unconfined",
            local => {
                let name = local.strip_prefix("localhost/");
                profile.str_at(&["type"]) == "Localhost" && name == Some(profile.str_at(&["localhostProfile"]))
            }
        });
        if !same {
            note(
                out,
                format_args!(
                    "{}metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead",
                    self.prefix
                ),
            );
        }
    }

    fn affinity(&self, out: &mut Vec<String>) {
        const EMPTY: &str = "labelSelector: a null labelSelector results in matching no pod";
        for kind in ["podAffinity", "podAntiAffinity"] {
            let Some(affinity) = self.spec.affinity.get(kind) else { continue };
            let at = format!("{}spec.affinity.{kind}", self.prefix);
            for (i, term) in list(affinity, "requiredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
                if term.get("labelSelector").is_none() {
                    note(out, format_args!("{at}.requiredDuringSchedulingIgnoredDuringExecution[{i}].{EMPTY}"));
                }
            }
            for (i, term) in list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
                if term.at(&["podAffinityTerm", "labelSelector"]).is_none() {
                    note(
                        out,
                        format_args!(
                            "{at}.preferredDuringSchedulingIgnoredDuringExecution[{i}].podAffinityTerm.{EMPTY}"
                        ),
                    );
                }
            }
        }
    }

    fn addresses(&self, out: &mut Vec<String>) {
        for (i, server) in list(self.spec.dns, "nameservers").iter().enumerate() {
            let at = format!("{}spec.dnsConfig.nameservers[{i}]", self.prefix);
            out.extend(ip_warnings(server.as_str().unwrap_or(""), &Path::new(&at)));
        }
        for (i, alias) in self.spec.aliases.items().iter().enumerate() {
            let at = format!("{}spec.hostAliases[{i}].ip", self.prefix);
            out.extend(ip_warnings(alias.str_at(&["ip"]), &Path::new(&at)));
        }
    }
}

/// A variable that hides an earlier one without building on it.
pub fn environment(at: ContainerPath<'_>, variables: &[Value], out: &mut Vec<String>) {
    let mut seen = Seen::default();
    for (i, variable) in variables.iter().enumerate() {
        let name = variable.get("name").map_or("", Value::or_empty);
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = variable.str_at(&["value"]);
        if variable.get("valueFrom").is_some() || value == reference || !value.contains(&reference) {
            note(
                out,
                format_args!(
                    "{at}.env[{i}]: hides previous definition of {}, which may be dropped when using apply",
                    Quoted(name)
                ),
            );
        }
    }
}
