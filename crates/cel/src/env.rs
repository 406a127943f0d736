//! What an expression is compiled against: libraries, variables, types.
//!
//! Environments are cheap: the libraries' functions are put together once ([`Functions`]) and shared.

use crate::ast::{Checked, Literal, Reference};
use crate::check::FieldType;
use crate::decl::Functions;
use crate::declared::{Declared, MemberKind, Object};
use crate::error::Issues;
use crate::libraries::Library;
use crate::parse::Macros;
use crate::types::Type;
use crate::{check, parse, wellknown};
use kubelith_meta::Str;
use std::sync::Arc;

/// The libraries that Kubernetes' expressions have, in the order in which their overloads are tried, and the minor release
/// that brought them. (Those of before 1.33 are told, too: no server can be asked to be compatible with them.)
const BASE: [(Library, u32); 16] = [
    (Library::Standard, 0),
    (Library::Urls, 0),
    (Library::Regex, 0),
    (Library::Lists, 0),
    (Library::Authz, 27),
    (Library::Optional, 28),
    (Library::Quantity, 28),
    (Library::Strings, 29),
    (Library::Sets, 29),
    (Library::Ip, 30),
    (Library::Cidr, 30),
    (Library::Format, 31),
    (Library::AuthzSelectors, 31),
    (Library::TwoVariables, 32),
    (Library::Semver, 33),
    (Library::ListsExt, 34),
];

/// Which libraries expressions may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Libraries {
    /// Those that every server from this minor release on has.
    pub since: u32,
    /// Whether authorization checks can have selectors (`AuthorizeWithSelectors`).
    pub authz_selectors: bool,
}

impl Libraries {
    /// For expressions that are stored or configured already: all there are.
    pub const ALL: Libraries = Libraries { since: u32::MAX, authz_selectors: true };

    pub fn iter(self) -> impl Iterator<Item = Library> {
        let has = move |(library, since): &(Library, u32)| match library {
            // Its gate alone decides, whatever the release.
            Library::AuthzSelectors => self.authz_selectors,
            _ => *since <= self.since,
        };
        BASE.into_iter().filter(has).map(|(library, _)| library)
    }
}

/// What expressions are compiled against. Made from a base by adding variables; a copy shares the libraries.
#[derive(Debug, Clone)]
pub struct Env {
    functions: Arc<Functions>,
    macros: Macros,
    /// In the order of their declaration, which is the order of an activation's slots.
    variables: Vec<Variable>,
    /// Types that expressions can name. If there are none, neither are the short names of times.
    types: Option<Arc<Vec<Declared>>>,
    mutation: Mutation,
}

#[derive(Debug, Clone)]
pub struct Variable {
    pub name: Str,
    pub cel: Type,
    /// How its value is to be read, if it has a schema.
    pub declared: Option<Declared>,
}

/// Whether `Object`, `Object.spec` and the like, and `JSONPatch` are types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutation {
    Types,
    None,
}

impl Env {
    /// The functions of all expressions of Kubernetes, and no variables.
    pub fn base() -> Env {
        Env::with(Libraries::ALL.iter())
    }

    /// The functions and macros of some libraries, and no variables.
    pub fn with(libraries: impl IntoIterator<Item = Library>) -> Env {
        let mut macros = Macros { sort_by: false, bind: false };
        let functions = Functions::new(libraries.into_iter().map(|library| {
            macros.sort_by |= library == Library::ListsExt;
            macros.bind |= library == Library::Bindings;
            library.functions()
        }));
        Env { functions, macros, variables: Vec::new(), types: None, mutation: Mutation::None }
    }

    #[must_use]
    pub fn variable(mut self, name: &str, cel: Type) -> Env {
        self.variables.push(Variable { name: name.into(), cel, declared: None });
        self
    }

    /// A variable with a schema.
    #[must_use]
    pub fn declare(mut self, name: &str, declared: Declared) -> Env {
        let cel = declared.cel.clone();
        self.variables.push(Variable { name: name.into(), cel, declared: Some(declared) });
        self
    }

    /// A variable with a schema that may be absent.
    #[must_use]
    pub fn declare_optional(mut self, name: &str, declared: Declared) -> Env {
        let cel = Type::optional(declared.cel.clone());
        self.variables.push(Variable { name: name.into(), cel, declared: Some(declared) });
        self
    }

    /// Types that expressions can name, with those in their fields.
    #[must_use]
    pub fn types(mut self, types: Vec<Declared>) -> Env {
        self.types = Some(Arc::new(types));
        self
    }

    /// The types of mutations.
    #[must_use]
    pub fn mutation(mut self) -> Env {
        self.mutation = Mutation::Types;
        self
    }

    /// The same variables with the functions and macros of another environment.
    #[must_use]
    pub fn functions_of(mut self, other: &Env) -> Env {
        self.functions = other.functions.clone();
        self.macros = other.macros;
        self
    }

    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    pub fn functions(&self) -> &Arc<Functions> {
        &self.functions
    }

    /// Parses and checks an expression.
    pub fn compile(&self, text: &str) -> Result<Checked, Issues> {
        check::check(self, text, parse::parse(text, self.macros)?)
    }

