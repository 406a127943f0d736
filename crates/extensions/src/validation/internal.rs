//! Values as errors show them: in the reference they are printed as its internal types, which have Go's names.

use super::walk::flag;
use kubelith_meta::field::BadValue;
use kubelith_meta::{Value, text};

/// What a field of an internal type holds, and with that what it shows if it is not set.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    /// As it is in JSON, or null.
    Plain,
    Number,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrArray,
    SchemaOrBool,
    Dependencies,
    Struct(Fields),
    Structs(Fields),
}

/// The fields of a struct in their order: Go's name, the name in JSON, what is there.
type Fields = &'static [(&'static str, &'static str, Form)];

static VERSION: Fields = &[
    ("Name", "name", Form::Text),
    ("Served", "served", Form::Flag),
    ("Storage", "storage", Form::Flag),
    ("Deprecated", "deprecated", Form::Flag),
    ("DeprecationWarning", "deprecationWarning", Form::Plain),
    ("Schema", "schema", Form::Struct(&[("OpenAPIV3Schema", "openAPIV3Schema", Form::Schema)])),
    ("Subresources", "subresources", Form::Struct(SUBRESOURCES)),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", Form::Structs(COLUMN)),
    ("SelectableFields", "selectableFields", Form::Structs(&[("JSONPath", "jsonPath", Form::Text)])),
];

static SUBRESOURCES: Fields = &[("Status", "status", Form::Plain), ("Scale", "scale", Form::Struct(SCALE))];

static SCALE: Fields = &[
    ("SpecReplicasPath", "specReplicasPath", Form::Text),
    ("StatusReplicasPath", "statusReplicasPath", Form::Text),
    ("LabelSelectorPath", "labelSelectorPath", Form::Plain),
];

static COLUMN: Fields = &[
    ("Name", "name", Form::Text),
    ("Type", "type", Form::Text),
    ("Format", "format", Form::Text),
    ("Description", "description", Form::Text),
    ("Priority", "priority", Form::Number),
    ("JSONPath", "JSONPath", Form::Text),
];

static SCHEMA: Fields = &[
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Plain),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Plain),
    ("Maximum", "maximum", Form::Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Plain),
    ("MinLength", "minLength", Form::Plain),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Plain),
    ("MinItems", "minItems", Form::Plain),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Plain),
    ("Enum", "enum", Form::Plain),
    ("MaxProperties", "maxProperties", Form::Plain),
    ("MinProperties", "minProperties", Form::Plain),
    ("Required", "required", Form::Plain),
    ("Items", "items", Form::SchemaOrArray),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::SchemaMap),
    ("AdditionalProperties", "additionalProperties", Form::SchemaOrBool),
    ("PatternProperties", "patternProperties", Form::SchemaMap),
    ("Dependencies", "dependencies", Form::Dependencies),
    ("AdditionalItems", "additionalItems", Form::SchemaOrBool),
    ("Definitions", "definitions", Form::SchemaMap),
    (
        "ExternalDocs",
        "externalDocs",
        Form::Struct(&[("Description", "description", Form::Text), ("URL", "url", Form::Text)]),
    ),
    ("Example", "example", Form::Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Form::Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Form::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Plain),
    ("XListType", "x-kubernetes-list-type", Form::Plain),
    ("XMapType", "x-kubernetes-map-type", Form::Plain),
    ("XValidations", "x-kubernetes-validations", Form::Structs(RULE)),
];

static RULE: Fields = &[
    ("Rule", "rule", Form::Text),
    ("Message", "message", Form::Text),
    ("MessageExpression", "messageExpression", Form::Text),
    ("Reason", "reason", Form::Plain),
    ("FieldPath", "fieldPath", Form::Text),
    ("OptionalOldSelf", "optionalOldSelf", Form::Plain),
];

/// `spec.versions`.
pub fn versions(versions: &Value) -> BadValue {
    BadValue::text(structs(VERSION, versions))
}

/// One of `x-kubernetes-validations`.
pub fn rule(rule: &Value) -> BadValue {
    BadValue::text(one(RULE, rule))
}

pub fn schema(schema: &Value) -> BadValue {
    BadValue::text(one(SCHEMA, schema))
}

fn one(fields: Fields, value: &Value) -> String {
    let shown: Vec<String> = fields
        .iter()
        .map(|(name, key, form)| {
            let shown = match form {
                Form::Text => text::json(&Value::from(value.str_at(&[key]))),
                Form::Flag => flag(value, key).to_string(),
                Form::Number => value.get(key).map_or_else(|| "0".to_owned(), text::json),
                form => value.get(key).filter(|v| !v.is_null()).map_or_else(|| "null".to_owned(), |v| member(*form, v)),
            };
            format!("\"{name}\":{shown}")
        })
        .collect();
    format!("{{{}}}", shown.join(","))
}

/// What a field shows that is set.
fn member(form: Form, value: &Value) -> String {
    match form {
        Form::Schema => one(SCHEMA, value),
        Form::Schemas => structs(SCHEMA, value),
        Form::SchemaMap => entries(value, |schema| one(SCHEMA, schema)),
        Form::SchemaOrArray => either(value, "JSONSchemas", |list| structs(SCHEMA, list)),
        Form::Dependencies => entries(value, |d| either(d, "Property", text::json)),
        Form::SchemaOrBool => match value {
            Value::Bool(allows) => format!("{{\"Allows\":{allows},\"Schema\":null}}"),
            schema => format!("{{\"Allows\":true,\"Schema\":{}}}", one(SCHEMA, schema)),
        },
        Form::Struct(fields) => one(fields, value),
        Form::Structs(fields) => structs(fields, value),
        Form::Text | Form::Flag | Form::Number | Form::Plain => text::json(value),
    }
}

/// One schema, or a list of something.
fn either(value: &Value, name: &str, list: impl Fn(&Value) -> String) -> String {
    match value {
        Value::Array(_) => format!("{{\"Schema\":null,\"{name}\":{}}}", list(value)),
        schema => format!("{{\"Schema\":{},\"{name}\":null}}", one(SCHEMA, schema)),
    }
}

fn structs(fields: Fields, value: &Value) -> String {
    let Some(list) = value.as_array() else { return "null".to_owned() };
    let shown: Vec<String> = list.iter().map(|v| one(fields, v)).collect();
    format!("[{}]", shown.join(","))
}

fn entries(value: &Value, show: impl Fn(&Value) -> String) -> String {
    let shown: Vec<String> = value
        .as_object()
        .into_iter()
        .flat_map(|map| map.iter())
        .map(|(key, value)| format!("{}:{}", text::json(&Value::from(key)), show(value)))
        .collect();
    format!("{{{}}}", shown.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    #[test]
    fn schemas_have_all_fields_of_their_type() {
        let parsed = json::parse(
            br#"{"type":"object","items":{"type":"a"},"additionalProperties":false,"dependencies":{"a":["b"]},
                 "externalDocs":{"url":"u"},"enum":["a<b"]}"#,
        );
        let BadValue::Text(shown) = schema(&parsed.unwrap()) else { panic!("it is text") };
        for part in [
            r#"{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,"#,
            r#""Enum":["a\u003cb"],"#,
            r#""Items":{"Schema":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"a","#,
            r#""XValidations":null},"JSONSchemas":null},"AllOf":null,"#,
            r#""AdditionalProperties":{"Allows":false,"Schema":null},"#,
            r#""Dependencies":{"a":{"Schema":null,"Property":["b"]}},"#,
            r#""ExternalDocs":{"Description":"","URL":"u"},"#,
        ] {
            assert!(shown.contains(part), "{part}\n{shown}");
        }
    }
}
