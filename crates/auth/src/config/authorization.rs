//! AuthorizationConfiguration: which authorizers are asked, in which order.

use super::read::{Reader, document};
use crate::authz::webhook::Conditions;
use crate::expression::{ExpressionCompiler, ResultKind, Subject};
use crate::traits::Verdict;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::is_dns1123_subdomain;
use kubelith_meta::time::Duration;
use kubelith_meta::{Str, Value, text};
use std::collections::HashSet;

const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const MAX_CONDITIONS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AuthorizerMode {
    Abac,
    AlwaysAllow,
    AlwaysDeny,
    Node,
    Rbac,
    Webhook,
}

impl AuthorizerMode {
    /// By name, as they are listed in messages.
    const ALL: [(&'static str, AuthorizerMode); 6] = [
        ("ABAC", AuthorizerMode::Abac),
        ("AlwaysAllow", AuthorizerMode::AlwaysAllow),
        ("AlwaysDeny", AuthorizerMode::AlwaysDeny),
        ("Node", AuthorizerMode::Node),
        ("RBAC", AuthorizerMode::Rbac),
        ("Webhook", AuthorizerMode::Webhook),
    ];

    pub fn named(name: &str) -> Option<AuthorizerMode> {
        AuthorizerMode::ALL.iter().find(|(n, _)| *n == name).map(|(_, mode)| *mode)
    }

    pub fn name(self) -> &'static str {
        AuthorizerMode::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(n, _)| n)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthorizationConfig {
    pub authorizers: Vec<AuthorizerConfig>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthorizerConfig {
    /// A name of [`AuthorizerMode`], once validated.
    pub kind: Str,
    pub name: Str,
    pub webhook: Option<WebhookConfig>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WebhookConfig {
    pub authorized_ttl: Duration,
    pub cache_authorized: bool,
    pub unauthorized_ttl: Duration,
    pub cache_unauthorized: bool,
    pub timeout: Duration,
    pub review_version: Str,
    pub condition_review_version: Str,
    pub failure_policy: Str,
    pub connection_type: Str,
    pub kubeconfig_file: Option<Str>,
    /// Expressions, all of which must be true for the webhook to be asked.
    pub match_conditions: Vec<Str>,
}

impl AuthorizationConfig {
    /// Decodes the file's content and fills in defaults.
    pub fn decode(value: &Value) -> Result<AuthorizationConfig, String> {
        let mut reader = document(value, "AuthorizationConfiguration", &VERSIONS)?;
        let authorizers = reader.objects("authorizers", |r| {
            Ok(AuthorizerConfig {
                kind: r.text("type")?,
                name: r.text("name")?,
                webhook: r.optional_object("webhook", WebhookConfig::decode)?,
            })
        })?;
        reader.finish()?;
        Ok(AuthorizationConfig { authorizers })
    }

    /// Checks it. `required` are the modes that a reload must not lose.
    pub fn validate(&self, compiler: &dyn ExpressionCompiler, required: &[AuthorizerMode]) -> Result<(), String> {
        let errors = self.errors(compiler);
        if !errors.is_empty() {
            return Err(errors.to_string());
        }
        let modes = || self.authorizers.iter().filter_map(|a| Some((a, AuthorizerMode::named(&a.kind)?)));
        let mut messages: Vec<String> = Vec::new();
        for (authorizer, mode) in modes().filter(|(_, mode)| *mode != AuthorizerMode::Webhook) {
            let expected = mode.name().to_ascii_lowercase();
            if authorizer.name != expected {
                let (kind, name) = (mode.name(), &authorizer.name);
                messages.push(format!("expected name {expected} for authorizer {kind} instead of {name}"));
            }
        }
        let mut missing: Vec<&str> = required
            .iter()
            .filter(|r| **r != AuthorizerMode::Webhook && !modes().any(|(_, mode)| mode == **r))
            .map(|r| r.name())
            .collect();
        missing.sort_unstable();
        if !missing.is_empty() {
            messages.push(format!("missing required types: [{}]", missing.join(" ")));
        }
        if messages.is_empty() { Ok(()) } else { Err(text::aggregate(messages)) }
    }

    fn errors(&self, compiler: &dyn ExpressionCompiler) -> ErrorList {
        let mut errors = ErrorList::new();
        let root = Path::new("authorizers");
        if self.authorizers.is_empty() {
            errors.push(Error::required(&root, "at least one authorization mode must be defined"));
        }
        let (mut kinds, mut names) = (HashSet::new(), HashSet::new());
        for (i, authorizer) in self.authorizers.iter().enumerate() {
            let path = root.index(i);
            let (at, kind) = (path.child("type"), authorizer.kind.as_str());
            if kind.is_empty() {
                errors.push(Error::required(&at, ""));
                continue;
            }
            let Some(mode) = AuthorizerMode::named(kind) else {
                let known = AuthorizerMode::ALL.map(|(name, _)| name);
                errors.push(Error::not_supported(&at, kind, known));
                continue;
            };
            if !kinds.insert(kind) && mode != AuthorizerMode::Webhook {
                errors.push(Error::duplicate(&at, kind));
                continue;
            }
            check_name(&authorizer.name, &mut names, &path.child("name"), &mut errors);
            match (&authorizer.webhook, mode) {
                (Some(webhook), AuthorizerMode::Webhook) => webhook.validate(compiler, &path, &mut errors),
                (None, AuthorizerMode::Webhook) => {
                    errors.push(Error::required(&path.child("webhook"), "required when type=Webhook"));
                }
                (Some(_), _) => {
                    let detail = "may only be specified when type=Webhook";
                    errors.push(Error::invalid(&path.child("webhook"), "non-null", detail));
                }
                (None, _) => {}
            }
        }
        errors
    }
}

fn check_name<'a>(name: &'a str, seen: &mut HashSet<&'a str>, path: &Path<'_>, errors: &mut ErrorList) {
    let wrong = is_dns1123_subdomain(name);
    if name.is_empty() {
        errors.push(Error::required(path, ""));
    } else if seen.contains(name) {
        errors.push(Error::duplicate(path, name));
    } else if !wrong.is_empty() {
        errors.push(Error::invalid(path, name, format!("authorizer name is invalid: {}", wrong.join(", "))));
    }
    seen.insert(name);
}

impl WebhookConfig {
    fn decode(r: &mut Reader<'_>) -> Result<WebhookConfig, String> {
        let or = |duration: Duration, default: i64| {
            if duration == Duration::ZERO { Duration::from_secs(default) } else { duration }
        };
        let (authorized, unauthorized) = (duration(r, "authorizedTTL")?, duration(r, "unauthorizedTTL")?);
        let (connection_type, kubeconfig_file) =
            r.object("connectionInfo", |r| Ok((r.text("type")?, r.optional_text("kubeConfigFile")?)))?;
        Ok(WebhookConfig {
            authorized_ttl: or(authorized, 300),
            cache_authorized: r.optional_flag("cacheAuthorizedRequests")?.unwrap_or(true),
            unauthorized_ttl: or(unauthorized, 30),
            cache_unauthorized: r.optional_flag("cacheUnauthorizedRequests")?.unwrap_or(true),
            timeout: duration(r, "timeout")?,
            review_version: r.text("subjectAccessReviewVersion")?,
            condition_review_version: r.text("matchConditionSubjectAccessReviewVersion")?,
            failure_policy: r.text("failurePolicy")?,
            connection_type,
            kubeconfig_file,
            match_conditions: r.objects("matchConditions", |r| r.text("expression"))?,
        })
    }

    /// What counts if the webhook cannot be asked.
    pub fn on_error(&self) -> Verdict {
        if self.failure_policy == "Deny" { Verdict::Deny } else { Verdict::NoOpinion }
    }

    fn validate(&self, compiler: &dyn ExpressionCompiler, path: &Path<'_>, errors: &mut ErrorList) {
        let (zero, max) = (Duration::ZERO, Duration::from_secs(30));
        match self.timeout {
            t if t == zero => errors.push(Error::required(&path.child("timeout"), "")),
            t if t > max || t < zero => {
                errors.push(Error::invalid(&path.child("timeout"), t.to_string(), "must be > 0s and <= 30s"));
            }
            _ => {}
        }
        for (key, ttl) in [("authorizedTTL", self.authorized_ttl), ("unauthorizedTTL", self.unauthorized_ttl)] {
            if ttl < zero {
                errors.push(Error::invalid(&path.child(key), ttl.to_string(), "must be > 0s"));
            }
        }
        one_of(&self.review_version, &["v1", "v1beta1"], &path.child("subjectAccessReviewVersion"), errors);
        let condition_version = path.child("matchConditionSubjectAccessReviewVersion");
        match self.condition_review_version.as_str() {
            "" if self.match_conditions.is_empty() => {}
            "" => errors.push(Error::required(&condition_version, "required if match conditions are specified")),
            version => one_of(version, &["v1"], &condition_version, errors),
        }
        one_of(&self.failure_policy, &["NoOpinion", "Deny"], &path.child("failurePolicy"), errors);
        self.validate_connection(&path.child("connectionInfo"), errors);
        errors.extend(self.compile_conditions(compiler, path).1);
    }

    fn validate_connection(&self, path: &Path<'_>, errors: &mut ErrorList) {
        let file = path.child("kubeConfigFile");
        match (self.connection_type.as_str(), self.kubeconfig_file.as_deref()) {
            ("", _) => errors.push(Error::required(&path.child("type"), "")),
            ("InClusterConfig", None) => {}
            ("InClusterConfig", Some(name)) => {
                errors.push(Error::invalid(&file, name, "can only be set when type=KubeConfigFile"));
            }
            ("KubeConfigFile", None | Some("")) => errors.push(Error::required(&file, "")),
            ("KubeConfigFile", Some(name)) if !name.starts_with('/') => {
                errors.push(Error::invalid(&file, name, "must be an absolute path"));
            }
            ("KubeConfigFile", Some(name)) => match std::fs::metadata(name) {
                Err(e) => errors.push(Error::invalid(&file, name, format!("error loading file: {e}"))),
                Ok(info) if !info.is_file() => errors.push(Error::invalid(&file, name, "must be a regular file")),
                Ok(_) => {}
            },
            (kind, name) => {
                // The reference prints the whole object where it means its type.
                let name = name.map_or("null".to_string(), |n| crate::json::write(&n.into()));
                let value = format!("{{\"Type\":{},\"KubeConfigFile\":{name}}}", crate::json::write(&kind.into()));
                let known = ["InClusterConfig", "KubeConfigFile"];
                errors.push(Error::not_supported(&path.child("type"), BadValue::text(value), known));
            }
        }
    }

    /// The conditions, ready to run, and what is wrong with them.
    pub fn compile_conditions(&self, compiler: &dyn ExpressionCompiler, path: &Path<'_>) -> (Conditions, ErrorList) {
        let (mut compiled, mut errors) = (Conditions::default(), ErrorList::new());
        if self.match_conditions.len() > MAX_CONDITIONS {
            errors.push(Error::too_many(&path.child("matchConditions"), self.match_conditions.len(), MAX_CONDITIONS));
            return (compiled, errors);
        }
        let mut seen = HashSet::new();
        for (i, text) in self.match_conditions.iter().enumerate() {
            let item = path.item("matchConditions", i);
            let at = item.child("expression");
            if text.trim().is_empty() {
                errors.push(Error::required(&at, ""));
            } else if !seen.insert(text) {
                errors.push(Error::duplicate(&at, text.clone()));
            } else {
                match compiler.compile(text, Subject::AccessReview, ResultKind::Bool) {
                    Ok(expression) => compiled.0.push((text.clone(), expression)),
                    Err(e) => errors.push(e.at(&at, text)),
                }
            }
        }
        (compiled, errors)
    }
}

fn one_of(value: &str, known: &[&str], path: &Path<'_>, errors: &mut ErrorList) {
    if value.is_empty() {
        errors.push(Error::required(path, ""));
    } else if !known.contains(&value) {
        errors.push(Error::not_supported(path, value, known));
    }
}

fn duration(r: &mut Reader<'_>, key: &'static str) -> Result<Duration, String> {
    match r.text(key)?.as_str() {
        "" => Ok(Duration::ZERO),
        text => Duration::parse(text).map_err(|e| e.to_string()),
    }
}

#[cfg(test)]
#[path = "authorization_tests.rs"]
mod tests;
