//! Who may what: the authorizers that the options ask for, in their order, and a configuration file that is followed.

use super::files::{self, Followed};
use super::metrics::{AccessMetrics, ReloadMetrics};
use crate::options::{AuthorizationOptions, ModeOptions};
use kubelith_auth::Authorizer;
use kubelith_auth::authz::abac::AbacPolicies;
use kubelith_auth::authz::build::{AuthorizerFactory, ConnectWebhook, SwapAuthorizer};
use kubelith_auth::authz::node::{NodeAuthorizer, NodeGraph};
use kubelith_auth::authz::rbac::{RbacAuthorizer, RbacIndex};
use kubelith_auth::clock::Clock;
use kubelith_auth::config::authorization::{AuthorizationConfig, AuthorizerConfig, AuthorizerMode, WebhookConfig};
use kubelith_auth::expression::Cel;
use kubelith_auth::remote::{Backoff, HttpFetch};
use kubelith_features::FeatureGates;
use kubelith_meta::time::Duration;
use kubelith_outbound::client::Kubeconfig;
use kubelith_outbound::egress::Route;
use kubelith_server::lifecycle::Tasks;
use kubelith_tls::Flaws;
use kubelith_tls::files::unopened;
use std::path::Path;
use std::sync::Arc;

/// What authorizers look things up in.
pub struct Knowledge {
    pub roles: Arc<RbacIndex>,
    pub nodes: Arc<NodeGraph>,
    pub features: FeatureGates,
    /// The way to webhooks.
    pub route: Route,
    /// Compiles conditions.
    pub cel: Cel,
    pub metrics: AccessMetrics,
    pub clock: Arc<dyn Clock>,
}

pub struct Authorization {
    pub authorizer: Arc<dyn Authorizer>,
    /// Whether RBAC is among those that are asked.
    pub uses_roles: bool,
    reload: Option<Reload>,
}

/// A configuration file and what is built from it.
struct Reload {
    file: Followed,
    factory: AuthorizerFactory,
    /// A reload may not lose these.
    required: Vec<AuthorizerMode>,
    target: Arc<SwapAuthorizer>,
    cel: Cel,
    metrics: ReloadMetrics,
}

pub fn build(options: &AuthorizationOptions, knowledge: Knowledge) -> Result<Authorization, String> {
    match options {
        AuthorizationOptions::Modes(modes) => {
            let policy_file = modes.policy_file.as_deref();
            let config = from_modes(modes);
            let authorizer = factory(&config, policy_file, knowledge)?.build(&config)?;
            Ok(Authorization { authorizer, uses_roles: uses_roles(&config), reload: None })
        }
        AuthorizationOptions::File(path) => {
            let file = Followed::read(vec![path.clone()])?;
            let (cel, metrics) = (knowledge.cel.clone(), knowledge.metrics.authorization.clone());
            let config = read_config(file.content(), &[], &cel)?;
            let factory = factory(&config, None, knowledge)?;
            let uses_roles = uses_roles(&config);
            let target = Arc::new(SwapAuthorizer::new(factory.build(&config)?));
            let modes = config.authorizers.iter().filter_map(|a| AuthorizerMode::named(&a.kind));
            let required = modes.filter(|m| *m != AuthorizerMode::Webhook).collect();
            metrics.in_force(file.content());
            let reload = Reload { file, factory, required, target: target.clone(), cel, metrics };
            Ok(Authorization { authorizer: target, uses_roles, reload: Some(reload) })
        }
    }
}

fn uses_roles(config: &AuthorizationConfig) -> bool {
    config.authorizers.iter().any(|a| AuthorizerMode::named(&a.kind) == Some(AuthorizerMode::Rbac))
}

impl Authorization {
    /// Follows the configuration file, if there is one.
    pub fn start(self, tasks: &Tasks) {
        if let Some(mut reload) = self.reload {
            files::every_interval(tasks, "authorization-config-reload", move || reload.run());
        }
    }
}

