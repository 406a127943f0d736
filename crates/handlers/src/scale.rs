//! The scale subresource: how many replicas an object wants, has and selects, as autoscaling/v1 Scale, wherever in the
//! object these are.

use super::endpoint::{By, FieldTracker};
use super::subresource_view::SubresourceView;
use kubelith_merge::apply::{ConvertError, Force, Versions};
use kubelith_merge::fieldset;
use kubelith_merge::managers::{FieldManager, ScaleHandler};
use kubelith_merge::typed::Type;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::object::{Namespacing, validate_object_meta};
use kubelith_meta::{GroupKind, GroupResource, GroupVersionKind, LabelSelector, Map, Status, Str, Value, names};
use kubelith_registry::Call;
use kubelith_schema::{Cell, Column, Descriptor, ScalePaths, TypedSchema};

/// Stands for replicas that are not there while a write is under way, as in the reference.
const NO_REPLICAS: i64 = i32::MIN as i64;

pub fn scale_kind() -> GroupVersionKind {
    GroupVersionKind::new("autoscaling", "v1", "Scale")
}

/// The scale of one version of a resource.
pub struct Scale {
    schema: TypedSchema,
    /// `apiVersion` of the parent in this version.
    version: String,
    spec_replicas: Vec<Str>,
    status_replicas: Vec<Str>,
    selector: Selector,
    rules: Rules,
    columns: Vec<Column>,
    /// By `apiVersion` of the parent: where replicas are.
    owned: Vec<(Str, Option<fieldset::Path>)>,
}

/// Where the selector comes from.
enum Selector {
    None,
    /// A field that holds it as text.
    Text(Vec<Str>),
    /// `spec.selector`, a LabelSelector or a map of labels.
    Spec,
}

/// What sets the scales of built-in kinds and of custom resources apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// The scale is validated here; without a version it overwrites whatever is there.
    BuiltIn,
    /// Replicas must be there; the resource's own rules judge them.
    Custom,
}

impl Scale {
    /// The scale of version `index` of a resource, if it has one.
    pub fn of(descriptor: &Descriptor, index: usize, schema: TypedSchema) -> Option<Scale> {
        let version = &descriptor.versions[index];
        let subresource = version.subresource("scale")?;
        let fixed = |names: &[&str]| names.iter().map(|n| Str::from(*n)).collect();
        let (spec_replicas, status_replicas, selector, rules) = match &subresource.scale {
            Some(paths) => {
                let selector = paths.label_selector.as_deref().filter(|p| !p.is_empty());
                let selector = selector.map_or(Selector::None, |path| Selector::Text(split(path)));
                (split(&paths.spec_replicas), split(&paths.status_replicas), selector, Rules::Custom)
            }
            None => (fixed(&["spec", "replicas"]), fixed(&["status", "replicas"]), Selector::Spec, Rules::BuiltIn),
        };
        Some(Scale {
            schema,
            version: descriptor.gvk(&version.name).api_version(),
            spec_replicas,
            status_replicas,
            selector,
            columns: columns(rules),
            rules,
            owned: replica_paths(descriptor),
        })
    }

    /// The scale of `parent`, and whether it has replicas.
    fn make(&self, parent: &Value) -> Result<(Value, bool), Status> {
        let mut metadata = Map::new();
        for key in ["creationTimestamp", "name", "namespace", "resourceVersion", "uid"] {
            if let Some(value) = parent.at(&["metadata", key]) {
                metadata.insert(key, value.clone());
            }
        }
        let wanted = self.number(parent, &self.spec_replicas)?;
        let running = self.number(parent, &self.status_replicas)?.unwrap_or(0);
        let mut scale = Value::from([
            ("kind", Value::from("Scale")),
            ("apiVersion", Value::from("autoscaling/v1")),
            ("metadata", Value::Object(metadata)),
            ("spec", Value::object()),
            ("status", Value::from([("replicas", Value::Int(running))])),
        ]);
        if let Some(wanted) = wanted.filter(|n| *n != 0) {
            scale.set_at(&["spec", "replicas"], Value::Int(wanted));
        }
        let selector = self.selector(parent)?;
        if !selector.is_empty() {
            scale.set_at(&["status", "selector"], Value::from(selector));
        }
        Ok((scale, wanted.is_some()))
    }

    fn number(&self, parent: &Value, path: &[Str]) -> Result<Option<i64>, Status> {
        match at(parent, path)? {
            None => Ok(None),
            Some(Value::Int(n)) => Ok(Some(i64::from(*n as i32))),
            Some(other) => Err(wrong_type(path, other, "int64")),
        }
    }

