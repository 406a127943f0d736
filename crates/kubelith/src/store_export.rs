//! The form in which `kubelith store export` writes objects: a line of JSON for each, after a line that says what the file is.
//!
//! ```text
//! {"kubelithExport":1,"revision":1234}
//! {"key":"/registry/configmaps/default/a","created":7,"revision":9,"form":"protobuf","object":{"kind":"ConfigMap",…}}
//! ```
//! An object that is stored as it is served is exported, and comes back, as protobuf. Any other that would not come back byte for
//! byte has its bytes beside it (`base64`), and these are what is imported.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kubelith_codec::object::object_json;
use kubelith_codec::{json, proto};
use kubelith_meta::{GroupVersion, Map, Value};
use kubelith_registry::served;
use kubelith_schema::TypedSchema;
use kubelith_store::embedded::{self, Entry};
use kubelith_store::{Revision, StoreError};
use kubelith_system::files;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// Of the file's form; grows when older programs could misread it.
const FORMAT: i64 = 1;
/// Longer lines are none: a value is at most 1.5 MB, and base64 of it 2 MB.
const MAX_LINE: u64 = 64 << 20;

#[derive(Debug)]
pub enum Failed {
    Store(StoreError),
    File(String),
}

impl Failed {
    pub fn text(self, explain: impl FnOnce(StoreError) -> String) -> String {
        match self {
            Failed::Store(error) => explain(error),
            Failed::File(text) => text,
        }
    }
}

/// How many objects were written.
pub fn export(folder: &Path, to: &Path) -> Result<usize, Failed> {
    let failed = |error: std::io::Error| Failed::File(format!("{}: {error}", to.display()));
    // For its owner alone: Secrets are in it.
    let file = files::private().write(true).create_new(true).open(to).map_err(failed)?;
    let outcome = write(folder, file, to);
    if outcome.is_err() {
        let _ = std::fs::remove_file(to);
    }
    outcome
}

fn write(folder: &Path, file: std::fs::File, to: &Path) -> Result<usize, Failed> {
    let failed = |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", to.display()));
    // The revision is known at the end, and stands in front.
    let mut revision = Revision::ZERO;
    let mut entries = 0;
    for pass in 0..2 {
        let mut out = BufWriter::new(&file);
        if pass == 1 {
            writeln!(out, "{{\"kubelithExport\":{FORMAT},\"revision\":{revision}}}")
                .map_err(failed)
                .map_err(Failed::Store)?;
        }
        entries = 0;
        let exported = embedded::export(folder, |entry| {
            entries += 1;
            match pass {
                0 => Ok(()),
                _ => {
                    let mut line = json::to_vec(&line_of(&entry));
                    line.push(b'\n');
                    out.write_all(&line).map_err(failed)
                }
            }
        });
        revision = exported.map_err(Failed::Store)?;
        out.flush().map_err(failed).map_err(Failed::Store)?;
    }
    file.sync_all().map_err(failed).map_err(Failed::Store)?;
    Ok(entries)
}

fn line_of(entry: &Entry) -> Value {
    let mut line = Map::new();
    line.insert("key", String::from_utf8_lossy(&entry.key).into_owned());
    line.insert("created", entry.create_revision as i64);
    line.insert("revision", entry.revision as i64);
    if entry.deadline > 0 {
        line.insert("expires", entry.deadline as i64);
    }
    let (form, object) = match decode(&entry.value) {
        Some((form, object)) => (form, Some(object)),
        None => (Form::Bytes, None),
    };
    line.insert("form", form.name());
    // JSON may have its keys in another order, and what is stored as served is the same as protobuf.
    let comes_back = form == Form::Json
        || served::is_served(&entry.value)
        || object.as_ref().is_some_and(|object| encode(form, object).is_some_and(|back| back == entry.value));
    if let Some(object) = object {
        line.insert("object", object);
    }
    if !comes_back {
        line.insert("base64", BASE64_STANDARD.encode(&entry.value));
    }
    Value::Object(line)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Protobuf,
    Json,
    /// Encrypted, or nothing that we know.
    Bytes,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Protobuf => "protobuf",
            Form::Json => "json",
            Form::Bytes => "bytes",
        }
    }
}

