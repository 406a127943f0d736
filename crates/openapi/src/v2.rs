//! The document of version 2: all subjects in one.

use super::foreign::{Joined, Own};
use super::model::{self, Body, Content, Operation, Parameter, PathItem, Paths, Place};
use super::parameters::Parameters;
use super::published::{Published, Source};
use super::schemas::{Kinds, Schemas, gvk, reachable};
use super::v3::{bearer_token, info, members, piece};
use super::words::Words;
use super::{Dialect, Foreign, Library, Subject};
use base64::Engine as _;
use kubelith_codec::json;
use kubelith_meta::{Map, Str, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::sync::Arc;

pub struct Document<'a> {
    library: &'a Library,
    words: &'a Words,
    kinds: Kinds,
    paths: Paths,
    written: HashMap<Str, Source>,
    models: BTreeSet<Str>,
    shared: Shared,
    joined: Joined,
}

impl Own for Document<'_> {
    fn has_path(&self, path: &str) -> bool {
        self.paths.contains_key(path)
    }

    fn definition(&self, name: &str) -> Option<Value> {
        let name = self.models.get(name)?;
        let schemas = Schemas {
            table: &self.library.catalog.table,
            words: self.words,
            kinds: &self.kinds,
            dialect: Dialect::V2,
            enums: self.library.enums,
        };
        self.written.get(name).map(|s| s.write(Dialect::V2, self.words)).or_else(|| schemas.named(name))
    }

    fn parameter(&self, name: &str) -> Option<Value> {
        self.shared.by_name.get(name).cloned()
    }
}

/// Two sorted sequences as one.
fn merged<'m>(
    ours: impl Iterator<Item = (&'m str, Value)>,
    theirs: &'m BTreeMap<String, Value>,
) -> impl Iterator<Item = (&'m str, Value)> {
    let mut ours = ours.peekable();
    let mut theirs = theirs.iter().map(|(name, value)| (name.as_str(), value)).peekable();
    std::iter::from_fn(move || match (ours.peek(), theirs.peek()) {
        (Some((own, _)), Some((other, _))) if own > other => theirs.next().map(|(name, value)| (name, value.clone())),
        (None, _) => theirs.next().map(|(name, value)| (name, value.clone())),
        _ => ours.next(),
    })
}

