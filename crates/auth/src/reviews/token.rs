//! TokenReview: whose token is this?

use super::{strings, user_info};
use crate::authn::audience::intersect;
use crate::authn::bearer::INVALID_TOKEN;
use crate::error::AuthError;
use crate::traits::{AuthRequest, Authentication, Authenticator};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use kubelith_meta::{Map, Status, Str, Value};

pub fn validate(review: &Value) -> Result<(), Status> {
    match review.str_at(&["spec", "token"]) {
        "" => Err(Status::bad_request("token is required for TokenReview in authentication")),
        _ => Ok(()),
    }
}

/// Answers the review: fills in its status. The token is looked at as if a request had come with it.
pub async fn evaluate(
    review: &mut Value,
    authenticator: &dyn Authenticator,
    api_audiences: &[Str],
) -> Result<(), Status> {
    let asked = strings(review.at(&["spec", "audiences"]));
    let audiences = if asked.is_empty() { api_audiences.to_vec() } else { asked };
    let result = authenticate(review.str_at(&["spec", "token"]), &audiences, authenticator).await;

    let mut status = Map::new();
    status.insert("user", Value::object());
    match result {
        Ok(None) => {}
        Err(e) => drop(status.insert("error", with_own_tokens(&e.to_string()))),
        Ok(Some(response)) => {
            if !audiences.is_empty() && intersect(&audiences, &response.audiences).is_empty() {
                return Err(Status::internal_error("error validating audiences"));
            }
            status.insert("authenticated", true);
            status.insert("user", user_info(&response.user));
            if !response.audiences.is_empty() {
                status.insert("audiences", response.audiences);
            }
        }
    }
    review.set_at(&["status"], Value::Object(status));
    Ok(())
}

/// The tokens of the server itself are looked at first, and do not know the token either. The reference lists every
/// reason once.
fn with_own_tokens(why: &str) -> String {
    let reasons = why.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(why);
    match reasons == INVALID_TOKEN || reasons.starts_with(&format!("{INVALID_TOKEN}, ")) {
        true => why.to_owned(),
        false => format!("[{INVALID_TOKEN}, {reasons}]"),
    }
}

async fn authenticate(token: &str, audiences: &[Str], authenticator: &dyn Authenticator) -> Authentication {
    let header = format!("Bearer {token}");
    let header = HeaderValue::from_str(header.trim()).map_err(|_| AuthError::new(INVALID_TOKEN))?;
    let headers = HeaderMap::from_iter([(AUTHORIZATION, header)]);
    let request = AuthRequest { headers: &headers, peer_certificates: None, path: "", audiences };
    authenticator.authenticate(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_listed_once() {
        let table = [
            ("invalid bearer token", "invalid bearer token"),
            ("token issuer x is invalid", "[invalid bearer token, token issuer x is invalid]"),
            ("[a, b]", "[invalid bearer token, a, b]"),
            ("[invalid bearer token, a]", "[invalid bearer token, a]"),
        ];
        for (why, want) in table {
            assert_eq!(with_own_tokens(why), want);
        }
    }
}
