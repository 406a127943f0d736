//! The authorizers of a configuration as one, and replacing them while the server runs.

use super::abac::AbacPolicies;
use super::builtin::{AlwaysAllow, AlwaysDeny, PrivilegedGroup};
use super::metrics::{AuthorizerMetrics, Counted, Observer};
use super::node::NodeAuthorizer;
use super::rbac::RbacAuthorizer;
use super::union::AuthorizerUnion;
use super::webhook::{AccessReviewVersion, WebhookAuthorizer, WebhookPolicy};
use crate::config::{AuthorizationConfig, AuthorizerMode, WebhookConfig};
use crate::expression::ExpressionCompiler;
use crate::remote::{Backoff, HttpFetch, ReviewClient};
use crate::traits::{Answer, Attributes, Authorizer, Decision, UserRules};
use crate::user::User;
use arc_swap::ArcSwap;
use kubelith_meta::Str;
use kubelith_meta::field::Path;
use kubelith_meta::time::Clock;
use std::sync::Arc;

/// What authorizers are made of. Those that watch objects exist from the start or not at all.
pub struct AuthorizerFactory {
    pub node: Option<Arc<NodeAuthorizer>>,
    pub rbac: Option<Arc<RbacAuthorizer>>,
    pub abac: Option<Arc<AbacPolicies>>,
    pub webhooks: Arc<dyn ConnectWebhook>,
    pub backoff: Backoff,
    pub compiler: Arc<dyn ExpressionCompiler>,
    pub metrics: Option<Arc<dyn AuthorizerMetrics>>,
    pub clock: Arc<dyn Clock>,
}

/// Opens the way to a webhook as its configuration says: a kubeconfig file, a timeout.
pub trait ConnectWebhook: Send + Sync {
    /// The client and the address to send reviews to.
    fn connect(&self, webhook: &WebhookConfig) -> Result<(Arc<dyn HttpFetch>, String), String>;
}

impl AuthorizerFactory {
    /// All of `config` in their order, behind the group that is always allowed.
    pub fn build(&self, config: &AuthorizationConfig) -> Result<Arc<dyn Authorizer>, String> {
        let mut members: Vec<Arc<dyn Authorizer>> = vec![Arc::new(PrivilegedGroup)];
        for authorizer in &config.authorizers {
            let kind = &authorizer.kind;
            let absent =
                || format!("authorizer type {kind} is not allowed if it was not enabled at initial server startup");
            let member: Arc<dyn Authorizer> = match AuthorizerMode::named(kind) {
                Some(AuthorizerMode::Node) => self.node.clone().ok_or_else(absent)?,
                Some(AuthorizerMode::Rbac) => self.rbac.clone().ok_or_else(absent)?,
                Some(AuthorizerMode::Abac) => self.abac.clone().ok_or_else(absent)?,
                Some(AuthorizerMode::AlwaysAllow) => Arc::new(AlwaysAllow),
                Some(AuthorizerMode::AlwaysDeny) => Arc::new(AlwaysDeny),
                Some(AuthorizerMode::Webhook) => Arc::new(self.webhook(&authorizer.name, authorizer.webhook.as_ref())?),
                None => return Err(format!("unknown authorization mode {kind} specified")),
            };
            members.push(match &self.metrics {
                Some(metrics) => Arc::new(Counted { inner: member, counts: metrics.decisions(kind, &authorizer.name) }),
                None => member,
            });
        }
        match members.len() {
            1 => Err("at least one authorization mode must be passed".into()),
            _ => Ok(Arc::new(AuthorizerUnion::new(members))),
        }
    }

    fn webhook(&self, name: &Str, config: Option<&WebhookConfig>) -> Result<WebhookAuthorizer, String> {
        let config = config.ok_or("required when type=Webhook")?;
        let (client, url) = self.webhooks.connect(config)?;
        let (conditions, errors) = config.compile_conditions(self.compiler.as_ref(), &Path::ROOT);
        errors.into_result().map_err(|e| e.to_string())?;
        let ttl = |kept: bool, ttl: kubelith_meta::time::Duration| match u64::try_from(ttl.as_nanos()) {
            Ok(nanos) if kept => std::time::Duration::from_nanos(nanos),
            _ => std::time::Duration::ZERO,
        };
        let policy = WebhookPolicy {
            version: AccessReviewVersion::parse(&config.review_version)?,
            authorized_ttl: ttl(config.cache_authorized, config.authorized_ttl),
            unauthorized_ttl: ttl(config.cache_unauthorized, config.unauthorized_ttl),
            on_error: config.on_error(),
            conditions,
            observer: self.metrics.clone().map(|metrics| Observer { authorizer: name.clone(), metrics }),
        };
        Ok(WebhookAuthorizer::new(ReviewClient::new(client, url, self.backoff), policy, self.clock.clone()))
    }
}

