//! Tokens that a webhook knows: it is sent a TokenReview.

use super::audience::intersect;
use crate::error::AuthError;
use crate::remote::ReviewClient;
use crate::traits::{Answer, AuthResponse, Authentication, TokenAuthenticator};
use crate::user::User;
use kubelith_meta::{Map, Str, Value};
use std::sync::Arc;

/// Versions of authentication.k8s.io that a webhook may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenReviewVersion {
    V1,
    V1Beta1,
}

impl TokenReviewVersion {
    /// Reads `--authentication-token-webhook-version`.
    pub fn parse(version: &str) -> Result<TokenReviewVersion, String> {
        match version {
            "v1" => Ok(TokenReviewVersion::V1),
            "v1beta1" => Ok(TokenReviewVersion::V1Beta1),
            other => Err(format!(
                "unsupported authentication webhook version {}, supported versions are \"v1\", \"v1beta1\"",
                kubelith_meta::text::quote(other)
            )),
        }
    }
}

pub struct WebhookTokens {
    client: ReviewClient,
    version: TokenReviewVersion,
    /// Audiences of a token if the webhook names none.
    implicit_audiences: Vec<Str>,
}

impl WebhookTokens {
    pub fn new(client: ReviewClient, version: TokenReviewVersion, implicit_audiences: Vec<Str>) -> WebhookTokens {
        WebhookTokens { client, version, implicit_audiences }
    }

    async fn ask(&self, token: &str, audiences: &[Str]) -> Authentication {
        let status = self.client.review(&self.review(token, audiences), |_, _| {}).await?;
        let mut granted = Vec::new();
        if !audiences.is_empty() {
            let named = crate::reviews::strings(status.get("audiences"));
            let have = if named.is_empty() { &self.implicit_audiences } else { &named };
            granted = intersect(have, audiences);
            if granted.is_empty() {
                return Ok(None);
            }
        }
        if status.get("authenticated").and_then(Value::as_bool) != Some(true) {
            return match status.str_at(&["error"]) {
                "" => Ok(None),
                error => Err(AuthError::new(error)),
            };
        }
        let user = User {
            name: status.str_at(&["user", "username"]).into(),
            uid: status.str_at(&["user", "uid"]).into(),
            groups: crate::reviews::strings(status.at(&["user", "groups"])),
            extra: crate::reviews::extra(status.at(&["user", "extra"])),
        };
        Ok(Some(AuthResponse { user: Arc::new(user), audiences: granted, notes: Default::default() }))
    }

    fn review(&self, token: &str, audiences: &[Str]) -> Value {
        let version = match self.version {
            TokenReviewVersion::V1 => "authentication.k8s.io/v1",
            TokenReviewVersion::V1Beta1 => "authentication.k8s.io/v1beta1",
        };
        let mut spec = Map::from_iter([("token", token)]);
        if !audiences.is_empty() {
            spec.insert("audiences", audiences.to_vec());
        }
        Value::from([
            ("apiVersion", Value::from(version)),
            ("kind", "TokenReview".into()),
            ("metadata", Value::object()),
            ("spec", spec.into()),
            ("status", Value::from([("user", Value::object())])),
        ])
    }
}

impl TokenAuthenticator for WebhookTokens {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [Str]) -> Answer<'a, Authentication> {
        Answer::pending(self.ask(token, audiences))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::testing::{NO_PAUSE, Scripted, answer};
    use crate::testing::block_on;

    #[test]
    fn answers_become_users() {
        let alice = r#""authenticated":true,"user":{"username":"alice","uid":"1","groups":["g"],"extra":{"k":["v"]}}"#;
        let known = |audiences: &str| Ok(Some(format!("alice {audiences}")));
        let cases = [
            (format!("{{{alice}}}"), vec![], known("")),
            (format!("{{{alice}}}"), vec!["api"], known("api")),
            (format!("{{{alice},\"audiences\":[\"x\"]}}"), vec!["api", "x"], known("x")),
            (format!("{{{alice},\"audiences\":[\"x\"]}}"), vec!["api"], Ok(None)),
            (format!("{{{alice}}}"), vec!["vault"], Ok(None)),
            ("{}".into(), vec![], Ok(None)),
            (r#"{"error":"expired"}"#.into(), vec![], Err("expired".to_string())),
            (r#"{"authenticated":"true","user":{"username":"eve"}}"#.into(), vec![], Ok(None)),
        ];
        for (status, audiences, want) in cases {
            let body = format!(r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{status}}}"#);
            let server = Scripted::new([answer(200, &body)]);
            let client = ReviewClient::new(server.clone(), "https://hook", NO_PAUSE);
            let tokens = WebhookTokens::new(client, TokenReviewVersion::V1, vec!["api".into()]);
            let audiences: Vec<Str> = audiences.into_iter().map(Str::from).collect();
            let got = block_on(tokens.authenticate_token("t", &audiences));
            let got =
                got.map(|r| r.map(|r| format!("{} {}", r.user.name, r.audiences.join(",")))).map_err(|e| e.to_string());
            assert_eq!(got, want, "{status} {audiences:?}");
            let sent = server.sent.lock().unwrap()[0].json_body.clone().unwrap();
            assert!(sent.contains(r#""spec":{"#) && sent.contains(r#""token":"t""#), "{sent}");
        }
    }

    #[test]
    fn an_unreachable_webhook_is_an_error() {
        let client = ReviewClient::new(Scripted::new([]), "https://hook", NO_PAUSE);
        let tokens = WebhookTokens::new(client, TokenReviewVersion::V1Beta1, vec![]);
        assert_eq!(block_on(tokens.authenticate_token("t", &[])).unwrap_err().to_string(), "connection refused");
        assert!(TokenReviewVersion::parse("v2").is_err());
    }
}
