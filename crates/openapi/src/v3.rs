//! Documents of version 3: one for each subject.

use super::model::{self, Body, Content, Operation, Parameter, PathItem, Paths, Place};
use super::parameters::Parameters;
use super::published::Source;
use super::schemas::{Kinds, Schemas, gvk, reachable};
use super::words::Words;
use super::{Dialect, Library, Subject};
use kubelith_codec::json;
use kubelith_meta::{Map, Str, Value};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

/// One document, ready to be written piece by piece.
pub struct Document<'a> {
    library: &'a Library,
    words: &'a Words,
    kinds: Kinds,
    paths: Paths,
    written: HashMap<Str, Source>,
    models: BTreeSet<Str>,
}

impl<'a> Document<'a> {
    pub fn new(subject: &Subject, library: &'a Library, words: &'a Words) -> Document<'a> {
        let table = &library.catalog.table;
        let paths = subject.paths(&Parameters { table, words });
        let (scope, written) = match subject {
            Subject::Version(gv, published) => (Some(gv), super::published::written(published).collect()),
            _ => (None, HashMap::new()),
        };
        let models = reachable(model::models(&paths), table, &written);
        Document { library, words, kinds: library.kinds(scope), paths, written, models }
    }

    /// Everything but paths and schemas.
    pub fn info(&self) -> Value {
        info(self.library)
    }

    pub fn security_schemes() -> Value {
        Value::from([("BearerToken", bearer_token())])
    }

    pub fn paths(&self) -> impl Iterator<Item = (&str, Value)> {
        self.paths.iter().map(|(path, item)| (path.as_str(), path_item(item)))
    }

    pub fn schemas(&self) -> impl Iterator<Item = (&str, Value)> {
        let table = &self.library.catalog.table;
        let schemas =
            Schemas { table, words: self.words, kinds: &self.kinds, dialect: Dialect::V3, enums: self.library.enums };
        self.models.iter().filter_map(move |name| {
            let schema =
                self.written.get(name).map(|s| s.write(Dialect::V3, self.words)).or_else(|| schemas.named(name))?;
            Some((name.as_str(), schema))
        })
    }

    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut buffer = Vec::new();
        write!(out, "{{\"openapi\":\"3.0.0\",\"info\":")?;
        piece(out, &mut buffer, &self.info())?;
        write!(out, ",\"paths\":")?;
        members(out, &mut buffer, self.paths())?;
        write!(out, ",\"components\":{{")?;
        if !self.models.is_empty() {
            write!(out, "\"schemas\":")?;
            members(out, &mut buffer, self.schemas())?;
            write!(out, ",")?;
        }
        write!(out, "\"securitySchemes\":")?;
        piece(out, &mut buffer, &Document::security_schemes())?;
        write!(out, "}}}}")
    }
}

pub fn info(library: &Library) -> Value {
    Value::from([("title", Value::from("Kubernetes")), ("version", Value::String(library.release.clone()))])
}

pub fn bearer_token() -> Value {
    Value::from([
        ("description", "Bearer Token authentication"),
        ("in", "header"),
        ("name", "authorization"),
        ("type", "apiKey"),
    ])
}

pub fn piece(out: &mut dyn Write, buffer: &mut Vec<u8>, value: &Value) -> io::Result<()> {
    buffer.clear();
    json::write(buffer, value);
    out.write_all(buffer)
}

/// An object whose members come one after the other.
pub fn members<'m>(
    out: &mut dyn Write,
    buffer: &mut Vec<u8>,
    members: impl Iterator<Item = (&'m str, Value)>,
) -> io::Result<()> {
    let mut separator = b'{';
    for (name, value) in members {
        buffer.clear();
        buffer.push(separator);
        json::write_string(buffer, name);
        buffer.push(b':');
        json::write(buffer, &value);
        out.write_all(buffer)?;
        separator = b',';
    }
    out.write_all(if separator == b'{' { b"{}" } else { b"}" })
}

fn path_item(item: &PathItem) -> Value {
    let mut out: Map = item.operations.iter().map(|(m, o)| (m.name(), operation(o))).collect();
    put_parameters(&mut out, &item.parameters);
    Value::Object(out)
}

fn operation(operation: &Operation) -> Value {
    let mut out = Map::new();
    out.insert("description", operation.description.as_str());
    out.insert("operationId", operation.id.as_str());
    out.insert("tags", Value::Array(vec![operation.tag.as_str().into()]));
    put_parameters(&mut out, &operation.parameters);
    if let Some(Body { content: body, required }) = &operation.body {
        let mut request = Map::from_iter([("content", content(body, &operation.consumes))]);
        if *required {
            request.insert("required", true);
        }
        out.insert("requestBody", Value::Object(request));
    }
    let responses = operation.responses.iter().map(|answer| {
        let mut response = Map::from_iter([("description", answer.description)]);
        if let Some(body) = &answer.content {
            response.insert("content", content(body, &operation.produces));
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

fn put_parameters(out: &mut Map, parameters: &BTreeSet<Parameter>) {
    if !parameters.is_empty() {
        out.insert("parameters", Value::Array(parameters.iter().map(parameter).collect()));
    }
}

fn parameter(parameter: &Parameter) -> Value {
    let schema = Value::from([("type", Value::from(parameter.kind)), ("uniqueItems", Value::Bool(true))]);
    let mut out = Map::from_iter([
        ("name", Value::String(parameter.name.clone())),
        ("in", parameter.place.name().into()),
        ("schema", schema),
    ]);
    if !parameter.description.is_empty() {
        out.insert("description", parameter.description.as_str());
    }
    if parameter.place == Place::Path {
        out.insert("required", true);
    }
    Value::Object(out)
}

fn content(content: &Content, media_types: &[&str]) -> Value {
    let schema = match content {
        Content::Text => Value::from([("type", "string")]),
        Content::Model(name) => Value::from([("$ref", Dialect::V3.reference(name))]),
    };
    let media = Value::from([("schema", schema)]);
    Value::Object(media_types.iter().map(|t| (*t, media.clone())).collect())
}
