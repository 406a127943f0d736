//! The registered claims, read strictly: a claim of the wrong type makes the token invalid.

use kubelith_meta::Value;
use kubelith_meta::time::Time;
use std::fmt;

/// How far clocks may be apart.
pub const LEEWAY_SECONDS: i64 = 60;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claims {
    pub issuer: String,
    pub subject: String,
    pub audience: Vec<String>,
    pub expires: Option<i64>,
    pub not_before: Option<i64>,
    pub issued_at: Option<i64>,
    pub id: String,
}

/// A claim of the wrong type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimError {
    NotText { claim: &'static str, kind: &'static str },
    Other(&'static str),
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClaimError::NotText { kind, .. } => write!(f, "json: cannot unmarshal {kind} into Go value of type string"),
            ClaimError::Other(text) => f.write_str(text),
        }
    }
}

impl From<&'static str> for ClaimError {
    fn from(text: &'static str) -> ClaimError {
        ClaimError::Other(text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeError {
    NotYetValid,
    Expired,
    IssuedInTheFuture,
}

impl Claims {
    pub fn read(claims: &Value) -> Result<Claims, ClaimError> {
        let registered = Claims::registered(claims)?;
        Ok(Claims { id: text(claims, "jti")?, ..registered })
    }

    /// Those of an ID token of OpenID Connect, where an id may be anything, but not what was said when it was asked for.
    pub fn read_id_token(claims: &Value) -> Result<Claims, ClaimError> {
        let registered = Claims::registered(claims)?;
        for claim in ["nonce", "at_hash"] {
            text(claims, claim)?;
        }
        Ok(registered)
    }

    /// All but the id.
    fn registered(claims: &Value) -> Result<Claims, ClaimError> {
        Ok(Claims {
            issuer: text(claims, "iss")?,
            subject: text(claims, "sub")?,
            audience: audience(claims)?,
            expires: date(claims, "exp")?,
            not_before: date(claims, "nbf")?,
            issued_at: date(claims, "iat")?,
            id: String::new(),
        })
    }

    pub fn check_time(&self, now: Time) -> Result<(), TimeError> {
        let now = now.unix_seconds();
        if self.not_before.is_some_and(|t| now.saturating_add(LEEWAY_SECONDS) < t) {
            return Err(TimeError::NotYetValid);
        }
        if self.expires.is_some_and(|t| now.saturating_sub(LEEWAY_SECONDS) > t) {
            return Err(TimeError::Expired);
        }
        if self.issued_at.is_some_and(|t| now.saturating_add(LEEWAY_SECONDS) < t) {
            return Err(TimeError::IssuedInTheFuture);
        }
        Ok(())
    }
}

fn text(claims: &Value, claim: &'static str) -> Result<String, ClaimError> {
    match claims.get(claim) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(s)) => Ok(s.to_string()),
        Some(other) => Err(ClaimError::NotText { claim, kind: kubelith_meta::text::json_kind(other) }),
    }
}

/// Seconds; fractions are cut off.
pub(crate) fn date(claims: &Value, key: &str) -> Result<Option<i64>, &'static str> {
    match claims.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Int(i)) => Ok(Some(*i)),
        // Out of range saturates, which is as far in the past or future as it gets.
        Some(Value::Float(f)) if !f.is_nan() => Ok(Some(*f as i64)),
        Some(_) => Err("go-jose/go-jose/jwt: expected number value to unmarshal NumericDate"),
    }
}

fn audience(claims: &Value) -> Result<Vec<String>, &'static str> {
    let wrong = "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience";
    match claims.get("aud") {
        None => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.to_string()]),
        Some(Value::Array(list)) => {
            list.iter().map(|a| a.as_str().map(str::to_string).ok_or(wrong)).collect::<Result<_, _>>()
        }
        Some(_) => Err(wrong),
    }
}
