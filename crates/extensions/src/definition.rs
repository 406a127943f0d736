//! A CustomResourceDefinition, read: the parts that serving and the controllers look at.

use kubelith_codec::json;
use kubelith_meta::{GroupResource, Str, Value};
use kubelith_schema::{ScalePaths, Scope};
use kubelith_store::cache::CachedObject;

/// A stored definition at v1, in which they are cached.
pub fn read(object: &CachedObject) -> Result<Value, String> {
    if let Some(why) = &object.broken {
        return Err(why.why.to_string());
    }
    json::parse_stored(&object.json()).map_err(|e| e.to_string())
}

/// A borrowed view of a stored definition. What is absent reads as empty.
#[derive(Debug, Clone, Copy)]
pub struct Definition<'a>(pub &'a Value);

/// The names under which a resource is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    pub plural: Str,
    pub singular: Str,
    pub kind: Str,
    pub list_kind: Str,
    pub short_names: Vec<Str>,
    pub categories: Vec<Str>,
}

/// One entry of `spec.versions`.
#[derive(Debug, Clone, Copy)]
pub struct VersionSpec<'a>(pub &'a Value);

/// A definition is called by its plural and its group.
pub fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

/// What the definition of this name defines.
pub fn resource_of(name: &str) -> GroupResource {
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    GroupResource::new(group, plural)
}

/// Where the instances of a resource are kept.
pub fn storage_prefix(resource: &GroupResource) -> Str {
    format!("{}/{}", resource.group, resource.resource).into()
}

/// Whether the instances of a resource would be kept where built-in objects are. Those are not ours to touch.
pub fn overlaps_built_in(resource: &GroupResource) -> bool {
    let prefix = storage_prefix(resource);
    kubelith_catalog::builtin().descriptors.iter().any(|descriptor| descriptor.storage.prefix == prefix)
}

impl<'a> Definition<'a> {
    pub fn name(self) -> &'a str {
        self.0.str_at(&["metadata", "name"])
    }

    pub fn uid(self) -> &'a str {
        self.0.str_at(&["metadata", "uid"])
    }

    pub fn generation(self) -> i64 {
        self.0.meta().generation()
    }

    pub fn group(self) -> &'a str {
        self.0.str_at(&["spec", "group"])
    }

    pub fn scope(self) -> Scope {
        if self.0.str_at(&["spec", "scope"]) == "Namespaced" { Scope::Namespaced } else { Scope::Cluster }
    }

    pub fn names(self) -> Names {
        Names::read(self.0.at(&["spec", "names"]))
    }

    pub fn accepted_names(self) -> Names {
        Names::read(self.0.at(&["status", "acceptedNames"]))
    }

    pub fn versions(self) -> impl Iterator<Item = VersionSpec<'a>> {
        list(self.0, &["spec", "versions"]).iter().map(VersionSpec)
    }

    pub fn storage_version(self) -> &'a str {
        self.versions().find(|v| v.is_storage()).map_or("", |v| v.name())
    }

    /// `spec.preserveUnknownFields`: nothing is pruned. Only definitions of the time before v1 say so.
    pub fn preserves_unknown(self) -> bool {
        self.0.at(&["spec", "preserveUnknownFields"]).and_then(Value::as_bool).unwrap_or(false)
    }

    /// `spec.conversion.webhook`, if objects are converted by one.
    pub fn webhook(self) -> Option<&'a Value> {
        let conversion = self.0.at(&["spec", "conversion"])?;
        if conversion.str_at(&["strategy"]) == "Webhook" { conversion.get("webhook") } else { None }
    }

    pub fn condition(self, kind: &str) -> Option<&'a Value> {
        list(self.0, &["status", "conditions"]).iter().find(|c| c.str_at(&["type"]) == kind)
    }

    pub fn is(self, condition: &str) -> bool {
        self.condition(condition).is_some_and(|c| c.str_at(&["status"]) == "True")
    }

    pub fn stored_versions(self) -> impl Iterator<Item = &'a str> {
        list(self.0, &["status", "storedVersions"]).iter().filter_map(Value::as_str)
    }

    pub fn is_being_deleted(self) -> bool {
        self.0.meta().is_being_deleted()
    }

    /// Whether nothing may be created any more. Where somebody's finalizer keeps a definition whose objects are deleted, it is not
    /// `Terminating` again; what came then would stay in the store for good, for nobody looks for objects again.
    pub fn is_closed(self) -> bool {
        self.is("Terminating") || self.is_being_deleted()
    }
}

impl<'a> VersionSpec<'a> {
    pub fn name(self) -> &'a str {
        self.0.str_at(&["name"])
    }

    fn flag(self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn is_served(self) -> bool {
        self.flag("served")
    }

    pub fn is_storage(self) -> bool {
        self.flag("storage")
    }

    pub fn is_deprecated(self) -> bool {
        self.flag("deprecated")
    }

    pub fn deprecation_warning(self) -> Option<&'a str> {
        self.0.get("deprecationWarning").and_then(Value::as_str)
    }

    pub fn schema(self) -> Option<&'a Value> {
        self.0.at(&["schema", "openAPIV3Schema"])
    }

    pub fn has_status(self) -> bool {
        self.0.at(&["subresources", "status"]).is_some_and(|s| !s.is_null())
    }

    pub fn scale(self) -> Option<ScalePaths> {
        let scale = self.0.at(&["subresources", "scale"]).filter(|s| !s.is_null())?;
        let selector = scale.str_at(&["labelSelectorPath"]);
        Some(ScalePaths {
            spec_replicas: scale.str_at(&["specReplicasPath"]).into(),
            status_replicas: scale.str_at(&["statusReplicasPath"]).into(),
            label_selector: (!selector.is_empty()).then(|| selector.into()),
        })
    }

    pub fn columns(self) -> &'a [Value] {
        list(self.0, &["additionalPrinterColumns"])
    }

    /// JSON paths of `selectableFields`.
    pub fn selectable(self) -> impl Iterator<Item = &'a str> {
        list(self.0, &["selectableFields"]).iter().map(|f| f.str_at(&["jsonPath"]))
    }
}

impl Names {
    fn read(names: Option<&Value>) -> Names {
        let Some(names) = names else { return Names::default() };
        let text = |key: &str| Str::from(names.str_at(&[key]));
        let texts =
            |key: &str| -> Vec<Str> { list(names, &[key]).iter().filter_map(Value::as_str).map(Str::from).collect() };
        Names {
            plural: text("plural"),
            singular: text("singular"),
            kind: text("kind"),
            list_kind: text("listKind"),
            short_names: texts("shortNames"),
            categories: texts("categories"),
        }
    }

    /// As `status.acceptedNames` has them.
    pub fn to_value(&self) -> Value {
        let mut value =
            Value::from([("plural", Value::String(self.plural.clone())), ("kind", Value::String(self.kind.clone()))]);
        for (key, text) in [("singular", &self.singular), ("listKind", &self.list_kind)] {
            if !text.is_empty() {
                value.set_at(&[key], Value::String(text.clone()));
            }
        }
        for (key, texts) in [("shortNames", &self.short_names), ("categories", &self.categories)] {
            if !texts.is_empty() {
                value.set_at(&[key], texts.clone().into());
            }
        }
        value
    }
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or(&[])
}