/// An authorizer that can be replaced. A question under way is answered by the one it was asked of.
pub struct SwapAuthorizer(ArcSwap<Arc<dyn Authorizer>>);

impl SwapAuthorizer {
    pub fn new(first: Arc<dyn Authorizer>) -> SwapAuthorizer {
        SwapAuthorizer(ArcSwap::from_pointee(first))
    }

    pub fn replace(&self, next: Arc<dyn Authorizer>) {
        self.0.store(Arc::new(next));
    }
}

impl Authorizer for SwapAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        let current = self.0.load_full();
        // An answer at once needs no owner; one that takes time keeps the authorizer it came from.
        if let Answer::Ready(decision) = current.authorize(attributes) {
            return Answer::Ready(decision);
        }
        Answer::pending(async move { current.authorize(attributes).await })
    }

    fn rules_for(&self, user: &User, namespace: &str) -> UserRules {
        self.0.load().rules_for(user, namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::Cel;
    use crate::json;
    use crate::remote::testing::{NO_PAUSE, Scripted, answer};
    use crate::testing::{block_on, clock_at};

    struct Hook;

    impl ConnectWebhook for Hook {
        fn connect(&self, _: &WebhookConfig) -> Result<(Arc<dyn HttpFetch>, String), String> {
            let kind = r#""apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview""#;
            let yes = answer(200, &format!(r#"{{{kind},"status":{{"allowed":true,"reason":"hook"}}}}"#));
            Ok((Scripted::new([yes]), "https://hook".into()))
        }
    }

    fn build(authorizers: &str) -> Result<Arc<dyn Authorizer>, String> {
        let factory = AuthorizerFactory {
            node: None,
            rbac: Some(Arc::new(RbacAuthorizer::new(Arc::default()))),
            abac: None,
            webhooks: Arc::new(Hook),
            backoff: NO_PAUSE,
            compiler: Arc::new(Cel::default()),
            metrics: None,
            clock: clock_at(0),
        };
        let text = format!(
            r#"{{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration","authorizers":{authorizers}}}"#
        );
        factory.build(&AuthorizationConfig::decode(&json::parse(text.as_bytes()).unwrap()).unwrap())
    }

    #[test]
    fn modes_are_asked_in_order() {
        let webhook = r#"{"type":"Webhook","name":"w","webhook":{"timeout":"1s","subjectAccessReviewVersion":"v1"}}"#;
        let ask = |authorizer: &dyn Authorizer, user: User| {
            let attributes = Attributes { user: Arc::new(user), ..Attributes::default() };
            block_on(authorizer.authorize(&attributes))
        };
        let both = build(&format!(r#"[{{"type":"RBAC","name":"rbac"}},{webhook}]"#)).unwrap();
        assert_eq!(ask(both.as_ref(), User::named("x")), Decision::allow("hook"));
        let deny = build(r#"[{"type":"AlwaysDeny","name":"alwaysdeny"}]"#).unwrap();
        assert_eq!(ask(deny.as_ref(), User::named("x").with_groups(&["system:masters"])), Decision::allow(""));
        assert_eq!(ask(deny.as_ref(), User::named("x")), Decision::no_opinion("Everything is forbidden."));
        assert_eq!(
            build(r#"[{"type":"Node","name":"node"}]"#).err().unwrap(),
            "authorizer type Node is not allowed if it was not enabled at initial server startup"
        );
        assert_eq!(build("[]").err().unwrap(), "at least one authorization mode must be passed");
    }

    #[test]
    fn replaced_while_running() {
        let swap = SwapAuthorizer::new(build(r#"[{"type":"AlwaysDeny","name":"alwaysdeny"}]"#).unwrap());
        let attributes = Attributes::default();
        assert!(!block_on(swap.authorize(&attributes)).allowed());
        swap.replace(build(r#"[{"type":"AlwaysAllow","name":"alwaysallow"}]"#).unwrap());
        assert!(block_on(swap.authorize(&attributes)).allowed());
        assert_eq!(swap.rules_for(&User::default(), "").resource_rules.len(), 1);
    }
}
