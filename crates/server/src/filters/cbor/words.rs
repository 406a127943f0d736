//! What errors say where CBOR is spoken: lists of media types name it, and bodies in it are refused in the words of Go's
//! decoder. Who is behind the filters knows nothing of that, so their words are turned into these.

use kubelith_codec::cbor;
use kubelith_meta::Value;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const EVENTS: &str = ";stream=watch";

/// A list of media types in an error, with those of CBOR, for who asked for `path`.
pub fn named(message: &str, path: &str) -> String {
    let is_status_page = path.starts_with("/statusz") || path.starts_with("/flagz");
    let mut out = String::with_capacity(message.len() + 64);
    let mut rest = message;
    while let Some(at) = rest.find([',', '"', '\n']).or(Some(rest.len())).filter(|_| !rest.is_empty()) {
        let (piece, after) = rest.split_at(at);
        out.push_str(piece);
        let more = if piece.ends_with(PROTOBUF) {
            // Aggregated discovery has no such form.
            if matches!(path, "/api" | "/apis") { "" } else { ", application/cbor" }
        } else if piece.strip_suffix(EVENTS).is_some_and(|piece| piece.ends_with(PROTOBUF)) {
            ", application/cbor-seq"
        } else if piece.ends_with("application/apply-patch+yaml") {
            ", application/apply-patch+cbor"
        } else if is_status_page && piece.ends_with("text/plain") {
            ", application/cbor"
        } else {
            ""
        };
        out.push_str(more);
        let end = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..end]);
        rest = &after[end..];
    }
    out
}

/// How the body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    Object,
    Applied,
    /// Options of a deletion, which may be absent.
    Options,
}

/// A body as a value; or why it is none, or none with a kind, as far as that can be seen without knowing what it should be.
pub fn decode(sent: &[u8], read: Read) -> Result<Value, String> {
    let value = cbor::decode(sent).map_err(|why| why.to_string())?;
    let target = match read {
        Read::Applied => "map[string]interface {}",
        Read::Object | Read::Options => "v1.TypeMeta",
    };
    match &value {
        Value::Null => return Ok(Value::object()),
        Value::Object(_) => {}
        Value::Array(_) if read != Read::Applied => {
            return Err(format!(
                "cbor: cannot unmarshal array into Go value of type {target} (cannot decode CBOR array to struct without \
                 toarray option)"
            ));
        }
        other => return Err(format!("cbor: cannot unmarshal {} into Go value of type {target}", name_of(other))),
    }
    let members = if read == Read::Applied { &[][..] } else { &["apiVersion", "kind"] };
    for member in members {
        if let Some(given) = value.get(member).filter(|given| !given.is_null() && given.as_str().is_none()) {
            let given = name_of(given);
            return Err(format!(
                "cbor: cannot unmarshal {given} into Go struct field v1.TypeMeta.{member} of type string"
            ));
        }
    }
    Ok(value)
}

/// The kind of a value, as Go's decoder of CBOR calls it. Strings are of bytes, as all who write Kubernetes' CBOR write them.
fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Object(_) => "map",
        Value::String(_) => "byte string",
        Value::Int(n) if *n < 0 => "negative integer",
        Value::Int(_) => "positive integer",
        _ => "primitives",
    }
}

/// What is said of a body that cannot be read, in place of what was said of a broken text: that names the kind.
/// `None` if it was not about that.
pub fn unreadable(message: &str, why: &str, summary: &str, read: Read) -> Option<String> {
    const APPLIED: &str = "error decoding YAML: ";
    const OBJECT: &str = "the object provided is unrecognized (must be of type ";
    match read {
        Read::Applied => message.starts_with(APPLIED).then(|| format!("{APPLIED}{why}")),
        Read::Options => {
            let is_broken = message.starts_with("couldn't get version/kind; ");
            is_broken.then(|| format!("unable to determine group/version/kind: {why}"))
        }
        Read::Object => {
            let (kind, _) = message.strip_prefix(OBJECT)?.split_once("): ")?;
            Some(format!("{OBJECT}{kind}): unable to determine group/version/kind: {why} ({summary})"))
        }
    }
}

/// What is said of a value of the wrong type. Built-in kinds are decoded at once there, and the error names the kind and its member only;
/// custom resources become JSON before they are looked into.
///
/// `Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field
/// DeploymentSpec.spec.replicas of type int32` becomes `…: cbor: cannot unmarshal byte string into Go struct field v1.Deployment.spec of
/// type int32`.
pub fn mistyped(message: &str, body: &Value) -> Option<String> {
    const BEGIN: &str = "json: cannot unmarshal ";
    let (before, after) = message.split_once(BEGIN)?;
    let (found, rest) = after.split_once(" into Go struct field ")?;
    let (field, wanted) = rest.split_once(" of type ")?;
    let (holder, path) = field.split_once('.')?;
    let first = path.split('.').next().unwrap_or(path);
    let (kind, version) = match before.split_once(" in version \"") {
        Some((kind, rest)) => (kind, rest.split('"').next().unwrap_or_default()),
        // Options of a deletion are named by nothing else.
        None => (holder, "v1"),
    };
    if holder != kind && first == path {
        return None;
    }
    let found = match found.split(' ').next()? {
        "object" => "map",
        "string" => "byte string",
        "bool" => "primitives",
        "number" => number_in(path.split('.').try_fold(body, |at, step| at.get(step)).unwrap_or(body)),
        other => other,
    };
    Some(format!(
        "{before}cbor: cannot unmarshal {found} into Go struct field {version}.{kind}.{first} of type {wanted}"
    ))
}

