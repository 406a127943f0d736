//! What custom resources of one version do in the generic life cycles.

use super::embedded;
use super::schemas::{Nulls, Schemas};
use crate::metrics::ExtensionsMetrics;
use crate::rules::RuleTree;
use kubelith_codec::json::Strictness;
use kubelith_merge::go_value;
use kubelith_meta::field::{Error, ErrorKind, ErrorList, Path};
use kubelith_meta::object::{Namespacing, validate_object_meta, validate_object_meta_update};
use kubelith_meta::text::go_type;
use kubelith_meta::{GroupVersionKind, Str, Value, names};
use kubelith_registry::{Call, Generation, Part, Strategy};
use kubelith_schema::ScalePaths;
use kubelith_schema::jsonpath::SimplePath;
use kubelith_schema::structural::{self, Structural, validate_lists};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

pub struct CustomStrategy {
    pub kind: GroupVersionKind,
    pub schemas: Arc<Schemas>,
    pub schema: Arc<Structural>,
    pub namespacing: Namespacing,
    pub has_status: bool,
    pub scale: Option<ScalePaths>,
    /// The rules in CEL of this version, if it has any.
    pub rules: Option<Arc<RuleTree>>,
    pub metrics: Arc<ExtensionsMetrics>,
}

impl CustomStrategy {
    fn type_errors(&self, object: &Value) -> ErrorList {
        let mut errors = ErrorList::default();
        for (key, wanted) in [("kind", self.kind.kind.to_string()), ("apiVersion", self.kind.api_version())] {
            let given = object.str_at(&[key]);
            if given != wanted {
                errors.push(Error::invalid(&Path::new(key), given, format!("must be {wanted}")));
            }
        }
        errors
    }

    fn replicas(&self, object: &Value, path: &str, errors: &mut ErrorList) {
        let field = Path::new(path);
        match nested_int(object, path) {
            Err(why) => errors.push(Error::invalid(&field, 0i64, why)),
            Ok(Some(n)) if n < 0 => errors.push(Error::invalid(&field, n, "should be a non-negative integer")),
            Ok(Some(n)) if n > i64::from(i32::MAX) => {
                errors.push(Error::invalid(&field, n, format!("should be less than or equal to {}", i32::MAX)));
            }
            Ok(_) => {}
        }
    }

    fn spec_replicas(&self, object: &Value, errors: &mut ErrorList) {
        if let Some(scale) = &self.scale {
            self.replicas(object, &scale.spec_replicas, errors);
        }
    }

    fn status_replicas(&self, object: &Value, errors: &mut ErrorList) {
        if let Some(scale) = &self.scale {
            self.replicas(object, &scale.status_replicas, errors);
        }
    }

    /// Rules come last, and only if the object has the shape that they expect.
    fn check_rules(&self, call: &Call, object: &Value, old: Option<&Value>, errors: &mut ErrorList) {
        let Some(rules) = &self.rules else { return };
        let blocks = |e: &Error| {
            matches!(
                e.kind,
                ErrorKind::NotSupported
                    | ErrorKind::Required
                    | ErrorKind::TooLong
                    | ErrorKind::TooMany
                    | ErrorKind::TypeInvalid
            )
        };
        if errors.iter().any(blocks) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";
            errors.push(Error::invalid(&Path::ROOT, Value::Null, why));
        } else {
            let began = Instant::now();
            let outcome = rules.check(object, old);
            self.metrics.evaluated(began.elapsed());
            for warning in outcome.warnings {
                call.warn(warning);
            }
            errors.extend(outcome.errors);
        }
    }

    fn lists_update(&self, object: &Value, old: &Value) -> ErrorList {
        let errors = validate_lists(&self.schema, object);
        // What was wrong before may stay.
        if errors.is_empty() || validate_lists(&self.schema, old).is_empty() { errors } else { ErrorList::default() }
    }

    fn validate_main_update(&self, object: &Value, old: &Value) -> ErrorList {
        let mut errors = self.type_errors(object);
        if errors.is_empty() {
            errors.extend(validate_object_meta_update(object.meta(), old.meta(), &Path::new("metadata")));
            errors.extend(structural::validate_update(&self.schema, object, Some(old), None));
            self.spec_replicas(object, &mut errors);
            self.status_replicas(object, &mut errors);
        }
        errors.extend(embedded::validate(&self.schema, object));
        errors.extend(self.lists_update(object, old));
        errors
    }

    fn validate_status_update(&self, object: &Value, old: &Value) -> ErrorList {
        let mut errors = self.type_errors(object);
        if errors.is_empty() {
            errors.extend(validate_object_meta_update(object.meta(), old.meta(), &Path::new("metadata")));
            if let (Some(status), Some(schema)) = (object.get("status"), self.schema.property("status")) {
                let path = Path::new("status");
                errors.extend(structural::validate_update(schema, status, old.get("status"), Some(&path)));
            }
            self.status_replicas(object, &mut errors);
        }
        errors.extend(self.lists_update(object, old));
        errors
    }
}

