//! The types of what a review may answer. What is of another type is no review, and the words are those of Go's decoder.

use kubelith_codec::base64;
use kubelith_meta::Value;
use kubelith_meta::text::json_kind;

/// What a member may hold; null is right everywhere.
#[derive(Clone, Copy)]
enum Shape {
    /// With Go's name of the type.
    Text(&'static str),
    Bool,
    Int32,
    Int64,
    /// In base64.
    Bytes,
    Texts,
    TextsByName,
    One(&'static Struct),
    Many(&'static Struct),
}

struct Struct {
    /// Go's name, with its package.
    name: &'static str,
    members: &'static [(&'static str, Shape)],
}

const TEXT: Shape = Shape::Text("string");

const CAUSE: Struct = Struct {
    name: "v1.StatusCause",
    members: &[("reason", Shape::Text("v1.CauseType")), ("message", TEXT), ("field", TEXT)],
};

const DETAILS: Struct = Struct {
    name: "v1.StatusDetails",
    members: &[
        ("name", TEXT),
        ("group", TEXT),
        ("kind", TEXT),
        ("uid", Shape::Text("types.UID")),
        ("causes", Shape::Many(&CAUSE)),
        ("retryAfterSeconds", Shape::Int32),
    ],
};

const LIST_META: Struct = Struct {
    name: "v1.ListMeta",
    members: &[("selfLink", TEXT), ("resourceVersion", TEXT), ("continue", TEXT), ("remainingItemCount", Shape::Int64)],
};

const STATUS: Struct = Struct {
    name: "v1.Status",
    members: &[
        ("metadata", Shape::One(&LIST_META)),
        ("status", TEXT),
        ("message", TEXT),
        ("reason", Shape::Text("v1.StatusReason")),
        ("details", Shape::One(&DETAILS)),
        ("code", Shape::Int32),
    ],
};

const RESPONSE: Struct = Struct {
    name: "v1.AdmissionResponse",
    members: &[
        ("uid", Shape::Text("types.UID")),
        ("allowed", Shape::Bool),
        ("status", Shape::One(&STATUS)),
        ("patch", Shape::Bytes),
        ("patchType", Shape::Text("v1.PatchType")),
        ("auditAnnotations", Shape::TextsByName),
        ("warnings", Shape::Texts),
    ],
};

const REVIEW: Struct = Struct { name: "v1.AdmissionReview", members: &[("response", Shape::One(&RESPONSE))] };

/// Whether all that is looked at has its type.
pub fn check(review: &Value) -> Result<(), String> {
    members(review, &REVIEW, None)
}

/// The way to a member, which only errors show.
#[derive(Clone, Copy)]
struct Path<'a> {
    above: Option<&'a Path<'a>>,
    name: &'a str,
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(above) = self.above {
            write!(f, "{above}.")?;
        }
        f.write_str(self.name)
    }
}

fn members(object: &Value, of: &Struct, above: Option<&Path<'_>>) -> Result<(), String> {
    for (name, shape) in of.members {
        if let Some(value) = object.get(name).filter(|value| !value.is_null()) {
            member(value, *shape, of, &Path { above, name })?;
        }
    }
    Ok(())
}

fn member(value: &Value, shape: Shape, of: &Struct, path: &Path<'_>) -> Result<(), String> {
    let wrong = |found: String, wanted: &str| {
        let owner = of.name.rsplit('.').next().unwrap_or(of.name);
        Err(format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}"))
    };
    let kind = |value: &Value| json_kind(value).to_owned();
    let number = |min: i64, max: i64, wanted: &str| match value {
        Value::Int(number) if (min..=max).contains(number) => Ok(()),
        Value::Int(number) => wrong(format!("number {number}"), wanted),
        Value::Float(number) => wrong(format!("number {number}"), wanted),
        other => wrong(kind(other), wanted),
    };
    let is_text = |value: &Value| value.as_str().is_some() || value.is_null();
    match (shape, value) {
        (Shape::Text(_), Value::String(_)) | (Shape::Bool, Value::Bool(_)) => Ok(()),
        (Shape::Text(wanted), other) => wrong(kind(other), wanted),
        (Shape::Bool, other) => wrong(kind(other), "bool"),
        (Shape::Int32, _) => number(i32::MIN.into(), i32::MAX.into(), "int32"),
        (Shape::Int64, _) => number(i64::MIN, i64::MAX, "int64"),
        (Shape::Bytes, Value::String(text)) => base64::decode(text).map(drop).map_err(|e| e.to_string()),
        (Shape::Bytes, other) => wrong(kind(other), "[]uint8"),
        (Shape::Texts, Value::Array(list)) => match list.iter().find(|text| !is_text(text)) {
            Some(other) => wrong(kind(other), "string"),
            None => Ok(()),
        },
        (Shape::Texts, other) => wrong(kind(other), "[]string"),
        (Shape::TextsByName, Value::Object(map)) => match map.iter().find(|(_, text)| !is_text(text)) {
            Some((_, other)) => wrong(kind(other), "string"),
            None => Ok(()),
        },
        (Shape::TextsByName, other) => wrong(kind(other), "map[string]string"),
        (Shape::One(inner), Value::Object(_)) => members(value, inner, Some(path)),
        (Shape::One(inner), other) => wrong(kind(other), inner.name),
        (Shape::Many(inner), Value::Array(list)) => list.iter().try_for_each(|item| match item {
            Value::Object(_) => members(item, inner, Some(path)),
            Value::Null => Ok(()),
            other => wrong(kind(other), inner.name),
        }),
        (Shape::Many(inner), other) => wrong(kind(other), &format!("[]{}", inner.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each was answered to kube-apiserver v1.36.
    #[test]
    fn what_is_of_another_type_is_named() {
        for (response, why) in [
            (
                r#"{"uid":"u","allowed":true,"status":{"details":{"causes":[{"field":"f"},null]}},"warnings":[null]}"#,
                "",
            ),
            (r#"{"allowed":"yes"}"#, "string into Go struct field AdmissionResponse.response.allowed of type bool"),
            (r#"{"uid":5}"#, "number into Go struct field AdmissionResponse.response.uid of type types.UID"),
            (r#"{"warnings":[1]}"#, "number into Go struct field AdmissionResponse.response.warnings of type string"),
            (r#"[]"#, "array into Go struct field AdmissionReview.response of type v1.AdmissionResponse"),
            (
                r#"{"status":{"code":400.5}}"#,
                "number 400.5 into Go struct field Status.response.status.code of type int32",
            ),
            (
                r#"{"status":{"code":1099511627776}}"#,
                "number 1099511627776 into Go struct field Status.response.status.code of type int32",
            ),
            (r#"{"status":{"code":"x"}}"#, "string into Go struct field Status.response.status.code of type int32"),
            (
                r#"{"status":{"details":"x"}}"#,
                "string into Go struct field Status.response.status.details of type v1.StatusDetails",
            ),
            (
                r#"{"status":{"details":{"causes":{}}}}"#,
                "object into Go struct field StatusDetails.response.status.details.causes of type []v1.StatusCause",
            ),
        ] {
            let text = format!(r#"{{"response":{response}}}"#);
            let found = check(&kubelith_codec::json::parse(text.as_bytes()).unwrap()).err();
            let want = (!why.is_empty()).then(|| format!("json: cannot unmarshal {why}"));
            assert_eq!(found, want, "{response}");
        }
    }
}
