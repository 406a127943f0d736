//! What is wrong with an AuthenticationConfiguration, and the compiled form of its expressions.

use super::authentication::{AuthenticationConfig, ExtraMapping, IssuerConfig, JwtConfig, Mapping, Rule};
use crate::authn::x509::CaPool;
use crate::expression::{Expression, ExpressionCompiler, ResultKind, Subject};
use kubelith_meta::Str;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::validate_domain_prefixed_path;
use std::collections::HashSet;
use std::sync::Arc;

const MAX_ISSUERS: usize = 64;

/// The expressions of one issuer, ready to run.
#[derive(Clone, Default)]
pub struct CompiledJwt {
    pub username: Option<Arc<dyn Expression>>,
    pub groups: Option<Arc<dyn Expression>>,
    pub uid: Option<Arc<dyn Expression>>,
    /// With the key of the extra and the expression's text.
    pub extra: Vec<(ExtraMapping, Arc<dyn Expression>)>,
    pub claim_rules: Vec<(Rule, Arc<dyn Expression>)>,
    pub user_rules: Vec<(Rule, Arc<dyn Expression>)>,
}

impl CompiledJwt {
    /// Whether an expression looks at claims.
    pub fn uses_claims(&self) -> bool {
        let one = [&self.username, &self.groups, &self.uid].into_iter().any(Option::is_some);
        one || !self.extra.is_empty() || !self.claim_rules.is_empty()
    }
}

/// Checks a configuration. `disallowed` are the issuers of service account tokens, which must not be taken over.
pub fn validate(config: &AuthenticationConfig, disallowed: &[String], compiler: &dyn ExpressionCompiler) -> ErrorList {
    let mut errors = ErrorList::new();
    let root = Path::new("jwt");
    if config.jwt.len() > MAX_ISSUERS {
        errors.push(Error::too_many(&root, config.jwt.len(), MAX_ISSUERS));
        return errors;
    }
    let (mut urls, mut discovery_urls) = (HashSet::new(), HashSet::new());
    for (i, jwt) in config.jwt.iter().enumerate() {
        let path = root.index(i);
        errors.extend(compile(jwt, disallowed, compiler, &path).1);
        let issuer = path.child("issuer");
        if !urls.insert(&jwt.issuer.url) {
            errors.push(Error::duplicate(&issuer.child("url"), jwt.issuer.url.clone()));
        }
        let discovery = &jwt.issuer.discovery_url;
        if !discovery.is_empty() && !discovery_urls.insert(discovery) {
            errors.push(Error::duplicate(&issuer.child("discoveryURL"), discovery.clone()));
        }
    }
    if let Some(anonymous) = config.anonymous.as_ref().filter(|a| !a.enabled && !a.paths.is_empty()) {
        let paths: Vec<String> =
            anonymous.paths.iter().map(|p| format!("{{\"Path\":{}}}", crate::json::write(&p.clone().into()))).collect();
        let value = BadValue::text(format!("[{}]", paths.join(",")));
        let detail = "enabled should be set to true when conditions are defined";
        errors.push(Error::invalid(&Path::of(&["anonymous", "conditions"]), value, detail));
    }
    errors
}

/// Checks one issuer and compiles its expressions.
pub fn compile(
    jwt: &JwtConfig,
    disallowed: &[String],
    compiler: &dyn ExpressionCompiler,
    path: &Path<'_>,
) -> (CompiledJwt, ErrorList) {
    let mut check = Check { compiler, errors: ErrorList::new(), compiled: CompiledJwt::default() };
    check.issuer(&jwt.issuer, disallowed, &path.child("issuer"));
    check.claim_rules(jwt, &path.child("claimValidationRules"));
    check.mappings(jwt, &path.child("claimMappings"));
    check.user_rules(&jwt.user_rules, &path.child("userValidationRules"));
    (check.compiled, check.errors)
}

struct Check<'a> {
    compiler: &'a dyn ExpressionCompiler,
    errors: ErrorList,
    compiled: CompiledJwt,
}

