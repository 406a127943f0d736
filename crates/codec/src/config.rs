//! Configuration files: documents with a kind and a shape that is written down beside the code that reads them. Most are
//! read strictly, with the words of kube-apiserver for what is wrong.

use crate::error::TypeError;
use crate::yaml;
use kubelith_meta::Value;
use kubelith_meta::text::json_kind;

/// What a field may hold. A field that is absent or null is right everywhere.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Text,
    Bool,
    Int,
    /// Anything; somebody else looks at it.
    Any,
    List(&'static Item),
    Object(&'static [Field]),
}

/// What a list consists of, with Go's name of the list's type.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    pub shape: Shape,
    pub list: &'static str,
}

pub type Field = (&'static str, Shape);

pub const TEXTS: Shape = Shape::List(&Item { shape: Shape::Text, list: "[]string" });

/// A kind of document.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    pub group: &'static str,
    pub versions: &'static [&'static str],
    pub kind: &'static str,
    /// Beside `apiVersion` and `kind`.
    pub fields: &'static [Field],
    pub unknown: Unknown,
    /// How kube-apiserver calls those who know the kind, where it tells.
    pub scheme: Option<&'static str>,
}

/// What becomes of fields that nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    Refused,
    PassedOver,
}

/// Why a document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Malformed {
    /// It does not say what it is, or is something else.
    Kind(String),
    Other(String),
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Malformed::Kind(why) | Malformed::Other(why)) = self;
        f.write_str(why)
    }
}

impl Format {
    /// The document, all of whose fields are known and of the right type.
    pub fn read(&self, text: &[u8]) -> Result<Value, Malformed> {
        let document = yaml::read(text).map_err(|e| Malformed::Other(e.to_string()))?;
        self.check_kind(&document.value, text)?;
        let mut walk = Walk { within: self.kind, problems: document.duplicates };
        walk.fields(&document.value, self.fields, &["apiVersion", "kind"], "").map_err(Malformed::Other)?;
        match walk.problems.is_empty() || self.unknown == Unknown::PassedOver {
            true => Ok(document.value),
            false => Err(Malformed::Other(format!("strict decoding error: {}", walk.problems.join(", ")))),
        }
    }

    fn check_kind(&self, value: &Value, text: &[u8]) -> Result<(), Malformed> {
        if !matches!(value, Value::Object(_) | Value::Null) {
            return Err(Malformed::Kind(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ \
                 APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                json_kind(value)
            )));
        }
        let (version, kind) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
        let missing = |what: &str| {
            let text = String::from_utf8_lossy(text);
            Err(Malformed::Kind(format!("Object '{what}' is missing in '{text}'")))
        };
        if kind.is_empty() {
            return missing("Kind");
        }
        if version.is_empty() {
            return missing("apiVersion");
        }
        let known = version.split_once('/').is_some_and(|(g, v)| g == self.group && self.versions.contains(&v));
        match known && kind == self.kind {
            true => Ok(()),
            false => {
                let known = self.scheme.map(|scheme| format!(" in scheme \"{scheme}\"")).unwrap_or_default();
                Err(Malformed::Kind(format!("no kind \"{kind}\" is registered for version \"{version}\"{known}")))
            }
        }
    }
}

struct Walk {
    /// Go's name of the type that is walked through.
    within: &'static str,
    /// Fields that nobody knows, and keys that are there twice.
    problems: Vec<String>,
}

impl Walk {
    fn fields(&mut self, value: &Value, fields: &[Field], also: &[&str], path: &str) -> Result<(), String> {
        let Some(map) = value.as_object() else { return Ok(()) };
        for (key, value) in map.iter() {
            let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            match fields.iter().find(|(name, _)| *name == key) {
                Some((_, shape)) => self.value(value, *shape, &path)?,
                None if also.contains(&key) => {}
                None => self.problems.push(format!("unknown field \"{path}\"")),
            }
        }
        Ok(())
    }

