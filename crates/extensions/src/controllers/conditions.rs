//! What the status of a definition should say: which names it got, whether it is established, approved, structural.

use crate::definition::{Definition, Names};
use kubelith_meta::text::{aggregate, quote};
use kubelith_meta::time::Time;
use kubelith_meta::{Str, Value};
use std::collections::HashSet;

const APPROVED_ANNOTATION: &str = "api-approved.kubernetes.io";

/// The names that other definitions of a group have.
#[derive(Debug, Default)]
pub struct Taken {
    /// Plurals, singulars and short names.
    pub resources: HashSet<Str>,
    /// Kinds and list kinds.
    pub kinds: HashSet<Str>,
}

/// A condition to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

impl Taken {
    pub fn add(&mut self, names: &Names) {
        self.resources.extend([names.plural.clone(), names.singular.clone()]);
        self.resources.extend(names.short_names.iter().cloned());
        self.kinds.extend([names.kind.clone(), names.list_kind.clone()]);
    }
}

impl Condition {
    pub fn new(kind: &'static str, status: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Condition { kind, status, reason, message: message.into() }
    }
}

/// The status that a definition should have; `None` if it has it.
pub fn settled(object: &Value, taken: &Taken, now: Time) -> Option<Value> {
    let definition = Definition(object);
    // Nothing but the status: schemas are large.
    let mut new = Value::object();
    if let Some(status) = object.get("status") {
        new.set_at(&["status"], status.clone());
    }
    if definition.names() != definition.accepted_names() {
        let (names, condition) = accept_names(definition, taken);
        let same = definition.accepted_names() == names && has(definition, &condition);
        if !same {
            new.set_at(&["status", "acceptedNames"], names.to_value());
            set(&mut new, &condition, now);
            if !definition.is("Established") {
                let why = ("NotAccepted", "not all names are accepted");
                set(&mut new, &Condition::new("Established", "False", why.0, why.1), now);
            }
        }
    }
    // The reference first says "Installing" and waits; whoever asks here is served by what is stored by then.
    if Definition(&new).is("NamesAccepted") && !Definition(&new).is("Established") {
        let established = match has_bad_ca_bundle(definition) {
            false => ("True", "InitialNamesAccepted", "the initial names have been accepted"),
            true => ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid"),
        };
        set(&mut new, &Condition::new("Established", established.0, established.1, established.2), now);
    }
    if let Some(condition) = approval(definition).filter(|c| !has(definition, c)) {
        set(&mut new, &condition, now);
    }
    match crate::validation::non_structural(definition) {
        Some(message) => {
            let condition = Condition::new("NonStructuralSchema", "True", "Violations", message);
            if !has(definition, &condition) {
                set(&mut new, &condition, now);
            }
        }
        None => remove(&mut new, "NonStructuralSchema"),
    }
    let status = new.remove_at(&["status"]);
    if status.as_ref() == object.get("status") { None } else { status }
}

/// Whether objects are to be converted by a webhook that cannot be trusted. Without a bundle the system's is meant.
fn has_bad_ca_bundle(definition: Definition<'_>) -> bool {
    let bundle = definition.0.str_at(&["spec", "conversion", "webhook", "clientConfig", "caBundle"]);
    !bundle.is_empty() && !crate::validation::is_ca_bundle(bundle)
}

fn has(definition: Definition<'_>, wanted: &Condition) -> bool {
    definition.condition(wanted.kind).is_some_and(|c| {
        c.str_at(&["status"]) == wanted.status
            && c.str_at(&["reason"]) == wanted.reason
            && c.str_at(&["message"]) == wanted.message
    })
}

/// Puts a condition into the status. Its time moves only if its status changes.
pub fn set(object: &mut Value, condition: &Condition, now: Time) {
    let conditions = object.make_object().entry_or_null("status").make_object().entry_or_null("conditions");
    if conditions.as_array().is_none() {
        *conditions = Value::Array(Vec::new());
    }
    let Some(list) = conditions.as_array_mut() else { return };
    let mut new = Value::from([
        ("type", Value::from(condition.kind)),
        ("status", Value::from(condition.status)),
        ("lastTransitionTime", Value::from(now.rfc3339())),
        ("reason", Value::from(condition.reason)),
        ("message", Value::from(condition.message.as_str())),
    ]);
    match list.iter_mut().find(|c| c.str_at(&["type"]) == condition.kind) {
        None => list.push(new),
        Some(old) => {
            if old.str_at(&["status"]) == condition.status
                && let Some(time) = old.get("lastTransitionTime").filter(|t| !t.is_null())
            {
                new.set_at(&["lastTransitionTime"], time.clone());
            }
            if let Some(generation) = old.get("observedGeneration") {
                new.set_at(&["observedGeneration"], generation.clone());
            }
            *old = new;
        }
    }
}

