//! The descriptor of a custom resource: the same type that the catalogue's resources have.

use crate::definition::{Definition, VersionSpec, storage_prefix};
use kubelith_meta::gvk::compare_versions;
use kubelith_meta::{GroupResource, GroupVersionKind, Str, Value};
use kubelith_schema::structural::{Structural, object_schema};
use kubelith_schema::{
    Cell, Column, Deprecation, Descriptor, Encoding, SelectableField, ServedReleases, Storage, Subresource,
    TypedSchema, Unselectable, Version,
};
use std::cmp::Ordering;
use std::sync::Arc;

/// What every custom resource can do, as discovery lists it.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// What is left while the definition is being deleted.
const LAST_VERBS: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];
/// A name that no client can write: the place of a field that another version can be selected by.
const NOBODY: &str = "\0";

/// Without schemas: what discovery and OpenAPI need to know.
pub fn outline(definition: Definition<'_>) -> Arc<Descriptor> {
    descriptor(definition, &|_| Arc::default())
}

/// With the schema of each version, by its name.
pub fn descriptor(definition: Definition<'_>, schema_of: &dyn Fn(&str) -> Arc<Structural>) -> Arc<Descriptor> {
    let names = definition.accepted_names();
    let group = Str::from(definition.group());
    let storage = Str::from(definition.storage_version());
    let table = &kubelith_catalog::builtin().table;
    let fields = selectable_paths(definition);
    let versions = definition.versions().map(|v| {
        let schema = object_schema(table.clone(), &schema_of(v.name()));
        version(definition, v, &names.kind, schema, &fields)
    });
    let mut versions: Vec<Version> = versions.collect();
    versions.sort_by(|a, b| compare_versions(&b.name, &a.name));
    let resource = GroupResource::new(group.clone(), names.plural.clone());
    Arc::new(Descriptor {
        storage: Storage {
            kind: GroupVersionKind::new(group.clone(), storage, names.kind.clone()),
            prefix: storage_prefix(&resource),
            resource,
            encoding: Encoding::Json,
            before: None,
        },
        group,
        plural: names.plural,
        singular: names.singular,
        kind: names.kind,
        list_kind: names.list_kind,
        scope: definition.scope(),
        short_names: names.short_names,
        categories: names.categories,
        versions,
    })
}

fn version(
    definition: Definition<'_>,
    spec: VersionSpec<'_>,
    kind: &Str,
    schema: TypedSchema,
    fields: &[&str],
) -> Version {
    let texts = |verbs: &[&str]| verbs.iter().map(|v| Str::from(*v)).collect::<Vec<_>>();
    let mut subresources = Vec::new();
    if spec.has_status() {
        subresources.push(Subresource {
            name: "status".into(),
            kind: GroupVersionKind::new(definition.group(), spec.name(), kind.clone()),
            verbs: texts(&SUBRESOURCE_VERBS),
            accepted: Vec::new(),
            schema: None,
            scale: None,
        });
    }
    if let Some(scale) = spec.scale() {
        let kind = GroupVersionKind::new("autoscaling", "v1", "Scale");
        subresources.push(Subresource {
            name: "scale".into(),
            schema: kubelith_catalog::builtin().kind_schema(&kind),
            kind,
            verbs: texts(&SUBRESOURCE_VERBS),
            accepted: Vec::new(),
            scale: Some(scale),
        });
    }
    let own: Vec<&str> = spec.selectable().collect();
    let selectable = fields.iter().map(|path| SelectableField {
        name: if own.contains(path) { path.trim_start_matches('.').into() } else { NOBODY.into() },
        path: (*path).into(),
        fallback: None,
        absent: Str::default(),
    });
    Version {
        name: spec.name().into(),
        served: spec.is_served(),
        schema,
        verbs: if definition.is("Terminating") { texts(&LAST_VERBS) } else { texts(&VERBS) },
        subresources,
        columns: columns(spec),
        selectable: selectable.collect(),
        unselectable: Unselectable { namespace: false, message: "field label not supported: {}".into() },
        deprecation: spec.is_deprecated().then(|| Deprecation { warning: deprecation_warning(definition, spec) }),
        releases: ServedReleases::default(),
    }
}

/// The paths by which some version can be selected. The cache keeps their values for every object, in this order.
pub fn selectable_paths(definition: Definition<'_>) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    for path in definition.versions().flat_map(VersionSpec::selectable) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

fn deprecation_warning(definition: Definition<'_>, spec: VersionSpec<'_>) -> Str {
    if let Some(own) = spec.deprecation_warning() {
        return own.into();
    }
    let (group, kind) = (definition.group(), definition.names().kind);
    let better = definition
        .versions()
        .filter(|v| v.is_served() && !v.is_deprecated())
        .map(|v| v.name())
        .filter(|name| compare_versions(spec.name(), name) == Ordering::Less)
        .max_by(|a, b| compare_versions(a, b));
    let warning = format!("{group}/{} {kind} is deprecated", spec.name());
    match better {
        Some(better) => format!("{warning}; use {group}/{better} {kind}").into(),
        None => warning.into(),
    }
}

/// The name, then the columns that the definition adds, or the age if it adds none.
fn columns(spec: VersionSpec<'_>) -> Vec<Column> {
    let column = |name: &str, kind: &str, format: &str, description: Str, priority: i64, path: &str| Column {
        name: name.into(),
        kind: kind.into(),
        format: format.into(),
        description,
        priority: i32::try_from(priority).unwrap_or_default(),
        cell: Cell::Path(path.into()),
        arguments: Vec::new(),
        absent: Value::Null,
    };
    let mut columns = vec![column("Name", "string", "name", Str::default(), 0, ".metadata.name")];
    if spec.columns().is_empty() {
        columns.push(column("Age", "date", "", Str::default(), 0, ".metadata.creationTimestamp"));
    }
    for own in spec.columns() {
        let path = own.str_at(&["jsonPath"]);
        let description = match own.str_at(&["description"]) {
            "" => format!("Custom resource definition column (in JSONPath format): {path}").into(),
            text => Str::from(text),
        };
        let priority = own.get("priority").and_then(Value::as_i64).unwrap_or_default();
        let (name, kind, format) = (own.str_at(&["name"]), own.str_at(&["type"]), own.str_at(&["format"]));
        columns.push(column(name, kind, format, description, priority, path));
    }
    columns
}