impl Strategy for CustomStrategy {
    fn default_object(&self, _version: &str, object: &mut Value) {
        self.schemas.apply_defaults(object);
    }

    fn take_patched(&self, object: &mut Value) -> Result<(), String> {
        self.schemas.coerce(object, Strictness::Lenient, Nulls::Drop).map(drop)
    }

    fn prepare_for_update(&self, _call: &Call, part: Part<'_>, object: &mut Value, old: &Value) {
        // A status update changes nothing else; who owns what in it is noted in the metadata.
        if part == Part::Status {
            let managed = object.remove_at(&["metadata", "managedFields"]);
            for key in ["apiVersion", "kind", "metadata"] {
                object.copy_at(&[key], old);
            }
            object.put_at(&["metadata", "managedFields"], managed);
        }
    }

    fn validate(&self, call: &Call, object: &Value) -> ErrorList {
        let mut errors = self.type_errors(object);
        if errors.is_empty() {
            let path = Path::new("metadata");
            errors.extend(validate_object_meta(object.meta(), self.namespacing, names::name_is_dns_subdomain, &path));
            errors.extend(structural::validate(&self.schema, object, None));
            self.spec_replicas(object, &mut errors);
            self.status_replicas(object, &mut errors);
        }
        errors.extend(embedded::validate(&self.schema, object));
        errors.extend(validate_lists(&self.schema, object));
        self.check_rules(call, object, None, &mut errors);
        errors
    }

    fn validate_update(&self, call: &Call, part: Part<'_>, object: &Value, old: &Value) -> ErrorList {
        let began = Instant::now();
        let mut errors = match part {
            Part::Status => self.validate_status_update(object, old),
            _ => self.validate_main_update(object, old),
        };
        // Old and new are compared on the way of validation, so that its time is the time of that.
        self.metrics.ratcheted(began.elapsed());
        self.check_rules(call, object, Some(old), &mut errors);
        errors
    }

    fn warnings_on_create(&self, _call: &Call, object: &Value) -> Vec<String> {
        finalizer_warnings(object, None)
    }

    fn warnings_on_update(&self, _call: &Call, part: Part<'_>, object: &Value, old: &Value) -> Vec<String> {
        if part == Part::Status { Vec::new() } else { finalizer_warnings(object, Some(old)) }
    }

    fn generation(&self) -> Generation {
        match self.has_status {
            true => Generation::AllButMetadataAndStatus,
            false => Generation::AllButMetadata,
        }
    }

    fn updates_unconditionally(&self) -> bool {
        false
    }

    fn reset_fields(&self, part: Part<'_>) -> Vec<Vec<Str>> {
        match part {
            Part::Main if self.has_status => vec![vec!["status".into()]],
            Part::Status => vec![vec!["metadata".into()], vec!["spec".into()]],
            _ => Vec::new(),
        }
    }
}

/// The integer at a simple path, with Go's complaint about anything else that stands there.
pub fn nested_int(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match nested(object, path)? {
        None => Ok(None),
        Some(Value::Int(n)) => Ok(Some(*n)),
        Some(other) => Err(format!(
            "{path} accessor error: {} is of the type {}, expected int64",
            go_value(other),
            go_type(other),
            path = dotted(path)
        )),
    }
}

fn nested<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let path = SimplePath::new(path);
    let mut value = object;
    for (i, field) in path.fields().iter().enumerate() {
        match value {
            Value::Object(map) => match map.get(field) {
                Some(member) => value = member,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => {
                let so_far: Vec<&str> = path.fields()[..=i].iter().map(Str::as_str).collect();
                return Err(format!(
                    ".{} accessor error: {} is of the type {}, expected map[string]interface{{}}",
                    so_far.join("."),
                    go_value(other),
                    go_type(other)
                ));
            }
        }
    }
    Ok(Some(value))
}

fn dotted(path: &str) -> String {
    format!(".{}", path.trim_start_matches('.'))
}

/// Finalizers that are new and badly named.
fn finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let before: BTreeSet<&str> = old.map(|o| o.meta().finalizers().collect()).unwrap_or_default();
    let now: BTreeSet<&str> = object.meta().finalizers().collect();
    let mut warnings = Vec::new();
    for name in now.difference(&before) {
        let warn = |what: &str| format!("metadata.finalizers: {}: {what}", kubelith_meta::text::quote(name));
        warnings.extend(names::is_qualified_name(name).iter().map(|problem| warn(problem)));
        if !name.contains('/') && !STANDARD.contains(name) {
            let how = if name.contains('.') { " including a path (/)" } else { "" };
            warnings.push(warn(&format!(
                "prefer a domain-qualified finalizer name{how} to avoid accidental conflicts with other finalizer writers"
            )));
        }
    }
    warnings
}
