//! Admission webhooks: other servers that change or refuse objects.
//!
//! `source.rs` keeps the configurations as they are stored, `hook.rs` is one webhook of them; here it is decided which are
//! asked about a request. `review.rs` is what they are told and answer, `call.rs` asks one, `mutating.rs` one after another,
//! `validating.rs` all side by side.

mod call;
mod config;
mod hook;
mod mutating;
pub(crate) mod review;
mod shape;
mod source;
#[cfg(test)]
mod tests;
mod validating;

pub use mutating::MutatingAdmissionWebhook;
pub(crate) use mutating::keep_owners;
pub use validating::ValidatingAdmissionWebhook;

use crate::attributes::Seen;
use crate::config::Config;
use crate::expression::{Described, Inputs, Matched, undecided};
use crate::manifests::{Manifests, Of};
use crate::observe::{Observer, Power};
use crate::rules::Versions;
use crate::versioned;
use hook::Hook;
use kubelith_auth::Authorizer;
use kubelith_auth::hook::Hooks;
use kubelith_meta::random::MadeUp;
use kubelith_meta::{Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::Request;
use kubelith_registry::objects::Collection;
use source::Source;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// What both plugins are made of.
struct Webhooks {
    source: Source,
    objects: Arc<Objects>,
    namespaces: Collection,
    authorizer: Arc<dyn Authorizer>,
    hooks: Arc<dyn Hooks>,
    observer: Arc<dyn Observer>,
    power: Power,
    made_up: MadeUp,
}

impl Webhooks {
    fn new(config: &Config, plugin: Option<&[u8]>, power: Power) -> Result<Webhooks, String> {
        let settings = config::Settings::read(plugin, &*config.gates)?;
        let (of, plural) = match power {
            Power::Mutating => (Of::MutatingWebhooks, "mutatingwebhookconfigurations"),
            Power::Validating => (Of::ValidatingWebhooks, "validatingwebhookconfigurations"),
        };
        let manifests = settings.manifests.map(|folder| Manifests::new(of, folder, config));
        Ok(Webhooks {
            source: Source::new(config.objects.clone(), plural, manifests),
            objects: config.objects.clone(),
            namespaces: config.objects.of("", "namespaces"),
            authorizer: config.authorizer.clone(),
            hooks: (config.hooks)(settings.kubeconfig.as_deref())?,
            observer: config.observer.clone(),
            power,
            made_up: config.made_up.clone(),
        })
    }

    fn caller(&self) -> call::Caller<'_> {
        call::Caller { hooks: &*self.hooks, observer: &*self.observer, power: self.power, made_up: &self.made_up }
    }

    /// Whether the webhook is meant by the request, by all but its match conditions.
    async fn is_meant<'v>(
        &self,
        hook: &Hook,
        request: Request<'_>,
        versions: &'v Versions<'_>,
        object: &Value,
    ) -> Result<Option<&'v Seen>, Status> {
        let Some(seen) = versions.matching(&hook.rules, hook.match_policy) else { return Ok(None) };
        let selected = hook.selectors.select(&self.namespaces, request, object).await?;
        Ok(selected.then_some(seen))
    }

    /// Whether the conditions of the webhook hold. Both objects are in the version that it is asked in.
    fn holds(
        &self,
        hook: &Hook,
        request: Request<'_>,
        seen: &Seen,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<bool, Status> {
        let Some((composition, conditions)) = hook.conditions() else { return Ok(true) };
        let began = Instant::now();
        let described = Described::new(request, &seen.kind);
        let printed = match self.power {
            Power::Mutating => versioned::printed(object).map(Cow::Owned),
            Power::Validating => object.and_then(|object| versioned::shown(request, object)),
        };
        let inputs = Inputs {
            object: printed.as_deref(),
            old,
            namespace: None,
            request: &described,
            params: None,
            authorizer: Some(&self.authorizer),
        };
        let run = composition.open(&inputs);
        let outcome = conditions.check(&run, hook.failure_policy);
        let (name, operation) = (&hook.name, request.operation);
        self.observer.conditions_checked(name, "webhook", self.power, operation, outcome.failures, began.elapsed());
        match outcome.matched {
            Matched::Yes => Ok(true),
            Matched::No => {
                self.observer.excluded_by_conditions(name, "webhook", self.power, operation);
                Ok(false)
            }
            Matched::Failed(why) => Err(undecided(request, &why)),
        }
    }
}
