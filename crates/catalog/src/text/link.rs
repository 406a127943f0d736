//! Makes one model of all files: inlines what is to be inlined, puts the versions of each resource together.

use super::ast::{FieldText, File, Member, Reach, ResourceText, ShapeText, StoreText, TypeText};
use super::scan::{Place, TextError};
use super::shapes::Names;
use crate::api::{Api, Serve};
use crate::model::{Model, Resource, ResourceVersion, Subresource};
use kubelith_meta::{GroupResource, GroupVersionKind, Str};
use kubelith_schema::{
    Deprecation, Encoding, Field, GoField, Omit, Presence, ProtoSlot, Schema, ServedReleases, Shape, Storage,
    StructType,
};
use std::cmp::Reverse;

pub fn link(mut files: Vec<File>) -> Result<Model, TextError> {
    for file in &mut files {
        if let Some(api) = &mut file.api {
            api.models = file.models.clone();
        }
    }
    // Discovery's order: groups and versions with a higher priority come first.
    files.sort_by_key(|f| f.api.as_ref().map(discovery_order));
    let linker = Linker { names: Names::collect(&files)?, files: &files };
    let mut model = Model {
        types: Vec::new(),
        apis: files.iter().filter_map(|f| f.api.clone()).collect(),
        kinds: Vec::new(),
        everywhere: Vec::new(),
        resources: Vec::new(),
    };
    for file in &files {
        for text in &file.types {
            model.types.push(linker.struct_type(file, text)?);
        }
        linker.kinds(file, &mut model)?;
        for text in &file.resources {
            linker.resource(file, text, &mut model)?;
        }
    }
    model.kinds.sort();
    model.everywhere.sort();
    let group_position = |group: &Str| model.apis.iter().position(|a| a.gv.group == *group);
    model.resources.sort_by_key(|r| (group_position(&r.group), r.plural.clone()));
    for resource in &mut model.resources {
        if resource.storage.kind.kind.is_empty() {
            let preferred = resource.versions[0].name.clone();
            resource.storage.kind = GroupVersionKind::new(resource.group.clone(), preferred, resource.kind.clone());
        }
    }
    Ok(model)
}

fn discovery_order(api: &Api) -> impl Ord + use<> {
    let version = Reverse(api.version_priority);
    (Reverse(api.group_priority), api.gv.group.clone(), version, api.gv.version.clone())
}

struct Linker<'a> {
    names: Names,
    files: &'a [File],
}

