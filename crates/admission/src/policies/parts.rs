//! What both kinds of policies are asked with: which of them a request is for, and with which parameters.

use super::params::{self, Params};
use super::policy::{Binding, Policy};
use super::source::Source;
use crate::attributes::Seen;
use crate::config::Config;
use crate::manifests::{self, Manifests, Of};
use crate::observe::Observer;
use crate::rules::Versions;
use kubelith_auth::Authorizer;
use kubelith_meta::Value;
use kubelith_registry::Objects;
use kubelith_registry::admission::Request;
use kubelith_registry::objects::Collection;
use std::sync::Arc;

pub struct Parts {
    pub source: Source,
    pub objects: Arc<Objects>,
    pub namespaces: Collection,
    pub authorizer: Arc<dyn Authorizer>,
    pub observer: Arc<dyn Observer>,
    params: Params,
}

/// A request as policies and bindings match it.
#[derive(Clone, Copy)]
pub struct Asked<'a, 'v> {
    pub request: Request<'a>,
    pub versions: &'v Versions<'v>,
    pub object: &'a Value,
}

impl Parts {
    /// For these plurals of policies and bindings.
    pub fn new(config: &Config, of: Of, plurals: [&'static str; 2], text: Option<&[u8]>) -> Result<Parts, String> {
        let objects = config.objects.clone();
        let folder = manifests::of_policies(of, text, &*config.gates)?;
        let manifests = folder.map(|folder| Manifests::new(of, folder, config));
        Ok(Parts {
            source: Source::new(objects.clone(), plurals, manifests),
            namespaces: objects.of("", "namespaces"),
            params: Params { objects: objects.clone(), custom: config.custom.clone() },
            objects,
            authorizer: config.authorizer.clone(),
            observer: config.observer.clone(),
        })
    }

    /// How the policy sees the request, and where its parameters come from; `None` if it is not meant. The error says
    /// what is wrong with its configuration.
    pub async fn matching<'v>(
        &self,
        policy: &Policy,
        asked: Asked<'_, 'v>,
    ) -> Result<Option<(&'v Seen, Option<params::Source>)>, String> {
        let seen = policy.constraints.matching(&self.namespaces, asked.request, asked.versions, asked.object).await;
        let Some(seen) = seen.map_err(|status| status.message)? else { return Ok(None) };
        let source = policy.param_kind.as_ref().map(|kind| self.params.source(kind)).transpose()?;
        Ok(Some((seen, source)))
    }

    /// The parameters that a binding hands to its policy; `None` if it is not for the request.
    pub async fn params(
        &self,
        policy: &Policy,
        binding: &Binding,
        source: Option<&params::Source>,
        asked: Asked<'_, '_>,
    ) -> Result<Option<Vec<Option<Value>>>, String> {
        if let Some(only) = &binding.resources {
            let seen = only.matching(&self.namespaces, asked.request, asked.versions, asked.object).await;
            if seen.map_err(|status| status.message)?.is_none() {
                return Ok(None);
            }
        }
        self.params.collect(policy, binding, source, asked.request).await.map(Some)
    }
}
