//! Strategies of built-in resources: their kinds, bound to the server.

mod bound;

pub use bound::{Bound, Gatekept};

use crate::claims::Claims;
use crate::issued::IssuedMetrics;
use crate::services::Services;
use kubelith_catalog::Catalog;
use kubelith_features::FeatureGates;
use kubelith_kinds::{Defaults, Kinds};
use kubelith_registry::Strategy;
use kubelith_rules::Env;
use kubelith_rules::gated::{Gated, Gates};
use std::sync::{Arc, LazyLock};

pub const SIGNING_REQUESTS: (&str, &str) = ("certificates.k8s.io", "certificatesigningrequests");

/// What strategies take from the server.
pub struct Host {
    pub env: Arc<Env>,
}

impl Host {
    /// The strategy of a built-in resource.
    pub fn strategy(&self, kind: Arc<Gatekept>) -> Arc<dyn Strategy> {
        Arc::new(self.bind(kind))
    }

    /// The strategy of claims on devices and their templates.
    pub fn strategy_of_claims(&self, kind: Arc<Gatekept>, claims: Claims) -> Arc<dyn Strategy> {
        Arc::new(Bound { claims: Some(claims), ..self.bind(kind) })
    }

    /// The strategy of services, which get their addresses and ports from these pools.
    pub fn strategy_of_services(&self, kind: Arc<Gatekept>, services: &Arc<Services>) -> Arc<dyn Strategy> {
        Arc::new(Bound { services: Some(services.clone()), ..self.bind(kind) })
    }

    /// The strategy of certificate signing requests, which count what signers gave.
    pub fn strategy_of_signing_requests(&self, kind: Arc<Gatekept>, issued: &Arc<IssuedMetrics>) -> Arc<dyn Strategy> {
        Arc::new(Bound { issued: Some(issued.clone()), ..self.bind(kind) })
    }

    fn bind(&self, kind: Arc<Gatekept>) -> Bound {
        Bound { gatekept: kind, env: self.env.clone(), services: None, claims: None, issued: None }
    }
}

impl Gatekept {
    pub fn of((group, plural): (&str, &str), kinds: Kinds, defaults: &Defaults, gates: Gates<'_>) -> Gatekept {
        let kind = kubelith_kinds::kind(kinds, group, plural).under(gates);
        Gatekept { default: defaults.of(group, plural), gated: Gated::of(&kind, gates), kind }
    }
}

/// The strategy of a built-in resource with all features as they are by default.
pub fn of(group: &str, plural: &str) -> Arc<dyn Strategy> {
    let features = FeatureGates::default();
    let gates = |gate: &str| features.enabled(gate);
    let kind = Gatekept::of((group, plural), kubelith_kinds::BUILTIN, &USUAL.defaults, &gates);
    Host { env: Arc::new(Env::default()) }.strategy(Arc::new(kind))
}

/// Those of the built-in kinds with all features as they are by default. Nearly all servers of a process have them, and share them.
static USUAL: LazyLock<Usual> = LazyLock::new(|| {
    let features = FeatureGates::default();
    let (kinds, gates) = (kubelith_kinds::BUILTIN, |gate: &str| features.enabled(gate));
    let defaults = Arc::new(Defaults::new(kinds, kubelith_catalog::builtin(), &gates));
    Usual { switches: Defaults::switches(kinds, &gates), defaults }
});

struct Usual {
    switches: Vec<bool>,
    defaults: Arc<Defaults>,
}

/// Defaults under these gates.
pub fn defaults(kinds: Kinds, catalog: &'static Catalog, gates: Gates<'_>) -> Arc<Defaults> {
    let built_in = std::ptr::eq(kinds, kubelith_kinds::BUILTIN) && std::ptr::eq(catalog, kubelith_catalog::builtin());
    match built_in && Defaults::switches(kinds, gates) == USUAL.switches {
        true => USUAL.defaults.clone(),
        false => Arc::new(Defaults::new(kinds, catalog, gates)),
    }
}