fn schema(api_version: &str, kind: &str) -> Option<TypedSchema> {
    kubelith_catalog::builtin().kind_schema(&GroupVersion::parse(api_version)?.with_kind(kind))
}

fn decode(stored: &[u8]) -> Option<(Form, Value)> {
    if stored.starts_with(proto::PREFIX) {
        let meta = proto::Envelope::read(stored).ok()?.type_meta;
        let schema = schema(&meta.api_version, &meta.kind)?;
        return Some((Form::Protobuf, proto::from_slice(stored, &schema).ok()?));
    }
    if served::is_served(stored) {
        let mut object = json::parse_stored(served::json(stored).ok()?).ok()?;
        object.remove_at(&["metadata", "resourceVersion"]);
        return encode(Form::Protobuf, &object).map(|_| (Form::Protobuf, object));
    }
    stored.starts_with(b"{").then(|| json::parse(stored).ok()).flatten().map(|object| (Form::Json, object))
}

fn encode(form: Form, object: &Value) -> Option<Vec<u8>> {
    match form {
        Form::Protobuf => {
            let schema = schema(object.str_at(&["apiVersion"]), object.str_at(&["kind"]))?;
            proto::to_vec(object, &schema).ok()
        }
        // Stored JSON ends its line, as the reference's does.
        Form::Json => {
            let mut bytes = object_json(object);
            bytes.push(b'\n');
            Some(bytes)
        }
        Form::Bytes => None,
    }
}

/// The revision at which the new store begins.
pub fn import(from: &Path, folder: &Path, skip: u64) -> Result<Revision, Failed> {
    let wrong = |line: usize, why: &str| format!("{} line {line}: {why}", from.display());
    let file = std::fs::File::open(from).map_err(|error| Failed::File(format!("{}: {error}", from.display())))?;
    let mut lines = Lines(BufReader::new(file));
    let head = lines.next().and_then(Result::ok).unwrap_or_default();
    let format = head.get("kubelithExport").and_then(Value::as_i64);
    let revision = head.get("revision").and_then(Value::as_i64);
    let revision = match (format, revision) {
        (Some(FORMAT), Some(revision)) if revision > 0 => revision,
        (Some(format), _) if format > FORMAT => {
            return Err(Failed::File(wrong(1, &format!("this is of form {format}, and this program knows {FORMAT}"))));
        }
        _ => return Err(Failed::File(wrong(1, "this is no file that `kubelith store export` wrote"))),
    };
    let mut number = 1;
    let entries = lines.map(|line| {
        number += 1;
        let entry = line.map_err(|error| wrong(number, &error)).and_then(|line| {
            entry_of(&line).ok_or_else(|| wrong(number, "this is no object with a key and its revisions"))
        });
        entry.map_err(StoreError::Invalid)
    });
    embedded::import(folder, Revision(revision), skip, entries).map_err(Failed::Store)
}

fn entry_of(line: &Value) -> Option<Entry> {
    let number = |name: &str| line.get(name).and_then(Value::as_i64).and_then(|n| u64::try_from(n).ok());
    let value = match line.get("base64").and_then(Value::as_str) {
        Some(text) => BASE64_STANDARD.decode(text).ok()?,
        None => {
            let object = line.get("object")?;
            let form = if line.str_at(&["form"]) == Form::Protobuf.name() { Form::Protobuf } else { Form::Json };
            // What cannot be put as it was is stored as JSON, which is read as well.
            encode(form, object).or_else(|| encode(Form::Json, object))?
        }
    };
    let key = line.str_at(&["key"]);
    let expires = line.get("expires").map_or(Some(0), |_| number("expires"));
    Some(Entry {
        key: (!key.is_empty()).then(|| key.as_bytes().to_vec())?,
        value,
        create_revision: number("created")?,
        revision: number("revision")?,
        deadline: expires?,
    })
}

struct Lines(BufReader<std::fs::File>);

impl Iterator for Lines {
    type Item = Result<Value, String>;

    fn next(&mut self) -> Option<Result<Value, String>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut self.0).take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(_) if line.trim_ascii().is_empty() => {}
                Ok(_) => return Some(json::parse(&line).map_err(|error| error.to_string())),
                Err(error) => return Some(Err(error.to_string())),
            }
        }
    }
}