impl<'a> Document<'a> {
    pub fn new(subjects: &[Arc<Subject>], library: &'a Library, words: &'a Words) -> Document<'a> {
        let table = &library.catalog.table;
        let parameters = Parameters { table, words };
        let mut paths = Paths::new();
        let mut written = HashMap::new();
        for subject in &beside_built_in(subjects, &parameters) {
            paths.append(&mut subject.paths(&parameters));
            if let Subject::Version(_, published) = subject.as_ref() {
                written.extend(super::published::written(published));
            }
        }
        let models = reachable(model::models(&paths), table, &written);
        let shared = Shared::collect(&paths);
        Document {
            library,
            words,
            kinds: library.kinds(None),
            paths,
            written,
            models,
            shared,
            joined: Joined::default(),
        }
    }

    /// Adds what other servers serve.
    pub fn with(mut self, foreign: &[Arc<Foreign>]) -> Document<'a> {
        self.joined = Joined::new(foreign, &self);
        self
    }

    pub fn info(&self) -> Value {
        info(self.library)
    }

    pub fn paths(&self) -> impl Iterator<Item = (&str, Value)> {
        let ours = self.paths.iter().map(|(path, item)| (path.as_str(), self.path_item(item)));
        merged(ours, &self.joined.paths)
    }

    pub fn definitions(&self) -> impl Iterator<Item = (&str, Value)> {
        let table = &self.library.catalog.table;
        let schemas =
            Schemas { table, words: self.words, kinds: &self.kinds, dialect: Dialect::V2, enums: self.library.enums };
        let ours = self.models.iter().filter_map(move |name| {
            let own = self.written.get(name).map(|source| source.write(Dialect::V2, self.words));
            let mut schema = own.or_else(|| schemas.named(name))?;
            if let Some(more) = self.joined.kinds.get(name.as_str()) {
                let known = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array).unwrap_or(&[]);
                let all = known.iter().chain(more).cloned().collect();
                schema.set_at(&["x-kubernetes-group-version-kind"], Value::Array(all));
            }
            Some((name.as_str(), schema))
        });
        merged(ours, &self.joined.definitions)
    }

    /// The parameters that paths refer to.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, Value)> {
        let ours = self.shared.by_name.iter().map(|(name, parameter)| (name.as_str(), parameter.clone()));
        merged(ours, &self.joined.parameters)
    }

    pub fn security_definitions() -> Value {
        Value::from([("BearerToken", bearer_token())])
    }

    pub fn security() -> Value {
        Value::Array(vec![Value::from([("BearerToken", Value::Array(Vec::new()))])])
    }

    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut buffer = Vec::new();
        write!(out, "{{\"swagger\":\"2.0\",\"info\":")?;
        piece(out, &mut buffer, &self.info())?;
        write!(out, ",\"paths\":")?;
        members(out, &mut buffer, self.paths())?;
        write!(out, ",\"definitions\":")?;
        members(out, &mut buffer, self.definitions())?;
        write!(out, ",\"parameters\":")?;
        members(out, &mut buffer, self.parameters())?;
        write!(out, ",\"securityDefinitions\":")?;
        piece(out, &mut buffer, &Document::security_definitions())?;
        write!(out, ",\"security\":")?;
        piece(out, &mut buffer, &Document::security())?;
        write!(out, "}}")
    }

    fn path_item(&self, item: &PathItem) -> Value {
        let mut out: Map = item.operations.iter().map(|(m, o)| (m.name(), self.operation(o))).collect();
        if !item.parameters.is_empty() {
            let all = item.parameters.iter().map(|p| self.shared.refer(parameter(p)));
            out.insert("parameters", Value::Array(all.collect()));
        }
        Value::Object(out)
    }

    fn operation(&self, operation: &Operation) -> Value {
        let words = |list: &[&str]| Value::Array(list.iter().map(|w| Value::from(*w)).collect());
        let mut out = Map::new();
        out.insert("description", operation.description.as_str());
        out.insert("operationId", operation.id.as_str());
        out.insert("schemes", words(&["https"]));
        out.insert("tags", words(&[operation.tag.as_str()]));
        if !operation.consumes.is_empty() {
            out.insert("consumes", words(&operation.consumes));
        }
        out.insert("produces", words(&operation.produces));
        let parameters: Vec<Value> = parameters(operation).map(|p| self.shared.refer(p)).collect();
        if !parameters.is_empty() {
            out.insert("parameters", Value::Array(parameters));
        }
        let responses = operation.responses.iter().map(|answer| {
            let mut response = Map::from_iter([("description", answer.description)]);
            if let Some(content) = &answer.content {
                response.insert("schema", schema(content));
            }
            (answer.code.to_string(), Value::Object(response))
        });
        out.insert("responses", Value::Object(responses.collect()));
        if let Some((action, kind)) = &operation.action {
            out.insert("x-kubernetes-action", *action);
            out.insert("x-kubernetes-group-version-kind", gvk(kind));
        }
        Value::Object(out)
    }
}

/// The subjects, with other names for those types of custom resources that have the names of built-in ones.
fn beside_built_in<'s>(subjects: &'s [Arc<Subject>], parameters: &Parameters<'_>) -> Vec<Cow<'s, Subject>> {
    let suspicious = |subject: &Subject| match subject {
        Subject::Version(_, published) => {
            published.iter().filter(|resource| resource.written.is_some()).any(|resource| {
                [resource.model(), resource.list_model()].iter().any(|name| parameters.table.find(name).is_some())
            })
        }
        _ => false,
    };
    // Nearly always: nobody names a group so by accident.
    if !subjects.iter().any(|subject| suspicious(subject)) {
        return subjects.iter().map(|subject| Cow::Borrowed(&**subject)).collect();
    }
    let without_custom = |subject: &Subject| match subject {
        Subject::Version(gv, published) => {
            let own = published.iter().filter(|resource| resource.written.is_none()).cloned();
            Subject::Version(gv.clone(), own.collect())
        }
        other => other.clone(),
    };
    let built_in: Paths = subjects.iter().flat_map(|subject| without_custom(subject).paths(parameters)).collect();
    let taken = reachable(model::models(&built_in), parameters.table, &HashMap::new());
    let renamed = |subject: &'s Arc<Subject>| match subject.as_ref() {
        Subject::Version(gv, published) if suspicious(subject) => {
            let beside = |resource: &Published| match resource.written {
                Some(_) => resource.beside(&taken),
                None => resource.clone(),
            };
            Cow::Owned(Subject::Version(gv.clone(), published.iter().map(beside).collect()))
        }
        other => Cow::Borrowed(other),
    };
    subjects.iter().map(renamed).collect()
}

