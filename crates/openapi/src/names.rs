//! Names of operations: `list` on pods becomes `listCoreV1NamespacedPod`, tagged `core_v1`.

/// The verbs that begin a name, as they are found: `deletecollection` is read as `delete` of a `collection`.
const VERBS: [&str; 9] = ["connect", "create", "delete", "get", "list", "patch", "read", "replace", "watch"];

/// The group, or group and version, that a document is for, as names and tags say it.
#[derive(Debug, Clone)]
pub struct Scope {
    infix: String,
    pub tag: String,
}

impl Scope {
    /// A group (empty for core), and a version unless it is the document of the group.
    pub fn new(group: &str, version: Option<&str>) -> Scope {
        let group = if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) };
        let mut scope = Scope { infix: camel(group, Case::Upper), tag: camel(group, Case::Lower) };
        if let Some(version) = version {
            scope.infix.push_str(&camel(version, Case::Upper));
            scope.tag.push('_');
            scope.tag.push_str(&camel(version, Case::Lower));
        }
        scope
    }

    /// `list` and `NamespacedPod` become `listCoreV1NamespacedPod`.
    pub fn operation_id(&self, name: &str) -> String {
        let verb = VERBS.into_iter().find(|verb| name.starts_with(verb)).unwrap_or_default();
        format!("{verb}{}{}", self.infix, camel(&name[verb.len()..], Case::Upper))
    }
}

/// The case of the first letter; `Lower` leaves it as it is.
#[derive(Clone, Copy, PartialEq)]
pub enum Case {
    Upper,
    Lower,
}

/// Letters, digits and underscores, with capitals behind everything that is left out.
pub fn camel(text: &str, first: Case) -> String {
    let mut out = String::with_capacity(text.len());
    let mut capital = first == Case::Upper;
    for (i, c) in text.char_indices() {
        if c.is_alphabetic() || c == '_' || (i != 0 && c.is_numeric()) {
            if std::mem::take(&mut capital) {
                out.extend(c.to_uppercase());
            } else {
                out.push(c);
            }
        } else {
            capital = true;
        }
    }
    out
}

/// `status` becomes `Status`.
pub fn title(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().collect::<String>() + &chars.as_str().to_lowercase())
}

/// The noun with its article: `a Pod`, `an Ingress`, `Endpoints`.
pub fn with_article(noun: &str) -> String {
    if noun.ends_with('s') && !noun.ends_with("ss") {
        return noun.to_owned();
    }
    let vowel = noun.starts_with(|c: char| "aeiou".contains(c.to_ascii_lowercase()));
    format!("{} {noun}", if vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_by_verb_group_version_and_kind() {
        let core = Scope::new("", Some("v1"));
        let flow = Scope::new("flowcontrol.apiserver.k8s.io", Some("v1"));
        let cases = [
            (&core, "listNamespacedPod", "listCoreV1NamespacedPod"),
            (&core, "deletecollectionNamespacedPod", "deleteCoreV1CollectionNamespacedPod"),
            (&core, "connectGetNamespacedPodExec", "connectCoreV1GetNamespacedPodExec"),
            (&flow, "readFlowSchema", "readFlowcontrolApiserverV1FlowSchema"),
        ];
        for (scope, name, id) in cases {
            assert_eq!(scope.operation_id(name), id);
        }
        assert_eq!(core.tag, "core_v1");
        assert_eq!(flow.tag, "flowcontrolApiserver_v1");
        assert_eq!(Scope::new("apps", None).operation_id("getAPIGroup"), "getAppsAPIGroup");
    }

    #[test]
    fn articles() {
        let cases = [("Pod", "a Pod"), ("Ingress", "an Ingress"), ("Endpoints", "Endpoints"), ("Event", "an Event")];
        for (noun, expected) in cases {
            assert_eq!(with_article(noun), expected);
        }
    }
}
