//! What a server with the gate CBORServingAndStorage says of media types and of bodies in CBOR, as kube-apiserver says it.

use crate::support::Server;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CBOR: (&str, &str) = ("Content-Type", "application/cbor");
const APPLY: (&str, &str) = ("Content-Type", "application/apply-patch+cbor");
/// `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": [1]}`, and the same with `{"a": 1}` as data.
const LIST: &[u8] =
    b"\xd9\xd9\xf7\xa4\x4aapiVersion\x42v1\x44kind\x49ConfigMap\x48metadata\xa1\x44name\x41c\x44data\x81\x01";
const NUMBER: &[u8] =
    b"\xd9\xd9\xf7\xa4\x4aapiVersion\x42v1\x44kind\x49ConfigMap\x48metadata\xa1\x44name\x41c\x44data\xa1\x41a\x01";
const OPTIONS: &[u8] = b"\xa1\x52gracePeriodSeconds\x41x";

type Case = (&'static str, &'static str, (&'static str, &'static str), &'static [u8], &'static str);

const CASES: &[Case] = &[
    (
        "GET",
        "/api/v1/pods",
        ("Accept", "text/nonsense"),
        b"",
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, \
         application/cbor, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq",
    ),
    (
        "GET",
        "/api/v1",
        ("Accept", "text/nonsense"),
        b"",
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, \
         application/cbor",
    ),
    (
        "GET",
        "/apis",
        ("Accept", "text/nonsense"),
        b"",
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",
    ),
    (
        "GET",
        "/api/v1/pods",
        ("Accept", "application/cbor;as=Nope;g=meta.k8s.io;v=v1"),
        b"",
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf, \
         application/cbor",
    ),
    (
        "POST",
        CONFIG_MAPS,
        ("Content-Type", "text/nonsense"),
        b"x",
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf, application/cbor",
    ),
    (
        "POST",
        CONFIG_MAPS,
        CBOR,
        b"\xff",
        "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: cbor: unexpected \
         \"break\" code (ff)",
    ),
    (
        "POST",
        CONFIG_MAPS,
        CBOR,
        b"",
        "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: EOF (<empty>)",
    ),
    (
        "POST",
        "/apis/apps/v1/namespaces/default/deployments",
        CBOR,
        b"\x81\x01",
        "the object provided is unrecognized (must be of type Deployment): unable to determine group/version/kind: cbor: cannot \
         unmarshal array into Go value of type v1.TypeMeta (cannot decode CBOR array to struct without toarray option) (8101)",
    ),
    (
        "POST",
        CONFIG_MAPS,
        CBOR,
        LIST,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: cbor: cannot unmarshal array into Go struct field \
         v1.ConfigMap.data of type map[string]string",
    ),
    (
        "POST",
        CONFIG_MAPS,
        CBOR,
        NUMBER,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: cbor: cannot unmarshal positive integer into Go struct field \
         v1.ConfigMap.data of type string",
    ),
    (
        "DELETE",
        "/api/v1/namespaces/default/configmaps/zzz",
        CBOR,
        b"\xff",
        "unable to determine group/version/kind: cbor: unexpected \"break\" code",
    ),
    (
        "DELETE",
        "/api/v1/namespaces/default/configmaps/zzz",
        CBOR,
        OPTIONS,
        "cbor: cannot unmarshal byte string into Go struct field v1.DeleteOptions.gracePeriodSeconds of type int64",
    ),
    (
        "PATCH",
        "/api/v1/namespaces/default/configmaps/c?fieldManager=m",
        APPLY,
        b"\xff",
        "error decoding YAML: cbor: unexpected \"break\" code",
    ),
    (
        "PATCH",
        "/api/v1/namespaces/default/configmaps/c?fieldManager=m",
        APPLY,
        b"\x81\x01",
        "error decoding YAML: cbor: cannot unmarshal array into Go value of type map[string]interface {}",
    ),
];

#[test]
fn errors_are_those_of_the_reference() {
    let server = Server::start(&["--feature-gates=CBORServingAndStorage=true"]);
    for (method, path, header, body, want) in CASES {
        let body = (*method != "GET").then_some(*body);
        let answer = server.send_with(method, path, &[*header], body).unwrap();
        let status: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        assert_eq!(status["message"], *want, "{method} {path} {body:?}");
    }
}
