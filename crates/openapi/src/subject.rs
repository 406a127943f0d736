//! What documents are about: a group version, a group, or one of the few paths that are no API.

use super::model::{Answer, Content, Method, Operation, PathItem, Paths};
use super::names::Scope;
use super::parameters::Parameters;
use super::{Published, meta, resources};
use kubelith_codec::negotiate::{BUILT_IN, media_types};
use kubelith_meta::{GroupVersion, Str};

/// The subject of one document of version 3. Version 2 puts all of them into one.
#[derive(Clone)]
pub enum Subject {
    /// The resources of a group version.
    Version(GroupVersion, Vec<Published>),
    /// `/apis/<group>/`
    Group(Str),
    /// `/api/`
    Core,
    /// `/apis/`
    Groups,
    /// `/version/`
    Release,
    /// `/.well-known/openid-configuration/`
    OpenIdConfiguration,
    /// `/openid/v1/jwks/`
    OpenIdKeys,
}

impl Subject {
    /// Where the document is, below `/openapi/v3/`.
    pub fn path(&self) -> String {
        match self {
            Subject::Version(gv, _) => super::path_of(gv),
            Subject::Group(group) => format!("apis/{group}"),
            Subject::Core => "api".to_owned(),
            Subject::Groups => "apis".to_owned(),
            Subject::Release => "version".to_owned(),
            Subject::OpenIdConfiguration => ".well-known/openid-configuration".to_owned(),
            Subject::OpenIdKeys => "openid/v1/jwks".to_owned(),
        }
    }

    pub fn paths(&self, parameters: &Parameters<'_>) -> Paths {
        let mut paths = Paths::new();
        let operation = match self {
            Subject::Version(gv, published) => {
                for resource in published {
                    resources::add(&mut paths, gv, resource, parameters);
                }
                Scope::new(&gv.group, Some(&gv.version)).document(
                    "getAPIResources",
                    "get available resources",
                    meta::API_RESOURCE_LIST,
                )
            }
            Subject::Group(group) => {
                Scope::new(group, None).document("getAPIGroup", "get information of a group", meta::API_GROUP)
            }
            Subject::Core => {
                Scope::new("", None).document("getAPIVersions", "get available API versions", meta::API_VERSIONS)
            }
            Subject::Groups => Operation {
                id: "getAPIVersions".to_owned(),
                tag: "apis".to_owned(),
                ..document("get available API versions", Content::Model(meta::API_GROUP_LIST.into()))
            },
            Subject::Release => Operation {
                id: "getCodeVersion".to_owned(),
                tag: "version".to_owned(),
                consumes: vec!["application/json"],
                produces: vec!["application/json"],
                ..document("get the version information for this server", Content::Model(meta::VERSION_INFO.into()))
            },
            Subject::OpenIdConfiguration => Operation {
                id: "getServiceAccountIssuerOpenIDConfiguration".to_owned(),
                tag: "WellKnown".to_owned(),
                consumes: Vec::new(),
                produces: vec!["application/json"],
                ..document("get the OpenID configuration of the issuer of service account tokens", Content::Text)
            },
            Subject::OpenIdKeys => Operation {
                id: "getServiceAccountIssuerOpenIDKeyset".to_owned(),
                tag: "openid".to_owned(),
                consumes: Vec::new(),
                produces: vec!["application/jwk-set+json"],
                ..document("get the keys that verify service account tokens, as a JSON Web Key Set", Content::Text)
            },
        };
        paths.values_mut().for_each(PathItem::gather);
        if !matches!(self, Subject::Version(_, published) if published.iter().all(|p| p.is_brief())) {
            let mut item = PathItem::default();
            item.operations.insert(Method::Get, operation);
            paths.insert(format!("/{}/", self.path()), item);
        }
        paths
    }
}

impl Scope {
    fn document(&self, name: &str, description: &str, model: &'static str) -> Operation {
        let document = document(description, Content::Model(Str::const_new(model)));
        Operation { id: self.operation_id(name), tag: self.tag.clone(), ..document }
    }
}

fn document(description: &str, content: Content) -> Operation {
    Operation {
        description: description.to_owned(),
        consumes: media_types(BUILT_IN),
        produces: media_types(BUILT_IN),
        responses: vec![
            Answer { code: 200, description: "OK", content: Some(content) },
            Answer { code: 401, description: "Unauthorized", content: None },
        ],
        ..Operation::default()
    }
}