    /// What a name means.
    pub(crate) fn lookup(&self, name: &str) -> Option<(Type, Reference)> {
        if let Some(variable) = self.variables.iter().find(|v| v.name == name) {
            return Some((variable.cel.clone(), Reference::Variable));
        }
        if let Some(of) = standard_type(name).or_else(|| self.find_type(name)) {
            return Some((Type::type_of(of), Reference::Type));
        }
        if name == "type" {
            return Some((Type::type_of(Type::Type(None)), Reference::Type));
        }
        let value = wellknown::constant(name)?;
        Some((Type::Int, Reference::Constant(Literal::Int(value))))
    }

    /// Whether names may begin with this and a dot.
    pub(crate) fn is_namespace(&self, name: &str) -> bool {
        let prefix = |full: &str| full.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        matches!(name, "google" | "net")
            || (self.mutation == Mutation::Types && name == "Object")
            || self.variables.iter().any(|v| prefix(&v.name))
            || self.roots().iter().any(|t| match &t.kind {
                MemberKind::Object(object) => object.name == name || prefix(&object.name),
                _ => false,
            })
    }

    fn roots(&self) -> &[Declared] {
        self.types.as_deref().map_or(&[], |types| &types[..])
    }

    /// A type by its full name.
    pub(crate) fn find_type(&self, name: &str) -> Option<Type> {
        if self.mutation == Mutation::Types {
            if name == "JSONPatch" {
                return Some(Type::Object(crate::admission::json_patch()));
            }
            if name == "Object" || name.starts_with("Object.") {
                return Some(Type::Object(crate::admission::apply_object(name)));
            }
        }
        if self.types.is_some() {
            match name {
                "duration" => return Some(Type::Duration),
                "timestamp" => return Some(Type::Timestamp),
                _ => {}
            }
        }
        self.roots().iter().find_map(|root| named(root, name)).or_else(|| wellknown::message(name))
    }

    /// The type of a field of an object.
    pub(crate) fn field_type(&self, of: &Type, field: &str) -> FieldType {
        match of {
            Type::Object(object) => match object.field(field) {
                Some(found) => FieldType::Found(found.declared.cel.clone()),
                None if object.open => FieldType::Found(Type::Dyn),
                // Words that cannot be names of variables can be of fields, without their escape.
                None if parse::is_reserved(field) => match object.field(&format!("__{field}__")) {
                    Some(found) => FieldType::Found(found.declared.cel.clone()),
                    None => FieldType::NoField,
                },
                None => FieldType::NoField,
            },
            Type::Named(name) if wellknown::has(name) => match wellknown::field(of, name, field) {
                Some(found) => FieldType::Found(found),
                None => FieldType::NoField,
            },
            _ => FieldType::NoType,
        }
    }

    /// The type of a field that a literal sets.
    pub(crate) fn message_field(&self, of: &Type, name: &str, field: &str) -> FieldType {
        match of {
            Type::Object(_) => self.field_type(of, field),
            // What makes no message is not looked into.
            Type::Error => match self.find_type(name) {
                Some(found @ Type::Object(_)) => self.field_type(&found, field),
                _ => FieldType::NoType,
            },
            _ => match wellknown::field(of, name, field) {
                Some(found) => FieldType::Found(found),
                None => FieldType::NoField,
            },
        }
    }
}

/// The names of types that every environment has.
fn standard_type(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "google.protobuf.Duration" => Type::Duration,
        "int" => Type::Int,
        "list" => Type::list(Type::Param("A")),
        "map" => Type::map(Type::Param("A"), Type::Param("B")),
        "null_type" => Type::Null,
        "string" => Type::String,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "uint" => Type::Uint,
        "optional_type" => Type::Named("optional_type"),
        "net.IP" => Type::Named("net.IP"),
        "net.CIDR" => Type::Named("net.CIDR"),
        _ => return None,
    })
}

/// The type of this name in a declared type: objects by their name, lists and maps by the path to them.
fn named(declared: &Declared, name: &str) -> Option<Type> {
    fn walk(declared: &Declared, path: &str, name: &str) -> Option<Type> {
        match &declared.kind {
            MemberKind::Object(object) if object.name == name => Some(declared.cel.clone()),
            MemberKind::Object(object) => fields(object, path, name),
            MemberKind::List(list) => {
                let inside = || walk(&list.element, &format!("{path}.@idx"), name);
                if path == name { Some(declared.cel.clone()) } else { inside() }
            }
            MemberKind::Map(map) => {
                let inside = || walk(&map.value, &format!("{path}.@elem"), name);
                if path == name { Some(declared.cel.clone()) } else { inside() }
            }
            _ => None,
        }
    }
    fn fields(object: &Object, path: &str, name: &str) -> Option<Type> {
        object.fields.iter().find_map(|f| walk(&f.declared, &format!("{path}.{}", f.name), name))
    }
    let root = match &declared.kind {
        MemberKind::Object(object) => object.name.as_str(),
        _ => return None,
    };
    let namespace = root.split('.').next().unwrap_or(root);
    // Names of other namespaces are not looked for.
    let rest = name.strip_prefix(namespace)?;
    if rest.is_empty() || rest.starts_with('.') { walk(declared, root, name) } else { None }
}
