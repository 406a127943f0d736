//! Access put together from the options: who is who, who may what, and what gives out tokens. What they know comes
//! from the stored objects, which are there only once the APIs are: `start` brings the two together.

mod authentication;
mod authorities;
mod authorization;
pub mod barrier;
mod client_cas;
mod external_signer;
mod feed;
pub mod files;
mod front_proxy;
mod issuers;
pub mod metrics;
mod objects;
mod service_accounts;
pub mod signer_metrics;

pub use authorities::Authorities;
pub use client_cas::ClientCas;
pub use feed::RolesProgress;
pub use metrics::AccessMetrics;

use crate::options::{AuthenticationOptions, Options};
use authentication::{Authentication, Sources};
use authorization::{Authorization, Knowledge};
use kubelith_auth::authn::request_header::RequestHeaderNames;
use kubelith_auth::authz::node::NodeGraph;
use kubelith_auth::authz::rbac::RbacIndex;
use kubelith_auth::expression::{Cel, Selectors};
use kubelith_auth::service_account::{KeyRing, KeySet};
use kubelith_auth::stats::TokenStats;
use kubelith_kube::Resources;
use kubelith_kube::actions::Access;
use kubelith_kube::bootstrap::authentication::{AuthenticationInfo, RequestHeaderInfo};
use kubelith_meta::Clock;
use kubelith_server::ServerBuilder;
use kubelith_server::routes::Routes;
use objects::{CachedObjects, LegacyUse};
use service_accounts::{ServiceAccountKeys, TokenPolicy};
use std::path::PathBuf;
use std::sync::Arc;

pub struct Setup {
    pub access: Access,
    client_cas: ClientCas,
    keys: ServiceAccountKeys,
    objects: Arc<CachedObjects>,
    legacy_use: Arc<LegacyUse>,
    nodes: Arc<NodeGraph>,
    authentication: Authentication,
    authorization: Authorization,
}

impl Setup {
    /// A fork believes what was signed before it was made (`older`), and signs with a key of its own.
    pub async fn new(
        options: &Options,
        (client_cas, authorities): (ClientCas, &Authorities),
        metrics: AccessMetrics,
        clock: Arc<dyn Clock>,
        older: Option<Arc<KeySet>>,
    ) -> Result<Setup, String> {
        let who = &options.authentication;
        let keys = match older {
            Some(older) => ServiceAccountKeys::forked(&who.service_accounts, &older),
            None => ServiceAccountKeys::load(&who.service_accounts, &options.data_dir, &metrics.signer).await?,
        };
        let (objects, legacy_use) = (Arc::<CachedObjects>::default(), Arc::<LegacyUse>::default());
        let cel = Cel::new(match options.features.enabled("AuthorizeWithSelectors") {
            true => Selectors::Told,
            false => Selectors::Untold,
        });
        let sources = Sources {
            client_cas: &client_cas,
            authorities,
            keys: &keys,
            objects: &objects,
            legacy_use: &legacy_use,
            egress: &options.egress,
            cel: &cel,
            metrics: &metrics,
            clock: &clock,
        };
        // Without a rule for anybody, strangers would have all rights.
        let anonymous_allowed = !options.authorization.allows_always();
        let authentication = authentication::build(who, anonymous_allowed, &sources)?;
        let (roles, nodes) = (Arc::<RbacIndex>::default(), Arc::<NodeGraph>::default());
        let knowledge = Knowledge {
            roles: roles.clone(),
            nodes: nodes.clone(),
            features: options.features.clone(),
            route: options.egress.control_plane.clone(),
            cel,
            metrics,
            clock: clock.clone(),
        };
        let authorization = authorization::build(&options.authorization, knowledge)?;
        let policy = TokenPolicy { objects: objects.clone(), api_audiences: authentication.audiences.clone() };
        let access = Access {
            authenticator: authentication.authenticator.clone(),
            authorizer: authorization.authorizer.clone(),
            roles,
            uses_roles: authorization.uses_roles,
            audiences: authentication.audiences.as_slice().into(),
            tokens: keys.tokens(&who.service_accounts, policy, clock.clone()),
            clock,
        };
        Ok(Setup { access, client_cas, keys, objects, legacy_use, nodes, authentication, authorization })
    }

    /// What tokens of service accounts are signed with and checked against.
    pub fn keys(&self) -> KeyRing {
        self.keys.ring.clone()
    }

    /// Counts of tokens, for metrics.
    pub fn stats(&self) -> Arc<TokenStats> {
        self.authentication.stats.clone()
    }

    /// Headers of the front proxy, which go no further than authentication.
    pub fn proxy_headers(&self) -> Option<RequestHeaderNames> {
        self.authentication.proxy.as_ref().map(|p| p.names().clone())
    }

    /// What extension servers are told: authorities as they are on disk when asked for.
    pub fn published(&self, options: &AuthenticationOptions) -> Arc<dyn Fn() -> AuthenticationInfo + Send + Sync> {
        let clients = self.client_cas.files().to_vec();
        let proxy = options.request_header.clone();
        let pem = |files: &[PathBuf]| {
            let content = files::read_all(files).unwrap_or_default();
            String::from_utf8(content).unwrap_or_default()
        };
        Arc::new(move || AuthenticationInfo {
            client_ca: pem(&clients),
            request_header: proxy.as_ref().map(|proxy| RequestHeaderInfo {
                client_ca: pem(std::slice::from_ref(&proxy.client_ca_file)),
                username_headers: proxy.names.username.clone(),
                uid_headers: proxy.names.uid.clone(),
                group_headers: proxy.names.group.clone(),
                extra_header_prefixes: proxy.names.extra_prefix.clone(),
                allowed_names: proxy.allowed_names.clone(),
            }),
        })
    }

    /// `external_address` is where clients outside find this server.
    pub fn install(&self, routes: &mut Routes, external_address: &str) {
        self.keys.install(routes, external_address);
    }

    /// Whether clients can find the keys of service accounts here.
    pub fn publishes_keys(&self, external_address: &str) -> bool {
        self.keys.publishes(external_address)
    }

    /// Feeds what is known from the stored objects, and follows files, until the server ends.
    pub fn start(self, resources: &Resources, builder: &ServerBuilder) -> Result<RolesProgress, String> {
        let tasks = &builder.tasks();
        self.objects.serve(resources)?;
        self.legacy_use.serve(builder.loopback());
        self.keys.start(tasks, builder.lifecycle().has_been_ready);
        let progress = feed::roles(&self.access.roles, resources, tasks);
        feed::nodes(&self.nodes, resources, tasks);
        self.client_cas.follow(tasks);
        if let Some(proxies) = self.authentication.proxy {
            proxies.follow(tasks);
        }
        if let Some(issuers) = self.authentication.issuers {
            issuers.start(tasks);
        }
        self.authorization.start(tasks);
        Ok(progress)
    }
}
