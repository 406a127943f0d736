//! The list `metadata.managedFields` and the owners in it.

use crate::apply::{ManagerId, Operation, Owner, Owners};
use crate::fieldset::{Outlines, Owned};
use kubelith_meta::text::Quoted;
use kubelith_meta::{Map, Str, Time, Value};
use std::sync::Arc;

const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

/// Who owns what in an object.
#[derive(Debug, Clone, Default)]
pub struct Managed {
    pub owners: Owners,
}

/// Why a list of entries cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ManagedFieldsError(String);

impl Managed {
    /// Reads the entries of `object`. An object without metadata has none.
    pub fn of(object: &Value) -> Result<Managed, ManagedFieldsError> {
        Managed::of_known(object, None)
    }

    /// The same, with the sets that were outlined lately.
    pub(super) fn of_known(object: &Value, outlines: Option<&Outlines>) -> Result<Managed, ManagedFieldsError> {
        Managed::read(object.at(&MANAGED_FIELDS).and_then(Value::as_array).unwrap_or_default(), outlines)
    }

    /// Takes the entries out of `object`.
    pub(super) fn take(object: &mut Value, outlines: Option<&Outlines>) -> Result<Managed, ManagedFieldsError> {
        match object.remove_at(&MANAGED_FIELDS) {
            Some(Value::Array(list)) => Managed::read(&list, outlines),
            _ => Ok(Managed::default()),
        }
    }

    /// Reads a list of entries. Of two with the same identity the later counts.
    pub fn decode(list: &Value) -> Result<Managed, ManagedFieldsError> {
        Managed::read(list.as_array().unwrap_or_default(), None)
    }

    fn read(list: &[Value], outlines: Option<&Outlines>) -> Result<Managed, ManagedFieldsError> {
        let mut managed = Managed::default();
        for (i, entry) in list.iter().enumerate() {
            let (id, owner) = decode_entry(i, entry, outlines).map_err(ManagedFieldsError)?;
            managed.owners.insert(id, owner);
        }
        Ok(managed)
    }

    /// The list of entries, sorted as clients see them: appliers first, then by time and name. Null if nobody owns
    /// anything.
    pub fn encode(self) -> Value {
        if self.owners.is_empty() {
            return Value::Null;
        }
        let mut entries: Vec<(ManagerId, Owner)> = self.owners.into_iter().collect();
        entries.sort_by(|(a_id, a), (b_id, b)| {
            (a.operation, seconds(a))
                .cmp(&(b.operation, seconds(b)))
                .then_with(|| a_id.manager.cmp(&b_id.manager))
                .then_with(|| a.version.cmp(&b.version))
                .then_with(|| a_id.subresource.cmp(&b_id.subresource))
        });
        Value::Array(entries.into_iter().map(|(id, owner)| encode_entry(id, owner)).collect())
    }

    /// Puts the entries into `object`.
    pub fn store(self, object: &mut Value) {
        match self.encode() {
            Value::Null => clear(object),
            list => object.set_at(&MANAGED_FIELDS, list),
        }
    }
}

/// Removes all entries from `object`.
pub(super) fn clear(object: &mut Value) {
    object.remove_at(&MANAGED_FIELDS);
}

/// Whether `object` asks for its entries to be dropped: an empty list, or one of one empty entry.
pub(super) fn is_reset(object: &Value) -> bool {
    match object.at(&MANAGED_FIELDS).and_then(Value::as_array) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.values().all(Value::is_empty),
        _ => false,
    }
}

/// Whether the list is there at all, be it empty.
pub(super) fn is_present(object: &Value) -> bool {
    object.at(&MANAGED_FIELDS).is_some_and(|list| list.as_array().is_some())
}

fn decode_entry(i: usize, entry: &Value, outlines: Option<&Outlines>) -> Result<(ManagerId, Owner), String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".into()),
    };
    if text("apiVersion").is_empty() {
        return Err("apiVersion must not be empty".into());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {i}")),
        other => return Err(format!("invalid fieldsType {} in managed fields entry {i}", Quoted(other))),
    }
    let fields = Owned::read(entry.get("fieldsV1"), outlines).map_err(|e| {
        let entry = crate::go_text::go_value(entry);
        format!("error decoding versioned set from {entry}: error decoding set: {e}")
    })?;
    let id = ManagerId::new(text("manager"), operation, text("apiVersion"), text("subresource"));
    let mut owner = Owner::of(Str::from(text("apiVersion")), operation, fields);
    owner.time = Some(text("time")).filter(|t| !t.is_empty()).map(canonical_time);
    Ok((id, owner))
}

/// Makes `id` the only owner in a new `object`, of these fields.
pub(super) fn store_first(object: &mut Value, id: ManagerId, version: Str, fields: Arc<str>, time: Str) {
    let entry = write_entry(id, version, Operation::Update, Value::Raw(fields), Some(time));
    object.set_at(&MANAGED_FIELDS, Value::Array(vec![entry]));
}

fn encode_entry(id: ManagerId, mut owner: Owner) -> Value {
    let (version, operation, time) = (std::mem::take(&mut owner.version), owner.operation, owner.time.take());
    write_entry(id, version, operation, owner.into_fields(), time)
}

fn write_entry(id: ManagerId, version: Str, operation: Operation, fields: Value, time: Option<Str>) -> Value {
    let mut entry = Map::with_capacity(7);
    // In key order: each insertion is an append.
    entry.insert("apiVersion", version);
    entry.insert("fieldsType", "FieldsV1");
    entry.insert("fieldsV1", fields);
    if !id.manager.is_empty() {
        entry.insert("manager", id.manager);
    }
    entry.insert("operation", operation.as_str());
    if !id.subresource.is_empty() {
        entry.insert("subresource", id.subresource);
    }
    if let Some(time) = time {
        entry.insert("time", time);
    }
    Value::Object(entry)
}

/// In UTC and whole seconds, as times are always written.
fn canonical_time(text: &str) -> Str {
    match Time::parse(text) {
        Ok(time) if !(text.len() == 20 && text.ends_with('Z')) => Str::from(time.rfc3339()),
        _ => Str::from(text),
    }
}

/// Since 1970; 0 without a time.
pub(super) fn seconds(owner: &Owner) -> i64 {
    owner.time.as_deref().and_then(|t| Time::parse(t).ok()).map_or(0, Time::unix_seconds)
}