/// Parameters that many operations take, each written once.
struct Shared {
    by_name: BTreeMap<String, Value>,
    names: HashMap<String, String>,
}

impl Shared {
    fn collect(paths: &Paths) -> Shared {
        let mut all = BTreeMap::new();
        for item in paths.values() {
            let own = item.operations.values().flat_map(parameters);
            for parameter in own.chain(item.parameters.iter().map(parameter)).filter(is_shared) {
                all.entry(json::to_string(&parameter)).or_insert(parameter);
            }
        }
        let mut shared = Shared { by_name: BTreeMap::new(), names: HashMap::new() };
        for (text, parameter) in all {
            let name = format!("{}-{}", parameter.str_at(&["name"]), digest(&text));
            shared.names.insert(text, name.clone());
            shared.by_name.insert(name, parameter);
        }
        shared
    }

    fn refer(&self, parameter: Value) -> Value {
        if !is_shared(&parameter) {
            return parameter;
        }
        match self.names.get(&json::to_string(&parameter)) {
            Some(name) => Value::from([("$ref", format!("#/parameters/{name}"))]),
            None => parameter,
        }
    }
}

/// Names and bodies differ from kind to kind; and kubectl looks for two of the others where they stand, to see
/// whether the server knows them.
fn is_shared(parameter: &Value) -> bool {
    match parameter.str_at(&["name"]) {
        "name" | "fieldValidation" | "dryRun" => false,
        "body" => parameter.str_at(&["schema", "$ref"]).starts_with("#/definitions/io.k8s.apimachinery"),
        _ => true,
    }
}

/// Eight characters that tell parameters of one name from each other: FNV-1, cut to six bytes.
fn digest(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| h.wrapping_mul(0x100_0000_01b3) ^ u64::from(b));
    base64::engine::general_purpose::URL_SAFE.encode(&hash.to_be_bytes()[..6])
}

/// Those of an operation, sorted by name; the body is one of them.
fn parameters(operation: &Operation) -> impl Iterator<Item = Value> {
    let body = operation.body.as_ref().map(body);
    let before = operation.parameters.iter().filter(|p| p.name.as_str() < "body").map(parameter);
    let after = operation.parameters.iter().filter(|p| p.name.as_str() >= "body").map(parameter);
    before.chain(body).chain(after)
}

fn body(body: &Body) -> Value {
    let mut out = Map::from_iter([("name", "body"), ("in", "body")]);
    if body.required {
        out.insert("required", true);
    }
    out.insert("schema", schema(&body.content));
    Value::Object(out)
}

fn parameter(parameter: &Parameter) -> Value {
    let mut out = Map::from_iter([
        ("name", Value::String(parameter.name.clone())),
        ("in", parameter.place.name().into()),
        ("type", parameter.kind.into()),
        ("uniqueItems", Value::Bool(true)),
    ]);
    if !parameter.description.is_empty() {
        out.insert("description", parameter.description.as_str());
    }
    if parameter.place == Place::Path {
        out.insert("required", true);
    }
    Value::Object(out)
}

fn schema(content: &Content) -> Value {
    match content {
        Content::Text => Value::from([("type", "string")]),
        Content::Model(name) => Value::from([("$ref", Dialect::V2.reference(name))]),
    }
}
