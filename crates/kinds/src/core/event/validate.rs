//! Events: old ones, and those with an eventTime. Only events.k8s.io/v1 checks all.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1123_subdomain, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, invalid_all, meta, meta_update, qualified_name, same_member};
use kubelith_rules::{Request, Rules, internal};

const MAX_TEXT: usize = 128;

const MAX_MESSAGE: usize = 1024;

pub const RULES: Rules = Rules {
    create: |request, event| {
        let mut errors = always(request, event);
        if is_strict(request) {
            errors.extend(meta(event, Namespacing::Required, name_is_dns_subdomain));
            check_series(event, &mut errors);
            check_new(event, &mut errors);
        }
        errors
    },
    update: |request, new, old| {
        let mut errors = always(request, new);
        if is_strict(request) {
            errors.extend(meta_update(new, old));
            if !same_member(new, old, "series") {
                check_series(new, &mut errors);
            }
            for key in UNCHANGING {
                let path = if key == "reportingComponent" { "reportingController" } else { key };
                let form = match key {
                    "involvedObject" => "ObjectReference",
                    "related" => "*ObjectReference",
                    "source" => "EventSource",
                    "count" => "int",
                    "eventTime" | "firstTimestamp" | "lastTimestamp" => "Time",
                    _ => "string",
                };
                internal::immutable(form, new.get(key), old.get(key), &Path::new(path), &mut errors);
            }
        }
        errors
    },
};

/// In the order of the checks; the reference looks at the reason twice.
const UNCHANGING: [&str; 14] = [
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
];

fn is_strict(request: Request<'_>) -> bool {
    request.group == "events.k8s.io" && request.version != "v1beta1"
}

fn always(request: Request<'_>, event: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let namespace = event.meta().namespace();
    let involved = event.str_at(&["involvedObject", "namespace"]);
    let is_new = event.has("eventTime");
    let matches = match (is_new, involved.is_empty()) {
        (false, true) => matches!(namespace, "" | "default"),
        (false, false) => namespace == involved,
        (true, true) => matches!(namespace, "default" | "kube-system"),
        (true, false) => true,
    };
    if !matches {
        let path = Path::of(&["involvedObject", "namespace"]);
        errors.push(Error::invalid(&path, involved, "does not match event.namespace"));
    }
    if is_new {
        check_texts(request, event, &mut errors);
    }
    invalid_all(is_dns1123_subdomain(namespace), &Path::new("namespace"), namespace, &mut errors);
    errors
}

fn check_texts(request: Request<'_>, event: &Value, errors: &mut ErrorList) {
    let reporter = Path::new(if request.group.is_empty() { "reportingComponent" } else { "reportingController" });
    let controller = event.text("reportingComponent");
    if controller.is_empty() {
        errors.push(Error::required(&reporter, ""));
    }
    qualified_name(controller, &reporter, errors);
    for (key, limit, required) in [
        ("reportingInstance", MAX_TEXT, true),
        ("action", MAX_TEXT, true),
        ("reason", MAX_TEXT, true),
        ("message", MAX_MESSAGE, false),
    ] {
        let text = event.text(key);
        if required && text.is_empty() {
            errors.push(Error::required(&Path::new(key), ""));
        }
        if text.len() > limit {
            errors.push(Error::invalid(&Path::new(key), "", format!("can have at most {limit} characters")));
        }
    }
}

fn check_series(event: &Value, errors: &mut ErrorList) {
    let Some(series) = event.some("series") else { return };
    if series.number("count") < 2 {
        errors.push(Error::invalid(&Path::new("series.count"), "", "should be at least 2"));
    }
    if !series.has("lastObservedTime") {
        errors.push(Error::required(&Path::new("series.lastObservedTime"), ""));
    }
}

fn check_new(event: &Value, errors: &mut ErrorList) {
    if !event.has("eventTime") {
        errors.push(Error::required(&Path::new("eventTime"), ""));
    }
    let kind = event.text("type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(Error::invalid(&Path::new("type"), "", format!("has invalid value: {kind}")));
    }
    let source = event.some("source");
    let has_source = source.is_some_and(|s| !s.text("component").is_empty() || !s.text("host").is_empty());
    for (key, is_set) in [
        ("firstTimestamp", event.has("firstTimestamp")),
        ("lastTimestamp", event.has("lastTimestamp")),
        ("count", event.number("count") != 0),
        ("source", has_source),
    ] {
        if is_set {
            errors.push(Error::invalid(&Path::new(key), "", "needs to be unset"));
        }
    }
}