impl Linker<'_> {
    fn kinds(&self, file: &File, model: &mut Model) -> Result<(), TextError> {
        let Some(api) = &file.api else { return Ok(()) };
        for text in &file.types {
            let id = self.names.type_id(&text.place, &text.name)?;
            match text.reach {
                Reach::Part => {}
                Reach::Own => model.kinds.push((api.gv.with_kind(text.name.as_str()), id)),
                Reach::Everywhere => model.everywhere.push((text.name.as_str().into(), id)),
            }
        }
        for alias in &file.aliases {
            let id = self.names.type_id(&alias.place, &alias.target)?;
            model.kinds.push((api.gv.with_kind(alias.kind.clone()), id));
        }
        Ok(())
    }

    fn struct_type(&self, file: &File, text: &TypeText) -> Result<StructType, TextError> {
        let mut fields = Vec::new();
        if text.has_type_meta {
            fields.extend(["apiVersion", "kind"].map(type_meta_field));
        }
        let mut go = Vec::new();
        let slots = self.members(text, &mut fields, "", &mut go)?;
        let (fields, proto) = sorted(&text.place, fields, slots)?;
        for union in &text.unions {
            let named = union.members.iter().map(|(field, _)| field).chain(&union.discriminator);
            if let Some(missing) = named.into_iter().find(|n| !fields.iter().any(|f| f.name == **n)) {
                return Err(text.place.error(format!("a union of {} names {missing}, which is no field", text.name)));
            }
        }
        Ok(StructType {
            name: format!("{}.{}", file.models, text.name).into(),
            fields: fields.into(),
            proto: if text.has_proto { proto } else { Vec::new() },
            atomic: text.atomic,
            embedded: text.has_type_meta,
            unions: text.unions.clone(),
            go,
            ..StructType::default()
        })
    }

    /// Appends the fields, those of inlined types included; slots count fields in the order of appending. `embedded` are the
    /// inlined types around them.
    fn members(
        &self,
        text: &TypeText,
        fields: &mut Vec<Field>,
        embedded: &str,
        go: &mut Vec<GoField>,
    ) -> Result<Vec<ProtoSlot>, TextError> {
        let mut slots = Vec::new();
        for member in &text.members {
            match member {
                Member::Field(field) => {
                    self.check(field)?;
                    fields.push(self.names.field(field)?);
                    go.extend(self.go_field(field, embedded));
                    if let Some(number) = field.number {
                        slots.push(ProtoSlot::Field { number, field: fields.len() as u16 - 1 });
                    }
                }
                Member::Inline { place, number, target } => {
                    let name = target.rsplit('.').next().unwrap_or(target);
                    let embedded = if embedded.is_empty() { name.to_owned() } else { format!("{embedded}.{name}") };
                    let inner = self.members(self.type_text(place, target)?, fields, &embedded, go)?;
                    if let Some(number) = *number {
                        slots.push(ProtoSlot::Inline { number, slots: inner });
                    }
                }
            }
        }
        slots.sort_by_key(slot_number);
        if let Some(pair) = slots.windows(2).find(|p| slot_number(&p[0]) == slot_number(&p[1])) {
            return Err(text.place.error(format!("{} uses number {} twice", text.name, slot_number(&pair[0]))));
        }
        Ok(slots)
    }

    /// Go's names, if they do not follow from the schema.
    fn go_field(&self, field: &FieldText, embedded: &str) -> Option<GoField> {
        let said = field.go.clone().filter(|name| name != "-");
        let follows = || self.names.go_type(&field.place, &field.shape).map(Str::from);
        let type_name = if field.go.is_some() { said } else { follows() }.unwrap_or_default();
        let is_known = type_name.is_empty() && embedded.is_empty();
        (!is_known).then(|| GoField { name: field.name.clone(), type_name, embedded: embedded.into() })
    }

    /// Merge and map keys must be fields of the elements.
    fn check(&self, field: &FieldText) -> Result<(), TextError> {
        let mut keys: Vec<&Str> = field.patch.iter().flat_map(|p| &p.merge_key).collect();
        if let Some(kubelith_schema::ListKind::Map(map_keys)) = &field.list {
            keys.extend(map_keys);
        }
        let ShapeText::List(item) = &field.shape else {
            return if keys.is_empty() { Ok(()) } else { Err(field.place.error("only lists have keys")) };
        };
        let (ShapeText::Name(name), false) = (&**item, keys.is_empty()) else { return Ok(()) };
        let names = self.field_names(self.type_text(&field.place, name)?)?;
        match keys.into_iter().find(|k| !names.contains(k)) {
            Some(key) => Err(field.place.error(format!("{name} has no field {key} to be a key"))),
            None => Ok(()),
        }
    }

    fn field_names<'t>(&'t self, text: &'t TypeText) -> Result<Vec<&'t Str>, TextError> {
        let mut names = Vec::new();
        for member in &text.members {
            match member {
                Member::Field(field) => names.push(&field.name),
                Member::Inline { place, target, .. } => {
                    names.extend(self.field_names(self.type_text(place, target)?)?);
                }
            }
        }
        Ok(names)
    }

    fn type_text(&self, place: &Place, name: &str) -> Result<&TypeText, TextError> {
        let (stem, name) = name.rsplit_once('.').unwrap_or((&place.file, name));
        let found = self.files.iter().find(|f| f.stem == stem).and_then(|f| f.types.iter().find(|t| t.name == name));
        found.ok_or_else(|| place.error(format!("there is no type {name} in {stem}")))
    }

    fn api(&self, place: &Place, stem: &str) -> Result<&Api, TextError> {
        let file = self.files.iter().find(|f| f.stem == stem);
        file.and_then(|f| f.api.as_ref()).ok_or_else(|| place.error(format!("there is no API {stem}")))
    }

    /// The group, version and kind of `name` as written at `place`.
    fn gvk(&self, place: &Place, name: &str) -> Result<GroupVersionKind, TextError> {
        let (stem, kind) = name.rsplit_once('.').unwrap_or((&place.file, name));
        self.names.type_id(place, name)?;
        Ok(self.api(place, stem)?.gv.with_kind(kind))
    }

    fn resource(&self, file: &File, text: &ResourceText, model: &mut Model) -> Result<(), TextError> {
        let api = self.api(&text.place, &file.stem)?;
        if api.serve == Serve::Never {
            return Err(text.place.error("a version that is never served has no resources"));
        }
        let group = &api.gv.group;
        let version = self.version(api, text)?;
        let known = model.resources.iter().position(|r| r.group == *group && r.plural == text.plural);
        let resource = match known {
            Some(i) => &mut model.resources[i],
            None => {
                model.resources.push(new_resource(group, text));
                model.resources.last_mut().expect("just pushed")
            }
        };
        let again = new_resource(group, text);
        let names = |r: &Resource| (r.singular.clone(), r.kind.clone(), r.short_names.clone(), r.categories.clone());
        if names(resource) != names(&again) || resource.scope != again.scope {
            return Err(text.place.error(format!("{} differs from its other versions", text.plural)));
        }
        if let Some(store) = &text.store {
            if resource.storage.keeps_objects() {
                return Err(store.place.error(format!("{} has two `store` lines", text.plural)));
            }
            resource.storage = self.storage(api, text, store)?;
        }
        resource.versions.push(version);
        Ok(())
    }

    fn version(&self, api: &Api, text: &ResourceText) -> Result<ResourceVersion, TextError> {
        let mut subresources = Vec::new();
        for sub in &text.subresources {
            let kind = match &sub.kind {
                Some(name) => self.gvk(&sub.place, name)?,
                None => api.gv.with_kind(text.kind.clone()),
            };
            subresources.push(Subresource {
                name: sub.name.clone(),
                kind,
                schema: sub.kind.as_ref().map(|name| self.names.type_id(&sub.place, name)).transpose()?,
                verbs: sub.verbs.clone(),
                accepted: sub.accepted.iter().map(|name| self.gvk(&sub.place, name)).collect::<Result<_, _>>()?,
            });
        }
        Ok(ResourceVersion {
            name: api.gv.version.clone(),
            schema: self.names.type_id(&text.place, &text.kind)?,
            gate: text.gate.clone(),
            verbs: text.verbs.clone(),
            subresources,
            columns: text.columns.clone(),
            selectable: text.selectable.clone(),
            unselectable: text.unselectable.clone(),
            deprecation: deprecation(api, text),
            releases: ServedReleases { since: text.since.unwrap_or(0), removed: removed(text) },
        })
    }

    fn storage(&self, api: &Api, text: &ResourceText, store: &StoreText) -> Result<Storage, TextError> {
        let gv = match &store.version {
            Some(stem) if stem.contains('.') => self.api(&store.place, stem)?.gv.clone(),
            Some(version) => kubelith_meta::GroupVersion::new(api.gv.group.clone(), version.as_str()),
            None => api.gv.clone(),
        };
        let kind = gv.with_kind(text.kind.clone());
        let known = self.files.iter().filter(|f| f.api.as_ref().is_some_and(|a| a.gv == gv));
        if !known.into_iter().any(|f| f.types.iter().any(|t| t.name == kind.kind)) {
            return Err(store.place.error(format!("there is no {kind} to store")));
        }
        Ok(Storage {
            resource: GroupResource::new(gv.group, text.plural.clone()),
            kind,
            prefix: store.prefix.clone(),
            encoding: if store.json { Encoding::Json } else { Encoding::Protobuf },
            before: store.before.clone(),
        })
    }
}

