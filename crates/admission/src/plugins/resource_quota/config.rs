//! ResourceQuotaConfiguration: what nobody may consume without a quota that covers it.

use super::quota::Scope;
use kubelith_codec::config::{Field, Format, Item, Malformed, Shape, TEXTS, Unknown};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::text::aggregate;
use kubelith_meta::{GroupResource, Str, Value};

const LIMITED: &[Field] = &[(
    "limitedResources",
    Shape::List(&Item {
        shape: Shape::Object(&[
            ("apiGroup", Shape::Text),
            ("resource", Shape::Text),
            ("matchContains", TEXTS),
            (
                "matchScopes",
                Shape::List(&Item {
                    shape: Shape::Object(&[("scopeName", Shape::Text), ("operator", Shape::Text), ("values", TEXTS)]),
                    list: "[]v1.ScopedResourceSelectorRequirement",
                }),
            ),
        ]),
        list: "[]v1.LimitedResource",
    }),
)];

const FORMATS: [Format; 2] = [
    Format {
        group: "apiserver.config.k8s.io",
        versions: &["v1"],
        kind: "ResourceQuotaConfiguration",
        fields: LIMITED,
        unknown: Unknown::Refused,
        scheme: Some("k8s.io/apiserver/pkg/admission/plugin/resourcequota/config.go:31"),
    },
    Format {
        group: "resourcequota.admission.k8s.io",
        versions: &["v1beta1", "v1alpha1"],
        kind: "Configuration",
        fields: LIMITED,
        unknown: Unknown::Refused,
        scheme: None,
    },
];

/// A resource whose consumption needs a quota.
#[derive(Debug, Clone)]
pub struct Limited {
    pub resource: GroupResource,
    /// Parts of the names of what is consumed.
    pub contains: Vec<Str>,
    pub scopes: Vec<Scope>,
}

impl Limited {
    pub fn read(text: Option<&[u8]>) -> Result<Vec<Limited>, String> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Vec::new()) };
        let failed = |why: &dyn std::fmt::Display| why.to_string();
        let [current, older] = FORMATS;
        let document = match current.read(text) {
            Err(Malformed::Kind(why)) => older.read(text).map_err(|other| match other {
                Malformed::Kind(_) => failed(&why),
                other => failed(&other),
            })?,
            other => other.map_err(|why| failed(&why))?,
        };
        let listed = document.get("limitedResources").and_then(Value::as_array).unwrap_or(&[]);
        let mut errors = ErrorList::default();
        let path = Path::new("limitedResources");
        for (i, limited) in listed.iter().enumerate() {
            if limited.str_at(&["resource"]).is_empty() {
                errors.push(Error::required(&path.index(i).child("resource"), ""));
            }
        }
        match errors.is_empty() {
            true => Ok(listed.iter().map(Limited::of).collect()),
            false => Err(failed(&aggregate(errors.0.iter().map(ToString::to_string)))),
        }
    }

    fn of(value: &Value) -> Limited {
        let list = |name: &str| value.get(name).and_then(Value::as_array).unwrap_or(&[]);
        Limited {
            resource: GroupResource::new(value.str_at(&["apiGroup"]), value.str_at(&["resource"])),
            contains: list("matchContains").iter().filter_map(Value::as_str).map(Str::from).collect(),
            scopes: list("matchScopes").iter().map(Scope::of).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files() {
        assert!(Limited::read(None).unwrap().is_empty());
        let read = |text: &str| Limited::read(Some(text.as_bytes()));
        let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n";
        let rule = "limitedResources:\n- resource: pods\n  matchScopes:\n  - {scopeName: PriorityClass, operator: In, values: [a]}\n";
        for head in [head, "apiVersion: resourcequota.admission.k8s.io/v1beta1\nkind: Configuration\n"] {
            let limited = read(&format!("{head}{rule}")).unwrap();
            assert_eq!((limited.len(), limited[0].scopes[0].to_string().as_str()), (1, "{PriorityClass In [a]}"));
        }
        for (text, why) in [
            (
                "kind: Odd\napiVersion: v1\n",
                "no kind \"Odd\" is registered for version \"v1\" in scheme \
                 \"k8s.io/apiserver/pkg/admission/plugin/resourcequota/config.go:31\"",
            ),
            (&format!("{head}limitedResources: [{{}}]\n"), "limitedResources[0].resource: Required value"),
            (&format!("{head}odd: 1\n"), "strict decoding error: unknown field \"odd\""),
        ] {
            let said = read(text).unwrap_err();
            assert_eq!(said, why);
        }
    }
}