    fn selector(&self, parent: &Value) -> Result<String, Status> {
        match &self.selector {
            Selector::None => Ok(String::new()),
            Selector::Text(path) => match at(parent, path)? {
                None => Ok(String::new()),
                Some(Value::String(text)) => Ok(text.to_string()),
                Some(other) => Err(wrong_type(path, other, "string")),
            },
            Selector::Spec => {
                let selector = parent.at(&["spec", "selector"]);
                // ReplicationControllers select by plain labels.
                let labels = selector.filter(|s| s.get("matchLabels").is_none() && s.get("matchExpressions").is_none());
                let object = labels.map(|labels| Value::from([("matchLabels", labels.clone())]));
                let selector = LabelSelector::from_object(object.as_ref().or(selector));
                selector.map(|s| s.to_string()).map_err(|e| Status::bad_request(e.to_string()))
            }
        }
    }

    fn validate(&self, name: &str, scale: &Value) -> Result<(), Status> {
        let path = Path::new("metadata");
        let mut errors = validate_object_meta(scale.meta(), Namespacing::Required, names::name_is_dns_subdomain, &path);
        let replicas = scale.at(&["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0);
        if replicas < 0 {
            let path = Path::new("spec");
            let path = path.child("replicas");
            errors.push(Error::invalid(&path, Value::Int(replicas), "must be greater than or equal to 0"));
        }
        if errors.is_empty() { Ok(()) } else { Err(invalid(name, &errors)) }
    }

    fn handler<'a>(&'a self, parent: &Value) -> Result<ScaleHandler<'a>, Status> {
        ScaleHandler::new(parent, &self.version, &self.owned).map_err(|e| Status::unknown(e.to_string()))
    }
}

impl SubresourceView for Scale {
    fn schema(&self) -> &TypedSchema {
        &self.schema
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn read(&self, parent: &Value) -> Result<Value, Status> {
        let (scale, has_replicas) = self.make(parent)?;
        if !has_replicas && self.rules == Rules::Custom {
            let path = quoted(&self.spec_replicas);
            return Err(Status::internal_error(format!("the spec replicas field {path} does not exist")));
        }
        Ok(scale)
    }

    fn written(&self, parent: &Value) -> Result<Value, Status> {
        Ok(self.make(parent)?.0)
    }

    fn begin(&self, parent: &Value) -> Result<Value, Status> {
        let (mut scale, has_replicas) = self.make(parent)?;
        if !has_replicas && self.rules == Rules::Custom {
            scale.set_at(&["spec", "replicas"], Value::Int(NO_REPLICAS));
        }
        match self.handler(parent)?.to_subresource() {
            Value::Null => {}
            entries => scale.set_at(&["metadata", "managedFields"], entries),
        }
        Ok(scale)
    }

    fn finish(&self, call: &Call, mut parent: Value, scale: &Value) -> Result<Value, Status> {
        let replicas = scale.at(&["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0);
        let version = scale.str_at(&["metadata", "resourceVersion"]);
        match self.rules {
            Rules::BuiltIn => {
                self.validate(parent.str_at(&["metadata", "name"]), scale)?;
                check_uid(call, &parent, scale)?;
                parent.set_at(&["metadata", "resourceVersion"], version.into());
            }
            Rules::Custom => {
                if replicas == NO_REPLICAS {
                    let path = quoted(&self.spec_replicas);
                    return Err(Status::bad_request(format!("the spec replicas field {path} cannot be empty")));
                }
                if !version.is_empty() {
                    parent.set_at(&["metadata", "resourceVersion"], version.into());
                }
            }
        }
        let handler = self.handler(&parent)?;
        let entries = handler.to_parent(scale.at(&["metadata", "managedFields"]).unwrap_or(&Value::Null));
        match entries.map_err(|e| Status::unknown(e.to_string()))? {
            Value::Null => drop(parent.remove_at(&["metadata", "managedFields"])),
            entries => parent.set_at(&["metadata", "managedFields"], entries),
        }
        let path: Vec<&str> = self.spec_replicas.iter().map(Str::as_str).collect();
        parent.set_at(&path, Value::Int(replicas));
        Ok(parent)
    }
}

/// What `kubectl get --subresource=scale` shows.
fn columns(rules: Rules) -> Vec<Column> {
    let column = |name: &str, kind: &str, path: &str| Column {
        name: name.into(),
        kind: kind.into(),
        format: Str::default(),
        description: Str::default(),
        priority: 0,
        cell: Cell::Path(path.into()),
        arguments: Vec::new(),
        absent: if kind == "integer" { Value::Int(0) } else { Value::Null },
    };
    let name = column("Name", "string", ".metadata.name");
    let (desired, available) =
        (column("Desired", "integer", ".spec.replicas"), column("Available", "integer", ".status.replicas"));
    let created = ".metadata.creationTimestamp";
    match rules {
        Rules::BuiltIn => {
            let cell = Cell::Function("age".into());
            vec![
                name,
                desired,
                available,
                Column { cell, arguments: vec![created.into()], ..column("Age", "string", "") },
            ]
        }
        Rules::Custom => {
            let desired = Column { description: "Number of desired replicas".into(), ..desired };
            let available = Column { description: "Number of actual replicas".into(), ..available };
            vec![Column { format: "name".into(), ..name }, desired, available, column("Age", "date", created)]
        }
    }
}

fn check_uid(call: &Call, parent: &Value, scale: &Value) -> Result<(), Status> {
    let (given, found) = (scale.str_at(&["metadata", "uid"]), parent.str_at(&["metadata", "uid"]));
    if given.is_empty() || given == found {
        return Ok(());
    }
    let resource = GroupResource::new(call.resource.group.clone(), format!("{}/scale", call.resource.resource));
    let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {found}");
    Err(Status::conflict(&resource, parent.str_at(&["metadata", "name"]), why))
}

fn invalid(name: &str, errors: &ErrorList) -> Status {
    Status::invalid(&GroupKind { group: "autoscaling".into(), kind: "Scale".into() }, name, errors)
}

/// Where each version of a resource has its replicas.
fn replica_paths(descriptor: &Descriptor) -> Vec<(Str, Option<fieldset::Path>)> {
    let path = |paths: Option<&ScalePaths>| match paths {
        None => fieldset::Path::fields(&["spec", "replicas"]),
        Some(paths) => {
            let names = split(&paths.spec_replicas);
            fieldset::Path::fields(&names.iter().map(Str::as_str).collect::<Vec<_>>())
        }
    };
    let of = |v: &kubelith_schema::Version| v.subresource("scale").map(|s| path(s.scale.as_ref()));
    descriptor.versions.iter().map(|v| (Str::from(descriptor.gvk(&v.name).api_version()), of(v))).collect()
}

/// `.spec.replicas` as its names.
fn split(path: &str) -> Vec<Str> {
    path.trim_start_matches('.').split('.').map(Str::from).collect()
}

fn quoted(path: &[Str]) -> String {
    format!("\".{}\"", path.join("."))
}

/// What stands at `path`. Something that has no members on the way is an error.
fn at<'v>(object: &'v Value, path: &[Str]) -> Result<Option<&'v Value>, Status> {
    let mut value = object;
    for (i, name) in path.iter().enumerate() {
        match value {
            Value::Object(map) => match map.get(name) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            other => return Err(wrong_type(&path[..=i], other, "map[string]interface{}")),
        }
    }
    Ok(Some(value))
}

/// In the words of the reference's accessors for untyped objects.
fn wrong_type(path: &[Str], value: &Value, wanted: &str) -> Status {
    let found = kubelith_meta::text::go_type(value);
    let text = kubelith_merge::go_value(value);
    let path = path.join(".");
    Status::unknown(format!(".{path} accessor error: {text} is of the type {found}, expected {wanted}"))
}

/// Field ownership of scales, which exist in one version only.
pub struct ScaleFields {
    pub schema: TypedSchema,
    pub parent: Parent,
}

/// What is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    BuiltIn,
    Custom,
}

