//! Types as schemas declare them: what the checker takes from a schema, the sizes that cost estimates need, and what an
//! evaluation must know to read a JSON value as its schema means it (times, bytes, lists that are sets or maps).

mod structural;

pub use structural::Root;

use crate::types::Type;
use kubelith_meta::Str;
use std::sync::Arc;

/// The most bytes that a request can have.
pub const MAX_REQUEST: u64 = 3 * 1024 * 1024;

/// The declaration of one value.
#[derive(Debug, Clone)]
pub struct Declared {
    /// What the checker sees.
    pub cel: Type,
    pub kind: MemberKind,
    pub nullable: bool,
    /// The smallest JSON text of such a value, in bytes.
    pub min_size: u64,
    /// The most elements, entries or bytes it can have; 0 where that means nothing (numbers, objects).
    pub max_elements: u64,
}

/// How a JSON value is to be read.
#[derive(Debug, Clone)]
pub enum MemberKind {
    /// As it comes.
    Dyn,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
    Bool,
    Int,
    Double,
    String,
    /// base64 (format `byte`).
    Bytes,
    /// Format `duration`.
    Duration,
    /// Format `date`.
    Date,
    /// Format `date-time`.
    DateTime,
    List(Arc<List>),
    Map(Arc<Map>),
    Object(Arc<Object>),
    /// A value of a library: an authorizer.
    Library,
    /// As it comes; names in it, however deep, may be written escaped (`a__dot__b`).
    Escaped,
}

#[derive(Debug, Clone)]
pub struct List {
    pub element: Declared,
    pub kind: ListKind,
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListKind {
    Atomic,
    Set,
    /// With the names of the keys, as the objects have them.
    Map(Vec<Str>),
}

impl ListKind {
    /// What Go calls such lists, in messages.
    pub fn go_type(&self) -> &'static str {
        match self {
            ListKind::Atomic => "*common.unstructuredList",
            ListKind::Set => "*common.unstructuredSetList",
            ListKind::Map(_) => "*common.unstructuredMapList",
        }
    }
}

/// Keys are strings.
#[derive(Debug, Clone)]
pub struct Map {
    pub value: Declared,
    /// The longest key, in bytes; 0 where that is not known.
    pub max_key: u64,
    /// Whether estimates know the size of `map.name`, and not of `map["name"]` alone.
    pub sized_by_name: bool,
}

/// An object type.
#[derive(Debug)]
pub struct Object {
    pub name: Str,
    /// Sorted by `name`.
    pub fields: Vec<Field>,
    /// Any field may be asked for, and is dyn: the objects that mutations make.
    pub open: bool,
    /// Whether it may have fields that are not declared (`x-kubernetes-preserve-unknown-fields`); rules cannot see them.
    pub preserve_unknown: bool,
    /// Fields that have no type to the checker, since their schema has none. Who asks for them by way of `dyn` finds them.
    pub hidden: Vec<Field>,
}

#[derive(Debug, Clone)]
pub struct Field {
    /// As expressions write it, escaped.
    pub name: Str,
    /// As the object has it.
    pub property: Str,
    pub declared: Declared,
    pub required: bool,
}

impl Object {
    /// The field as expressions name it.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by(|f| f.name.as_str().cmp(name)).ok()?;
        Some(&self.fields[at])
    }

    /// The field as an expression that runs names it: words that need an escape can be written without it.
    pub fn field_named(&self, name: &str) -> Option<&Field> {
        self.field(name).or_else(|| self.member(&crate::escape::unescape(name)?))
    }

    /// The field as the object names it.
    pub fn property(&self, name: &str) -> Option<&Field> {
        // Only names that need escaping differ from their property.
        self.field(name).filter(|f| f.property == name).or_else(|| self.fields.iter().find(|f| f.property == name))
    }

    /// As [`Object::property`], the hidden ones too.
    pub fn member(&self, name: &str) -> Option<&Field> {
        self.property(name).or_else(|| self.hidden.iter().find(|f| f.property == name))
    }
}

impl Declared {
    pub fn dynamic() -> Declared {
        Declared { cel: Type::Dyn, kind: MemberKind::Dyn, nullable: true, min_size: 1, max_elements: 0 }
    }

    /// Any JSON, of this type to the checker, in which names may be written escaped.
    pub fn escaped(cel: Type) -> Declared {
        Declared { cel, kind: MemberKind::Escaped, ..Declared::dynamic() }
    }

    pub fn object(object: Arc<Object>, min_size: u64) -> Declared {
        Declared {
            cel: Type::Object(object.clone()),
            kind: MemberKind::Object(object),
            nullable: false,
            min_size,
            max_elements: 0,
        }
    }

    /// What the elements of a list, or the values of a map, are.
    pub fn element(&self) -> Option<&Declared> {
        match &self.kind {
            MemberKind::List(list) => Some(&list.element),
            MemberKind::Map(map) => Some(&map.value),
            _ => None,
        }
    }

    /// What a property of an object is, by the name that the object has for it.
    pub fn property(&self, name: &str) -> Option<&Declared> {
        match &self.kind {
            MemberKind::Object(object) => object.property(name).map(|field| &field.declared),
            _ => None,
        }
    }

    /// How often such a value can be in one request, at most.
    pub fn cardinality(&self) -> u64 {
        MAX_REQUEST / (self.min_size + 1)
    }

    pub fn list(element: Declared, kind: ListKind, max_elements: u64) -> Declared {
        let cel = Type::list(element.cel.clone());
        let list = Arc::new(List { element, kind });
        Declared { cel, kind: MemberKind::List(list), nullable: false, min_size: 2, max_elements }
    }

    pub fn map(value: Declared, max_elements: u64) -> Declared {
        Declared::map_of(Map { value, max_key: 0, sized_by_name: false }, max_elements)
    }

    pub fn map_of(map: Map, max_elements: u64) -> Declared {
        let cel = Type::map(Type::String, map.value.cel.clone());
        Declared { cel, kind: MemberKind::Map(Arc::new(map)), nullable: false, min_size: 2, max_elements }
    }
}