/// A resource without versions, and nothing kept of it.
fn new_resource(group: &Str, text: &ResourceText) -> Resource {
    Resource {
        group: group.clone(),
        plural: text.plural.clone(),
        singular: text.singular.clone().unwrap_or_else(|| text.kind.to_lowercase()),
        kind: text.kind.clone(),
        list_kind: format!("{}List", text.kind).into(),
        scope: text.scope,
        short_names: text.short_names.clone(),
        categories: text.categories.clone(),
        storage: Storage {
            kind: GroupVersionKind::default(),
            resource: GroupResource::new(group.clone(), text.plural.clone()),
            prefix: Str::default(),
            encoding: Encoding::Protobuf,
            before: None,
        },
        versions: Vec::new(),
    }
}

/// The minor release without it.
fn removed(text: &ResourceText) -> u32 {
    let release = text.deprecation.as_ref().and_then(|d| d.removed.as_deref());
    release.and_then(|release| release.strip_prefix("1.")).and_then(|minor| minor.parse().ok()).unwrap_or(0)
}

fn deprecation(api: &Api, text: &ResourceText) -> Option<Deprecation> {
    let d = text.deprecation.as_ref()?;
    let mut warning = format!("{} {} is deprecated in v{}+", api.gv, text.kind, d.since);
    if let Some(removed) = &d.removed {
        warning.push_str(&format!(", unavailable in v{removed}+"));
    }
    if let Some(replacement) = &d.replacement {
        warning.push_str(&format!("; use {replacement}"));
    }
    Some(Deprecation { warning: warning.into() })
}

fn type_meta_field(name: &str) -> Field {
    Field {
        name: name.into(),
        schema: Schema { shape: Shape::String, ..Schema::default() },
        required: false,
        presence: Presence { nilable: false, pointer: false, omit: Omit::Empty },
    }
}

fn slot_number(slot: &ProtoSlot) -> u32 {
    match slot {
        ProtoSlot::Field { number, .. } | ProtoSlot::Inline { number, .. } => *number,
    }
}

/// Fields by name, and the slots counting them in that order.
fn sorted(
    place: &Place,
    fields: Vec<Field>,
    mut slots: Vec<ProtoSlot>,
) -> Result<(Vec<Field>, Vec<ProtoSlot>), TextError> {
    let mut order: Vec<(usize, Field)> = fields.into_iter().enumerate().collect();
    order.sort_by(|a, b| a.1.name.cmp(&b.1.name));
    if let Some(pair) = order.windows(2).find(|p| p[0].1.name == p[1].1.name) {
        return Err(place.error(format!("the field {} stands twice", pair[0].1.name)));
    }
    let mut new_index = vec![0u16; order.len()];
    for (new, (old, _)) in order.iter().enumerate() {
        new_index[*old] = new as u16;
    }
    renumber(&mut slots, &new_index);
    Ok((order.into_iter().map(|(_, field)| field).collect(), slots))
}

fn renumber(slots: &mut [ProtoSlot], new_index: &[u16]) {
    for slot in slots {
        match slot {
            ProtoSlot::Field { field, .. } => *field = new_index[*field as usize],
            ProtoSlot::Inline { slots, .. } => renumber(slots, new_index),
        }
    }
}