impl Versions for ScaleFields {
    fn type_in(&self, version: &str) -> Option<Type<'_>> {
        (version == "autoscaling/v1").then(|| Type::of(&self.schema))
    }

    fn convert(&self, object: &Value, version: &str) -> Result<Value, ConvertError> {
        if version == "autoscaling/v1" { Ok(object.clone()) } else { Err(ConvertError::MissingVersion) }
    }
}

impl ScaleFields {
    fn manager<'a>(&'a self, by: &By<'a>) -> FieldManager<'a> {
        FieldManager {
            versions: self,
            kind: scale_kind(),
            subresource: by.subresource,
            reset: &[],
            outlines: None,
            creations: None,
        }
    }
}

impl FieldTracker for ScaleFields {
    fn update(&self, by: &By<'_>, live: Option<&Value>, object: Value) -> Value {
        self.manager(by).update(live, object, by.manager, by.now)
    }

    fn apply(&self, by: &By<'_>, live: Option<&Value>, patch: &Value, force: Force) -> Result<Value, Status> {
        let is_custom = self.parent == Parent::Custom && patch.is_of(&scale_kind());
        let managers = live.and_then(|live| live.at(&["metadata", "managedFields"])).and_then(Value::as_array);
        if is_custom && managers.is_none_or(<[_]>::is_empty) {
            return Err(unconvertible("create manager for existing fields: failed to convert live", "", ""));
        }
        let applied = self.manager(by).apply(live, patch, by.manager, force, by.now).map_err(Status::from)?;
        if is_custom && applied.changed {
            return Err(unconvertible("convert new", patch.meta().namespace(), patch.meta().name()));
        }
        Ok(applied.object)
    }
}

/// The reference asks the converter of a custom resource for a Scale, where an apply changes something.
fn unconvertible(what: &str, namespace: &str, name: &str) -> Status {
    Status::unknown(format!(
        "failed to {what} object ({namespace}/{name}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR \
         to an invalid group/version: autoscaling/v1"
    ))
}
