//! Selectors of devices (`resource.k8s.io`): the variable `device`, what it costs to look at, and its value for a device of
//! a ResourceSlice.

use crate::declared::{Declared, Field, Map as Members, MemberKind, Object};
use crate::env::{Env, Libraries};
use crate::estimate::{self, Sizes};
use crate::libraries::devices::MAX_VALUES;
use crate::libraries::semver::Version;
use crate::libraries::{Library, QUANTITY};
use crate::program::Program;
use crate::types::Type;
use crate::value::{Map, Opaque, Val};
use kubelith_meta::{Quantity, Value};
use std::sync::Arc;

/// The most that a selector may cost, estimated and counted.
pub const COST_LIMIT: u64 = 1_000_000;

const MAX_DOMAIN: u64 = 63;
const MAX_ID: u64 = 32;
const MAX_DRIVER: u64 = 63;
/// How many attributes and capacities a device has.
const MAX_MEMBERS: u64 = 32;
/// The longest text of an attribute.
const MAX_TEXT: u64 = 64;

/// The feature gates of selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gates {
    /// `DRAConsumableCapacity`: `device.allowMultipleAllocations`.
    pub consumable_capacity: bool,
    /// `DRAListTypeAttributes`: attributes may be lists, and `includes` looks into them.
    pub list_attributes: bool,
}

/// Compiles selectors.
#[derive(Debug)]
pub struct Selectors {
    /// For expressions that someone writes, and for those that are stored.
    new: Env,
    stored: Env,
    /// What sizes come from: the newest form of a device, whatever the gates say.
    newest: Declared,
    gates: Gates,
}

/// A selector that is compiled.
#[derive(Debug)]
pub struct Selector {
    pub program: Program,
    /// The most it may cost.
    pub max_cost: u64,
    list_attributes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectorError {
    Invalid(String),
    Internal(String),
}

impl Selectors {
    pub fn new(libraries: Libraries, gates: Gates) -> Selectors {
        let newest = device(Gates { consumable_capacity: true, ..gates });
        let new = env(libraries, device(gates), gates.list_attributes);
        let stored = env(Libraries::ALL, newest.clone(), true);
        Selectors { new, stored, newest, gates }
    }

    pub fn env(&self, is_stored: bool) -> &Env {
        if is_stored { &self.stored } else { &self.new }
    }

    pub fn sizes(&self) -> Sizes<'_> {
        Sizes::Variable("device", &self.newest)
    }

    pub fn compile(&self, text: &str, is_stored: bool) -> Result<Selector, SelectorError> {
        let env = self.env(is_stored);
        let checked = env.compile(text).map_err(|e| SelectorError::Invalid(format!("compilation failed: {e}")))?;
        match checked.result_type() {
            Type::Bool | Type::Any => {}
            Type::Dyn if self.gates.list_attributes => {}
            other => {
                let why = format!("must evaluate to bool or the unknown type, not {other}");
                return Err(SelectorError::Invalid(why));
            }
        }
        let program = Program::new(env, &checked)
            .map_err(|why| SelectorError::Internal(format!("program instantiation failed: {why}")))?;
        let max_cost = estimate::cost(&checked, self.sizes()).max;
        Ok(Selector { program, max_cost, list_attributes: self.gates.list_attributes })
    }
}

impl Selector {
    /// Whether a device of a driver, as a ResourceSlice has it, will do.
    pub fn matches(&self, driver: &str, device: &Value) -> Result<bool, String> {
        let variables = [value(driver, device, self.list_attributes)?];
        let (result, _) = self.program.eval_within(&variables, COST_LIMIT);
        match result.map_err(|e| e.to_string())? {
            Val::Bool(matches) => Ok(matches),
            other => Err(format!("CEL result of type {} could not be converted to bool", other.type_name())),
        }
    }
}

fn env(libraries: Libraries, device: Declared, with_includes: bool) -> Env {
    let more = [Library::Bindings].into_iter().chain(with_includes.then_some(Library::Devices));
    Env::with(libraries.iter().chain(more)).declare("device", device.clone()).types(vec![device])
}

fn sized(cel: Type, kind: MemberKind, max_elements: u64) -> Declared {
    Declared { cel, kind, nullable: true, min_size: 1, max_elements }
}