impl Reload {
    /// Takes a changed file over. A bad one is reported once and passed over.
    fn run(&mut self) -> Result<(), String> {
        let Some(content) = self.file.changed()? else { return Ok(()) };
        self.file.accept(content);
        let taken = read_config(self.file.content(), &self.required, &self.cel)
            .and_then(|config| self.factory.build(&config).map(|built| self.target.replace(built)));
        match taken {
            Ok(()) => {
                self.metrics.reloaded(self.file.content());
                tracing::info!("reloaded authz config");
            }
            Err(_) => self.metrics.failed(),
        }
        taken
    }
}

fn read_config(content: &[u8], required: &[AuthorizerMode], cel: &Cel) -> Result<AuthorizationConfig, String> {
    if content.trim_ascii().is_empty() {
        return Err("empty config data".into());
    }
    let document = kubelith_codec::yaml::read(content).map_err(|e| e.to_string())?;
    let config = AuthorizationConfig::decode(&document.value)?;
    config.validate(cel, required)?;
    Ok(config)
}

/// What the flags say, as a file would.
fn from_modes(options: &ModeOptions) -> AuthorizationConfig {
    let authorizer = |mode: &String| AuthorizerConfig {
        kind: mode.into(),
        name: mode.to_ascii_lowercase().into(),
        webhook: (mode == "Webhook").then(|| WebhookConfig {
            authorized_ttl: span(options.authorized_ttl),
            cache_authorized: true,
            unauthorized_ttl: span(options.unauthorized_ttl),
            cache_unauthorized: true,
            timeout: Duration::from_secs(30),
            review_version: options.webhook_version.as_str().into(),
            condition_review_version: "".into(),
            failure_policy: "NoOpinion".into(),
            connection_type: "KubeConfigFile".into(),
            kubeconfig_file: options.webhook_file.as_ref().map(|f| f.display().to_string().into()),
            match_conditions: Vec::new(),
        }),
    };
    AuthorizationConfig { authorizers: options.modes.iter().map(authorizer).collect() }
}

fn span(duration: std::time::Duration) -> Duration {
    Duration::from_nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}

fn factory(
    config: &AuthorizationConfig,
    policy_file: Option<&Path>,
    knowledge: Knowledge,
) -> Result<AuthorizerFactory, String> {
    let has = |mode: AuthorizerMode| config.authorizers.iter().any(|a| a.kind == mode.name());
    let abac = match policy_file.filter(|_| has(AuthorizerMode::Abac)) {
        None => None,
        Some(file) => {
            let path = file.display().to_string();
            let text = std::fs::read_to_string(file).map_err(|e| unopened(file, &e))?;
            Some(Arc::new(AbacPolicies::parse(&text, &path)?))
        }
    };
    Ok(AuthorizerFactory {
        node: has(AuthorizerMode::Node).then(|| Arc::new(NodeAuthorizer::new(knowledge.nodes, &knowledge.features))),
        rbac: has(AuthorizerMode::Rbac).then(|| Arc::new(RbacAuthorizer::new(knowledge.roles))),
        abac,
        webhooks: Arc::new(Connect { route: knowledge.route, flaws: knowledge.metrics.webhooks }),
        backoff: Backoff::default(),
        compiler: Arc::new(knowledge.cel),
        metrics: Some(knowledge.metrics.authorizers),
        clock: knowledge.clock,
    })
}

struct Connect {
    route: Route,
    flaws: Arc<Flaws>,
}

impl ConnectWebhook for Connect {
    fn connect(&self, webhook: &WebhookConfig) -> Result<(Arc<dyn HttpFetch>, String), String> {
        let Some(file) = webhook.kubeconfig_file.as_ref().filter(|_| webhook.connection_type == "KubeConfigFile")
        else {
            return Err(format!("connection type {} is not supported", webhook.connection_type));
        };
        let mut kubeconfig = Kubeconfig::load(Path::new(file.as_str()))?;
        kubeconfig.tls.flaws = Some(self.flaws.clone());
        let timeout = std::time::Duration::from_nanos(u64::try_from(webhook.timeout.as_nanos()).unwrap_or(0));
        Ok((Arc::new(kubeconfig.client(&self.route, timeout)?), kubeconfig.server))
    }
}
