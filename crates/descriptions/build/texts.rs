//! Reads the descriptions out of the sources of `k8s-openapi`. They are made by a program, one type to a file, each with a
//! function that returns its schema: the name of the type, its description, and its fields with theirs, always indented alike.
//!
//! ```text
//!         "io.k8s.api.core.v1.ConfigMap".into()
//!             "description": "ConfigMap holds …",
//!                 "data": {
//!                     "description": "Data contains …",
//!                 "metadata": ({
//!                     schema_obj.ensure_object().insert("description".into(), "Standard …".into());
//! ```

use std::collections::BTreeMap;
use std::path::Path;

/// Types by OpenAPI name.
pub type Types = BTreeMap<String, Type>;

#[derive(Debug, Default)]
pub struct Type {
    pub description: Option<String>,
    /// Descriptions by the fields' JSON names.
    pub fields: BTreeMap<String, Option<String>>,
}

/// The types in a folder, and in those below it.
pub fn read(folder: &Path, types: &mut Types) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, types)?;
        } else if let Some((_, schema)) = std::fs::read_to_string(&path)?.split_once("fn schema_name()") {
            let (name, found) = of_schema(schema);
            types.insert(name, found);
        }
    }
    Ok(())
}

fn of_schema(schema: &str) -> (String, Type) {
    let (mut name, mut found, mut last) = (None, Type::default(), None);
    for line in schema.lines() {
        let text = line.trim_start();
        match line.len() - text.len() {
            8 if name.is_none() => name = between(text, "\"", "\".into()"),
            12 if found.description.is_none() => found.description = between(text, DESCRIPTION, "\","),
            16 => {
                let field = text.strip_prefix('"').and_then(|rest| rest.split_once("\": "));
                if let Some((field, _)) = field {
                    found.fields.insert(field.to_owned(), None);
                    last = Some(field.to_owned());
                }
            }
            20 => {
                let described = between(text, DESCRIPTION, "\",").or_else(|| between(text, INSERTED, "\".into());"));
                if let (Some(description), Some(field)) = (described, &last) {
                    found.fields.insert(field.clone(), Some(description));
                }
            }
            _ => {}
        }
    }
    (name.expect("a schema has a name"), found)
}

const DESCRIPTION: &str = r#""description": ""#;
const INSERTED: &str = r#"schema_obj.ensure_object().insert("description".into(), ""#;

/// What a literal says that stands between these.
fn between(line: &str, before: &str, after: &str) -> Option<String> {
    let literal = line.strip_prefix(before)?.strip_suffix(after)?;
    let mut text = String::with_capacity(literal.len());
    let mut characters = literal.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(same @ ('"' | '\\' | '\'')) => same,
                other => panic!("an escape that is not known, {other:?}: {line}"),
            },
            other => other,
        });
    }
    Some(text)
}