/// `kubernetes.DRADevice`.
fn device(gates: Gates) -> Declared {
    let attribute = match gates.list_attributes {
        true => sized(Type::Dyn, MemberKind::Dyn, MAX_TEXT.max(MAX_VALUES as u64)),
        false => sized(Type::Any, MemberKind::Dyn, MAX_TEXT),
    };
    let by_domain = |value: Declared, sized_by_name: bool| {
        let inner = Declared::map_of(Members { value, max_key: MAX_ID, sized_by_name }, MAX_MEMBERS);
        Declared::map_of(Members { value: inner, max_key: MAX_DOMAIN, sized_by_name: false }, MAX_MEMBERS)
    };
    let mut fields = vec![
        ("attributes", by_domain(attribute, true)),
        ("capacity", by_domain(sized(Type::Named(QUANTITY), MemberKind::Library, 0), false)),
        ("driver", sized(Type::String, MemberKind::String, MAX_DRIVER)),
    ];
    if gates.consumable_capacity {
        fields.insert(0, ("allowMultipleAllocations", sized(Type::Bool, MemberKind::Bool, 1)));
    }
    let field = |(name, declared): (&str, Declared)| Field {
        name: name.into(),
        property: name.into(),
        declared,
        required: true,
    };
    let fields = fields.into_iter().map(field).collect();
    let name = "kubernetes.DRADevice".into();
    Declared::object(Arc::new(Object { name, fields, open: false, preserve_unknown: false, hidden: Vec::new() }), 2)
}

/// The value of `device`. Every domain is there: one that the device does not have is empty.
fn value<'a>(driver: &'a str, device: &'a Value, list_attributes: bool) -> Result<Val<'a>, String> {
    let attribute = |name: &str, value: &'a Value| {
        attribute(value, list_attributes).map_err(|why| format!("attribute {name}: {why}"))
    };
    let capacity = |name: &str, value: &'a Value| {
        let text = value.get("value").and_then(Value::as_str).unwrap_or_default();
        let amount = Quantity::parse(text).map_err(|why| format!("capacity {name}: {why}"))?;
        Ok(Val::opaque(Opaque::Quantity { amount, computed: false }))
    };
    let allow = device.get("allowMultipleAllocations").and_then(Value::as_bool).unwrap_or_default();
    let mut map = Map::with_capacity(4);
    let members = [
        ("driver", Val::Str(driver)),
        ("allowMultipleAllocations", Val::Bool(allow)),
        ("attributes", by_domain(driver, device.get("attributes"), attribute)?),
        ("capacity", by_domain(driver, device.get("capacity"), capacity)?),
    ];
    for (name, member) in members {
        map.insert(Val::Str(name), member).map_err(|e| e.to_string())?;
    }
    Ok(Val::Map(Arc::new(map)))
}

fn by_domain<'a>(
    driver: &'a str,
    members: Option<&'a Value>,
    read: impl Fn(&str, &'a Value) -> Result<Val<'a>, String>,
) -> Result<Val<'a>, String> {
    let mut domains: Vec<(&str, Map<'a>)> = Vec::new();
    for (name, member) in members.and_then(Value::as_object).into_iter().flat_map(|m| m.iter()) {
        let (domain, id) = name.split_once('/').unwrap_or((driver, name));
        let at = domains.iter().position(|(known, _)| *known == domain).unwrap_or_else(|| {
            domains.push((domain, Map::with_capacity(1)));
            domains.len() - 1
        });
        domains[at].1.insert(Val::Str(id), read(name, member)?).map_err(|e| e.to_string())?;
    }
    let mut map = Map::with_capacity(domains.len()).or_else(Val::Map(Arc::new(Map::with_capacity(0))));
    for (domain, members) in domains {
        map.insert(Val::Str(domain), Val::Map(Arc::new(members))).map_err(|e| e.to_string())?;
    }
    Ok(Val::Map(Arc::new(map)))
}

/// The one value that an attribute has.
fn attribute(attribute: &Value, list_attributes: bool) -> Result<Val<'_>, String> {
    let version = |value: &Value| {
        let parsed = Version::parse(value.as_str().unwrap_or_default());
        parsed.map(|v| Val::opaque(Opaque::Semver(v))).map_err(|why| format!("parse semantic version: {why}"))
    };
    if list_attributes {
        for list in ["ints", "bools", "strings"] {
            if let Some(values) = attribute.get(list) {
                return Ok(Val::json(values));
            }
        }
        if let Some(values) = attribute.get("versions").and_then(Value::as_array) {
            let values = values.iter().map(version).collect::<Result<Vec<_>, _>>()?;
            return Ok(Val::flat(values));
        }
    }
    for scalar in ["int", "bool", "string"] {
        if let Some(value) = attribute.get(scalar) {
            return Ok(Val::json(value));
        }
    }
    match attribute.get("version") {
        Some(value) => version(value),
        None => Err("unsupported attribute value".into()),
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