    fn value(&mut self, value: &Value, shape: Shape, path: &str) -> Result<(), String> {
        let expected = match (shape, value) {
            (_, Value::Null)
            | (Shape::Any, _)
            | (Shape::Text, Value::String(_))
            | (Shape::Bool, Value::Bool(_))
            | (Shape::Int, Value::Int(_)) => return Ok(()),
            (Shape::List(item), Value::Array(items)) => {
                let outer = std::mem::replace(&mut self.within, element(item.list));
                let mut items = items.iter().enumerate();
                items.try_for_each(|(i, value)| self.value(value, item.shape, &format!("{path}[{i}]")))?;
                self.within = outer;
                return Ok(());
            }
            (Shape::Object(fields), Value::Object(_)) => return self.fields(value, fields, &[], path),
            (Shape::Text, _) => "string",
            (Shape::Bool, _) => "bool",
            (Shape::Int, _) => "int32",
            (Shape::List(item), _) => item.list,
            (Shape::Object(_), _) => "struct",
        };
        let found = match value {
            Value::Bool(_) => "bool",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            _ => "number",
        };
        let error = TypeError {
            found: found.to_owned(),
            expected: expected.to_owned(),
            in_struct: self.within.to_owned(),
            field: without_places(path),
        };
        Err(error.to_string())
    }
}

/// What a list of this type consists of: `[]v1.Part` of `Part`.
fn element(list: &'static str) -> &'static str {
    list.rsplit(['.', ']']).next().unwrap_or(list)
}

/// Go's decoder names fields without the place in the list that they are in.
fn without_places(path: &str) -> String {
    path.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format {
        group: "example.io",
        versions: &["v1", "v2"],
        kind: "Settings",
        fields: &[
            ("name", Shape::Text),
            ("names", TEXTS),
            ("any", Shape::Any),
            ("parts", Shape::List(&Item { shape: Shape::Object(&[("set", Shape::Bool)]), list: "[]v1.Part" })),
        ],
        unknown: Unknown::Refused,
        scheme: None,
    };

    #[test]
    fn documents() {
        let head = "apiVersion: example.io/v2\nkind: Settings\n";
        for (text, want) in [
            (format!("{head}name: x\nnames: [a]\nany: {{x: 1}}\nparts: [{{set: true}}]\n"), None),
            (format!("{head}name: null\n"), None),
            (
                format!("{head}foo: 1\nparts: [{{set: true}}, {{odd: 1}}]\n"),
                Some("strict decoding error: unknown field \"foo\", unknown field \"parts[1].odd\""),
            ),
            (
                format!("{head}parts: {{}}\n"),
                Some("json: cannot unmarshal object into Go struct field Settings.parts of type []v1.Part"),
            ),
            (
                format!("{head}parts: [{{set: 1}}]\n"),
                Some("json: cannot unmarshal number into Go struct field Part.parts.set of type bool"),
            ),
            (
                "text".into(),
                Some(
                    "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { \
                     APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
                ),
            ),
            ("kind: Settings\n".into(), Some("Object 'apiVersion' is missing in 'kind: Settings\n'")),
            ("{}".into(), Some("Object 'Kind' is missing in '{}'")),
            (
                "apiVersion: example.io/v3\nkind: Settings\n".into(),
                Some("no kind \"Settings\" is registered for version \"example.io/v3\""),
            ),
        ] {
            assert_eq!(FORMAT.read(text.as_bytes()).err().map(|e| e.to_string()).as_deref(), want, "{text}");
        }
        let lenient = Format { unknown: Unknown::PassedOver, scheme: Some("here"), ..FORMAT };
        assert!(lenient.read(format!("{head}foo: 1\n").as_bytes()).is_ok());
        let other = lenient.read(b"apiVersion: example.io/v3\nkind: Settings\n").unwrap_err().to_string();
        assert_eq!(other, "no kind \"Settings\" is registered for version \"example.io/v3\" in scheme \"here\"");
        let twice = FORMAT.read(format!("{head}name: a\nname: b\n").as_bytes()).unwrap_err().to_string();
        assert!(twice.contains("already set in map"), "{twice}");
    }
}