fn remove(object: &mut Value, kind: &str) {
    if let Some(list) = object.at_mut(&["status", "conditions"]).and_then(Value::as_array_mut) {
        list.retain(|c| c.str_at(&["type"]) != kind);
    }
}

/// The names that the definition gets, and whether these are all that it asks for.
fn accept_names(definition: Definition<'_>, taken: &Taken) -> (Names, Condition) {
    let (wanted, have) = (definition.names(), definition.accepted_names());
    let mut got = have.clone();
    let mut problem: Option<(&'static str, String)> = None;
    let free = |wanted: &Str, have: &str, taken: &HashSet<Str>| {
        if wanted == have || !taken.contains(wanted) {
            Ok(())
        } else {
            Err(format!("{} is already in use", quote(wanted)))
        }
    };
    let mut take = |reason: &'static str, checked: Result<(), String>| match checked {
        Ok(()) => true,
        Err(why) => {
            problem = Some((reason, why));
            false
        }
    };
    if take("PluralConflict", free(&wanted.plural, &have.plural, &taken.resources)) {
        got.plural = wanted.plural.clone();
    }
    if take("SingularConflict", free(&wanted.singular, &have.singular, &taken.resources)) {
        got.singular = wanted.singular.clone();
    }
    if wanted.short_names != have.short_names {
        let new = wanted.short_names.iter().filter(|name| !have.short_names.contains(name));
        let problems: Vec<String> = new.filter_map(|name| free(name, "", &taken.resources).err()).collect();
        let checked = if problems.is_empty() { Ok(()) } else { Err(aggregate(problems)) };
        if take("ShortNamesConflict", checked) {
            got.short_names = wanted.short_names.clone();
        }
    }
    if take("KindConflict", free(&wanted.kind, &have.kind, &taken.kinds)) {
        got.kind = wanted.kind.clone();
    }
    if take("ListKindConflict", free(&wanted.list_kind, &have.list_kind, &taken.kinds)) {
        got.list_kind = wanted.list_kind.clone();
    }
    got.categories = wanted.categories;
    let condition = match problem {
        Some((reason, why)) => Condition::new("NamesAccepted", "False", reason, why),
        None => Condition::new("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    };
    (got, condition)
}

/// Whether a group of the Kubernetes project was approved; `None` for all other groups.
fn approval(definition: Definition<'_>) -> Option<Condition> {
    let group = definition.group();
    if !is_protected(group) {
        return None;
    }
    let annotation = definition.0.meta().annotation(APPROVED_ANNOTATION).unwrap_or("");
    let (status, reason, message) = approval_state(annotation);
    Some(Condition::new("KubernetesAPIApprovalPolicyConformant", status, reason, message))
}

/// Whether only the Kubernetes project may define resources in a group.
pub fn is_protected(group: &str) -> bool {
    let within = |domain: &str| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    within("k8s.io") || within("kubernetes.io")
}

/// Status, reason and message for the value of the approval annotation.
pub fn approval_state(annotation: &str) -> (&'static str, &'static str, String) {
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let must = format!("protected groups must have approval annotation {}", quote(APPROVED_ANNOTATION));
    if annotation.is_empty() {
        ("False", "MissingAnnotation", format!("{must}, {see}"))
    } else if annotation.starts_with("unapproved") {
        ("False", "UnapprovedAnnotation", format!("not approved: {}", quote(annotation)))
    } else if is_url(annotation) {
        ("True", "ApprovedAnnotation", format!("approved in {annotation}"))
    } else {
        let message = format!("{must} with either a URL or a reason starting with \"unapproved\", {see}");
        ("False", "InvalidAnnotation", message)
    }
}

/// With a scheme and a host.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let scheme_chars = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let host = rest.split(['/', '?', '#']).next().unwrap_or("");
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(scheme_chars)
        && !host.is_empty()
        && !text.contains(|c: char| c.is_control() || c == ' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    fn definition(names: &str) -> Value {
        let text = format!(
            r#"{{"metadata":{{"name":"as.example.com"}},"spec":{{"group":"example.com","names":{names},"versions":[]}},
                "status":{{"conditions":null}}}}"#
        );
        json::parse(text.as_bytes()).expect("tests are JSON")
    }

    /// The definition with the status that it gets.
    fn settled(object: &Value, taken: &Taken, now: Time) -> Option<Value> {
        let mut object = object.clone();
        object.set_at(&["status"], super::settled(&object, taken, now)?);
        Some(object)
    }

    fn reasons(object: &Value) -> Vec<(String, String)> {
        let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or(&[]);
        let text = |c: &Value, key: &str| c.str_at(&[key]).to_owned();
        conditions.iter().map(|c| (text(c, "type"), text(c, "reason"))).collect()
    }

    #[test]
    fn free_names_establish_and_stay() {
        let names = r#"{"plural":"as","singular":"a","kind":"A","listKind":"AList","shortNames":["x"]}"#;
        let now = Time::parse("2026-01-01T00:00:00Z").unwrap();
        let settled_once = settled(&definition(names), &Taken::default(), now).unwrap();
        let expected = [("NamesAccepted", "NoConflicts"), ("Established", "InitialNamesAccepted")];
        assert_eq!(reasons(&settled_once), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        let later = Time::parse("2026-01-02T00:00:00Z").unwrap();
        assert_eq!(settled(&settled_once, &Taken::default(), later), None);
    }

    #[test]
    fn a_webhook_that_cannot_be_trusted_establishes_nothing() {
        let names = r#"{"plural":"as","singular":"a","kind":"A","listKind":"AList"}"#;
        let now = Time::parse("2026-01-01T00:00:00Z").unwrap();
        let bundle = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
        let mut object = definition(names);
        object.set_at(&bundle, "Z2FyYmFnZQ==".into());
        let mut refused = settled(&object, &Taken::default(), now).unwrap();
        assert_eq!(reasons(&refused)[1], ("Established".to_owned(), "InvalidCABundle".to_owned()));
        assert!(!Definition(&refused).is("Established"));
        assert_eq!(settled(&refused, &Taken::default(), now), None);
        refused.remove_at(&bundle);
        assert!(Definition(&settled(&refused, &Taken::default(), now).unwrap()).is("Established"));
    }

    #[test]
    fn each_name_is_checked_and_the_others_are_given() {
        let names = r#"{"plural":"as","singular":"a","kind":"A","listKind":"AList","shortNames":["x","y"]}"#;
        let now = Time::parse("2026-01-01T00:00:00Z").unwrap();
        let mut taken = Taken::default();
        taken.resources.extend(["x".into(), "y".into()]);
        let refused = settled(&definition(names), &taken, now).unwrap();
        assert_eq!(reasons(&refused)[0].1, "ShortNamesConflict");
        let message = refused.at(&["status", "conditions"]).and_then(Value::as_array).unwrap()[0].str_at(&["message"]);
        assert_eq!(message, r#"["x" is already in use, "y" is already in use]"#);
        assert_eq!(refused.str_at(&["status", "acceptedNames", "plural"]), "as");
        assert_eq!(refused.at(&["status", "acceptedNames", "shortNames"]), None);
        assert!(!Definition(&refused).is("Established"));
    }

    #[test]
    fn groups_of_kubernetes_need_approval() {
        assert!(is_protected("k8s.io") && is_protected("a.k8s.io") && is_protected("x.kubernetes.io"));
        assert!(!is_protected("notk8s.io") && !is_protected("example.com"));
        let table = [
            ("", "MissingAnnotation"),
            ("unapproved, for a test", "UnapprovedAnnotation"),
            ("https://github.com/x/y", "ApprovedAnnotation"),
            ("nourl", "InvalidAnnotation"),
            ("://x", "InvalidAnnotation"),
        ];
        for (annotation, reason) in table {
            assert_eq!(approval_state(annotation).1, reason, "{annotation}");
        }
    }
}
