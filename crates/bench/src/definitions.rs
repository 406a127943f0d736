//! CustomResourceDefinitions as large as those of well-known projects, and objects of one of them.

use serde_json::{Map, Value, json};

/// Definitions share groups, as those of a provider do.
const PER_GROUP: usize = 10;
/// Of a definition as JSON.
const SIZE: usize = 50_000;
/// Of the definition whose objects are compared with pods.
const WIDGETS: &str = "widgets.bench.example.com";

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The names of one definition.
pub struct Named {
    pub group: String,
    pub plural: String,
    pub kind: String,
}

impl Named {
    pub fn new(series: &str, index: usize) -> Named {
        Named {
            group: format!("{series}{}.bench.example.com", index / PER_GROUP),
            plural: format!("things{index}"),
            kind: format!("Thing{index}"),
        }
    }

    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Where objects of it are created.
    pub fn objects(&self) -> String {
        format!("/apis/{}/v1/namespaces/bench/{}", self.group, self.plural)
    }

    pub fn object(&self) -> String {
        json!({
            "apiVersion": format!("{}/v1", self.group), "kind": self.kind, "metadata": {"name": "first"},
            "spec": {"section0": {"name": "a", "replicas": 3, "items": [{"key": "k", "value": "v"}]}},
        })
        .to_string()
    }

    /// With about as many bytes as the definitions of well-known operators have.
    pub fn definition(&self) -> String {
        let mut sections = Map::new();
        let mut size = 2_000;
        for number in 0.. {
            let section = section(number);
            size += section.to_string().len() + 16;
            sections.insert(format!("section{number}"), section);
            if size >= SIZE {
                break;
            }
        }
        let status = json!({"type": "object", "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "conditions": conditions(),
        }});
        let spec = json!({"type": "object", "description": text(0), "required": ["section0"], "properties": sections});
        self.wrap(json!({"spec": spec, "status": status}))
    }

    fn wrap(&self, properties: Value) -> String {
        let plural = &self.plural;
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name(), "annotations": {"controller-gen.kubebuilder.io/version": "v0.16.5"}},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {
                    "plural": plural, "singular": plural.trim_end_matches('s'), "kind": self.kind,
                    "listKind": format!("{}List", self.kind), "categories": ["bench"],
                },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "description": text(1), "required": ["spec"], "properties": properties,
                    }},
                }],
            },
        })
        .to_string()
    }
}

fn text(number: usize) -> String {
    format!(
        "Setting {number} says how the controller deals with the object when it is changed by somebody else.\n\
         It is optional; without it, what was decided before stays as it is. See the manual for what is possible."
    )
}

/// Strings with patterns, numbers with limits, lists with keys, maps, defaults: what schemas are made of.
fn section(number: usize) -> Value {
    let described = |mut schema: Value| {
        schema["description"] = json!(text(number));
        schema
    };
    let pair = json!({"type": "object", "required": ["key"], "properties": {
        "key": described(json!({"type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"})),
        "value": described(json!({"type": "string"})),
        "from": {"type": "object", "properties": {
            "name": described(json!({"type": "string", "default": ""})),
            "optional": described(json!({"type": "boolean"})),
        }, "x-kubernetes-map-type": "atomic"},
    }});
    described(json!({"type": "object", "properties": {
        "name": described(json!({"type": "string", "maxLength": 63})),
        "mode": described(json!({"type": "string", "enum": ["Always", "Never", "OnDemand"], "default": "Always"})),
        "replicas": described(json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 1000})),
        "port": described(json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true})),
        "labels": described(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        "resources": described(json!({"type": "object", "additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
            "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
        }})),
        "items": described(json!({"type": "array", "items": pair, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"]})),
        "arguments": described(json!({"type": "array", "items": {"type": "string"}})),
        "template": described(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
    }}))
}

fn conditions() -> Value {
    json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type", "status"], "properties": {
            "type": {"type": "string", "maxLength": 316}, "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": {"type": "string"}, "message": {"type": "string", "maxLength": 32768},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
        }},
    })
}

/// A kind with the fields of the pods that it is compared with.
pub fn widget_definition() -> String {
    let named = Named { group: "bench.example.com".into(), plural: "widgets".into(), kind: "Widget".into() };
    assert_eq!(named.name(), WIDGETS);
    let strings = || json!({"type": "array", "items": {"type": "string"}});
    let open = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let list = |item: Value| json!({"type": "array", "items": item});
    let container = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "image": {"type": "string"}, "args": strings(),
        "env": list(json!({"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string"}}})),
        "ports": list(json!({"type": "object", "properties": {"containerPort": {"type": "integer"}, "name": {"type": "string"}}})),
        "resources": open(), "livenessProbe": open(), "readinessProbe": open(),
        "volumeMounts": list(json!({"type": "object", "properties": {"name": {"type": "string"}, "mountPath": {"type": "string"}}})),
    }});
    named.wrap(json!({
        "spec": {"type": "object", "properties": {
            "automountServiceAccountToken": {"type": "boolean"}, "nodeName": {"type": "string"},
            "containers": list(container.clone()), "initContainers": list(container),
            "volumes": list(open()), "tolerations": list(open()),
        }},
        "status": open(),
    }))
}

pub fn widgets() -> String {
    "/apis/bench.example.com/v1/namespaces/bench/widgets".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_as_large_as_real_ones() {
        let size = Named::new("a", 1).definition().len();
        assert!((SIZE..SIZE + 6_000).contains(&size), "{size}");
    }
}