impl Check<'_> {
    fn issuer(&mut self, issuer: &IssuerConfig, disallowed: &[String], path: &Path<'_>) {
        match issuer.url.as_str() {
            "" => self.errors.push(Error::required(&path.child("url"), "")),
            url => self.url(url, disallowed, &path.child("url")),
        }
        if !issuer.discovery_url.is_empty() {
            let path = path.child("discoveryURL");
            let (url, discovery) = (issuer.url.as_str(), issuer.discovery_url.as_str());
            if !url.is_empty() && url.trim_end_matches('/') == discovery.trim_end_matches('/') {
                self.errors.push(Error::invalid(&path, discovery, "discoveryURL must be different from URL"));
            }
            self.url(discovery, &[], &path);
        }
        self.audiences(issuer, path);
        if !issuer.certificate_authority.is_empty()
            && let Err(e) = CaPool::from_pem(issuer.certificate_authority.as_bytes())
        {
            self.errors.push(Error::invalid(&path.child("certificateAuthority"), "<omitted>", e));
        }
        let egress = issuer.egress_selector_type.as_str();
        if !matches!(egress, "" | "controlplane" | "cluster") {
            let detail = "egress selector must be either controlplane or cluster";
            self.errors.push(Error::invalid(&path.child("egressSelectorType"), BadValue::json(egress), detail));
        }
    }

    fn url(&mut self, url: &str, disallowed: &[String], path: &Path<'_>) {
        let mut wrong = |detail: String| self.errors.push(Error::invalid(path, url, detail));
        if disallowed.iter().any(|d| d == url) {
            let mut sorted = disallowed.to_vec();
            sorted.sort();
            sorted.dedup();
            wrong(format!("URL must not overlap with disallowed issuers: [{}]", sorted.join(" ")));
        }
        let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
        if !scheme.eq_ignore_ascii_case("https") {
            wrong("URL scheme must be https".into());
        }
        let authority = rest.strip_prefix("//").and_then(|r| r.split('/').next()).unwrap_or("");
        if authority.contains('@') {
            wrong("URL must not contain a username or password".into());
        }
        if !query.is_empty() {
            wrong("URL must not contain a query".into());
        }
        if !fragment.is_empty() {
            wrong("URL must not contain a fragment".into());
        }
    }

    fn audiences(&mut self, issuer: &IssuerConfig, path: &Path<'_>) {
        let list = path.child("audiences");
        if issuer.audiences.is_empty() {
            self.errors.push(Error::required(&list, format!("at least one {list} is required")));
            return;
        }
        let mut seen = HashSet::new();
        for (i, audience) in issuer.audiences.iter().enumerate() {
            if audience.is_empty() {
                self.errors.push(Error::required(&list.index(i), ""));
            }
            if !seen.insert(audience) {
                self.errors.push(Error::duplicate(&list.index(i), audience.clone()));
            }
        }
        let policy = issuer.audience_match_policy.as_str();
        let detail = match (issuer.audiences.len(), policy) {
            (_, "MatchAny") | (1, "") => return,
            (1, _) => "audienceMatchPolicy must be empty or MatchAny for single audience",
            _ => "audienceMatchPolicy must be MatchAny for multiple audiences",
        };
        self.errors.push(Error::invalid(&path.child("audienceMatchPolicy"), BadValue::json(policy), detail));
    }

    fn claim_rules(&mut self, jwt: &JwtConfig, path: &Path<'_>) {
        let (mut claims, mut expressions) = (HashSet::new(), HashSet::new());
        for (i, rule) in jwt.claim_rules.iter().enumerate() {
            let path = path.index(i);
            let (expression, message) = (&rule.rule.expression, &rule.rule.message);
            match (rule.claim.is_empty(), expression.is_empty()) {
                (false, false) => {
                    let detail = "claim and expression can't both be set";
                    self.errors.push(Error::invalid(&path, rule.claim.clone(), detail));
                }
                (true, true) => self.errors.push(Error::required(&path, "claim or expression is required")),
                (false, true) => {
                    if !message.is_empty() {
                        let detail = "may not be specified when claim is set";
                        self.errors.push(Error::invalid(&path.child("message"), message.clone(), detail));
                    }
                    if !claims.insert(&rule.claim) {
                        self.errors.push(Error::duplicate(&path.child("claim"), rule.claim.clone()));
                    }
                }
                (true, false) => {
                    if !rule.required_value.is_empty() {
                        let (at, detail) = (path.child("requiredValue"), "may not be specified when expression is set");
                        self.errors.push(Error::invalid(&at, rule.required_value.clone(), detail));
                    }
                    let at = path.child("expression");
                    if !expressions.insert(expression) {
                        self.errors.push(Error::duplicate(&at, expression.clone()));
                    } else if let Some(compiled) = self.expression(expression, Subject::Claims, ResultKind::Bool, &at) {
                        self.compiled.claim_rules.push((rule.rule.clone(), compiled));
                    }
                }
            }
        }
    }

    fn mappings(&mut self, jwt: &JwtConfig, path: &Path<'_>) {
        self.compiled.username = self.mapping(&jwt.username, true, &path.child("username"));
        self.compiled.groups = self.mapping(&jwt.groups, false, &path.child("groups"));
        let uid = path.child("uid");
        match (jwt.uid.claim.is_empty(), jwt.uid.expression.is_empty()) {
            (false, false) => self.errors.push(Error::invalid(&uid, "", "claim and expression can't both be set")),
            (true, false) => {
                let (text, at) = (&jwt.uid.expression, uid.child("expression"));
                self.compiled.uid = self.expression(text, Subject::Claims, ResultKind::Any, &at);
            }
            _ => {}
        }
        self.extra(&jwt.extra, path);
        self.verified_email(jwt, path);
    }

    fn mapping(&mut self, mapping: &Mapping, required: bool, path: &Path<'_>) -> Option<Arc<dyn Expression>> {
        match (mapping.claim.is_empty(), mapping.expression.is_empty()) {
            (false, false) => {
                self.errors.push(Error::invalid(path, "", "claim and expression can't both be set"));
            }
            (true, true) if required => self.errors.push(Error::required(path, "claim or expression is required")),
            (true, true) => {}
            (true, false) => {
                if let Some(prefix) = &mapping.prefix {
                    let detail = "may not be specified when expression is set";
                    self.errors.push(Error::invalid(&path.child("prefix"), prefix.clone(), detail));
                }
                let (text, at) = (&mapping.expression, path.child("expression"));
                let compiled = self.expression(text, Subject::Claims, ResultKind::Any, &at);
                // One with a prefix is not looked at any further.
                return compiled.filter(|_| mapping.prefix.is_none());
            }
            (false, true) if mapping.prefix.is_none() => {
                let detail =
                    "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                self.errors.push(Error::required(&path.child("prefix"), detail));
            }
            (false, true) => {}
        }
        None
    }

    fn extra(&mut self, extra: &[ExtraMapping], path: &Path<'_>) {
        let mut keys = HashSet::new();
        for (i, mapping) in extra.iter().enumerate() {
            let path = path.item("extra", i);
            let (at, key) = (path.child("key"), mapping.key.as_str());
            self.errors.extend(validate_domain_prefixed_path(key, &at));
            if key.to_lowercase() != key {
                self.errors.push(Error::invalid(&at, key, "must be lowercase"));
            }
            if is_reserved(key) {
                let detail = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
                self.errors.push(Error::invalid(&at, key, detail));
            }
            if !keys.insert(key) {
                self.errors.push(Error::duplicate(&at, key));
                continue;
            }
            let at = path.child("valueExpression");
            if mapping.expression.is_empty() {
                self.errors.push(Error::required(&at, ""));
                continue;
            }
            let compiled = self.expression(&mapping.expression, Subject::Claims, ResultKind::Any, &at);
            self.compiled.extra.extend(compiled.map(|c| (mapping.clone(), c)));
        }
    }

    /// A mail address is a name only if the issuer has verified it, so somebody must look at that claim.
    fn verified_email(&mut self, jwt: &JwtConfig, path: &Path<'_>) {
        let compiled = &self.compiled;
        let uses_email = compiled.username.as_ref().is_some_and(|e| e.reads("email"));
        let checks = compiled.username.iter().chain(compiled.extra.iter().map(|(_, e)| e));
        let mut checks = checks.chain(compiled.claim_rules.iter().map(|(_, e)| e));
        if uses_email && !checks.any(|e| e.reads("email_verified")) {
            let detail = "claims.email_verified must be used in claimMappings.username.expression or \
                          claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when \
                          claims.email is used in claimMappings.username.expression";
            let at = path.children(&["username", "expression"]);
            self.errors.push(Error::invalid(&at, jwt.username.expression.clone(), detail));
        }
    }

    fn user_rules(&mut self, rules: &[Rule], path: &Path<'_>) {
        let mut seen = HashSet::new();
        for (i, rule) in rules.iter().enumerate() {
            let path = path.index(i);
            let at = path.child("expression");
            if rule.expression.is_empty() {
                self.errors.push(Error::required(&at, ""));
            } else if !seen.insert(&rule.expression) {
                self.errors.push(Error::duplicate(&at, rule.expression.clone()));
            } else if let Some(compiled) = self.expression(&rule.expression, Subject::User, ResultKind::Bool, &at) {
                self.compiled.user_rules.push((rule.clone(), compiled));
            }
        }
    }

    fn expression(
        &mut self,
        text: &Str,
        subject: Subject,
        result: ResultKind,
        path: &Path<'_>,
    ) -> Option<Arc<dyn Expression>> {
        match self.compiler.compile(text, subject, result) {
            Ok(compiled) => Some(compiled),
            Err(e) => {
                self.errors.push(e.at(path, text));
                None
            }
        }
    }
}

fn is_reserved(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else { return false };
    ["kubernetes.io", "k8s.io"]
        .into_iter()
        .any(|reserved| domain.strip_suffix(reserved).is_some_and(|d| d.is_empty() || d.ends_with('.')))
}

#[cfg(test)]
#[path = "authentication_tests.rs"]
mod tests;