/// What the first number in a value is.
fn number_in(value: &Value) -> &'static str {
    fn first(value: &Value) -> Option<&'static str> {
        match value {
            Value::Int(_) | Value::Float(_) => Some(name_of(value)),
            Value::Array(items) => items.iter().find_map(first),
            Value::Object(members) => members.iter().find_map(|(_, value)| first(value)),
            _ => None,
        }
    }
    first(value).unwrap_or("positive integer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    /// As kube-apiserver words them.
    #[test]
    fn lists_of_media_types_name_cbor() {
        for (path, given, want) in [
            (
                "/api/v1/pods",
                "application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, \
                 application/vnd.kubernetes.protobuf;stream=watch",
                "application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor, \
                 application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq",
            ),
            (
                "/apis/a/v1/b",
                "only: application/merge-patch+json, application/apply-patch+yaml",
                "only: application/merge-patch+json, application/apply-patch+yaml, application/apply-patch+cbor",
            ),
            (
                "/apis",
                "application/json, application/vnd.kubernetes.protobuf",
                "application/json, application/vnd.kubernetes.protobuf",
            ),
            (
                "/statusz",
                "application/json, application/yaml, text/plain",
                "application/json, application/yaml, text/plain, application/cbor",
            ),
            ("/version", "representations: application/json", "representations: application/json"),
        ] {
            assert_eq!(named(given, path), want, "{path}");
            let (given, want) =
                (format!("{{\"message\":\"{given}\",\"a\":1}}"), format!("{{\"message\":\"{want}\",\"a\":1}}"));
            assert_eq!(named(&given, path), want, "{path}");
        }
    }

    #[test]
    fn bodies_are_refused_in_gos_words() {
        for (sent, read, want) in [
            (&b"\xff"[..], Read::Object, "cbor: unexpected \"break\" code"),
            (b"", Read::Object, "EOF"),
            (b"\xd9\xd9\xf7", Read::Object, "unexpected EOF"),
            (
                b"\xd9\xd9\xf7\x81\x01",
                Read::Object,
                "cbor: cannot unmarshal array into Go value of type v1.TypeMeta (cannot decode CBOR array to struct without \
                 toarray option)",
            ),
            (b"\x01", Read::Object, "cbor: cannot unmarshal positive integer into Go value of type v1.TypeMeta"),
            (b"\x81\x01", Read::Applied, "cbor: cannot unmarshal array into Go value of type map[string]interface {}"),
            (
                b"\xa1\x44kind\x01",
                Read::Object,
                "cbor: cannot unmarshal positive integer into Go struct field v1.TypeMeta.kind of type string",
            ),
            (b"\xa2\x41a\x01\x41a\x02", Read::Object, "cbor: found duplicate map key \"a\" at map element index 1"),
            (
                b"\xd9\xd9\xf7\xf7",
                Read::Object,
                "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized",
            ),
            (b"\xc2\x41\x01", Read::Object, "cbor: data item of cbor type tag is not accepted by protocol: bignum"),
        ] {
            assert_eq!(decode(sent, read).unwrap_err(), want);
        }
        assert_eq!(decode(b"\xf6", Read::Object), Ok(Value::object()));
        let inner =
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; x (7b)";
        assert_eq!(
            unreadable(inner, "EOF", "<empty>", Read::Object).unwrap(),
            "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: EOF (<empty>)"
        );
        assert_eq!(unreadable("error decoding YAML: x", "y", "", Read::Applied).unwrap(), "error decoding YAML: y");
        let options = unreadable("couldn't get version/kind; x", "y", "", Read::Options);
        assert_eq!(options.unwrap(), "unable to determine group/version/kind: y");
        assert_eq!(unreadable("invalid query", "y", "", Read::Object), None);
    }

    #[test]
    fn types_are_those_of_cbor() {
        let body = json::parse(br#"{"data":{"a":-1},"spec":{"replicas":"no"},"metadata":{"labels":{"a":1}}}"#).unwrap();
        for (given, want) in [
            (
                "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct \
                 field DeploymentSpec.spec.replicas of type int32",
                Some(
                    "Deployment in version \"v1\" cannot be handled as a Deployment: cbor: cannot unmarshal byte string into Go \
                     struct field v1.Deployment.spec of type int32",
                ),
            ),
            (
                "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct \
                 field ConfigMap.data of type string",
                Some(
                    "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: cbor: cannot unmarshal negative integer into Go \
                     struct field v1.ConfigMap.data of type string",
                ),
            ),
            (
                "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
                Some(
                    "cbor: cannot unmarshal byte string into Go struct field v1.DeleteOptions.gracePeriodSeconds of type int64",
                ),
            ),
            (
                "Foo in version \"v1\" cannot be handled as a Foo: json: cannot unmarshal number into Go struct field \
                 ObjectMeta.labels of type string",
                None,
            ),
            (
                "Foo in version \"v1\" cannot be handled as a Foo: json: cannot unmarshal string into Go value of type v1.ObjectMeta",
                None,
            ),
            ("something else", None),
        ] {
            assert_eq!(mistyped(given, &body).as_deref(), want, "{given}");
        }
    }
}
