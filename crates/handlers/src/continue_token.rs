//! Tokens of paged lists, in the reference's form: base64 of `{"v":"meta.k8s.io/v1","rv":5,"start":"a\u0000"}`.
//! `start` is the key after the last one sent, below the list's own prefix. A negative rv means: from the newest state.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kubelith_codec::json;
use kubelith_meta::{Status, Value};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// `None`: go on in whatever is newest.
    pub revision: Option<i64>,
    /// The list goes on with the first key that is not less than this.
    pub start: String,
}

impl ContinueToken {
    pub fn encode(&self) -> String {
        let token = Value::from([
            ("v", Value::from("meta.k8s.io/v1")),
            ("rv", Value::Int(self.revision.unwrap_or(-1))),
            ("start", Value::from(self.start.as_str())),
        ]);
        URL_SAFE_NO_PAD.encode(json::to_vec(&token))
    }

    pub fn decode(token: &str) -> Result<ContinueToken, Status> {
        parse(token)
            .map_err(|why| Status::bad_request(format!("invalid continue token: continue key is not valid: {why}")))
    }
}

fn parse(token: &str) -> Result<ContinueToken, String> {
    let bytes = decode_base64(token)?;
    let value = json::parse(&bytes).map_err(|e| e.to_string())?;
    if !matches!(value, Value::Object(_) | Value::Null) {
        let found = match value {
            Value::Array(_) => "array".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            _ => "number".to_owned(),
        };
        return Err(format!("json: cannot unmarshal {found} into Go value of type storage.continueToken"));
    }
    let version = value.str_at(&["v"]);
    if version != "meta.k8s.io/v1" {
        return Err(format!("server does not recognize this encoded version {version}"));
    }
    let revision = value.get("rv").and_then(Value::as_i64).unwrap_or(0);
    if revision == 0 {
        return Err("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into());
    }
    let start = value.str_at(&["start"]);
    if start.is_empty() {
        return Err("encoded start key empty (version meta.k8s.io/v1)".into());
    }
    // A start that path cleaning would change could leave the list's prefix.
    let rooted = if start.starts_with('/') { start.to_owned() } else { format!("/{start}") };
    if rooted.split('/').any(|part| part == "..") || rooted.contains("//") || rooted.split('/').any(|part| part == ".")
    {
        return Err(start.to_owned());
    }
    Ok(ContinueToken { revision: (revision > 0).then_some(revision), start: rooted[1..].to_owned() })
}

fn decode_base64(token: &str) -> Result<Vec<u8>, String> {
    let alphabet = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if let Some(i) = token.bytes().position(|b| !alphabet(b)) {
        return Err(format!("illegal base64 data at input byte {i}"));
    }
    // Like Go's decoder: a lone last character is an error at its place, stray low bits are not.
    let config = base64::engine::GeneralPurposeConfig::new()
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true);
    let engine = base64::engine::GeneralPurpose::new(&base64::alphabet::URL_SAFE, config);
    engine.decode(token).map_err(|_| format!("illegal base64 data at input byte {}", token.len() - token.len() % 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip() {
        for revision in [Some(5), None] {
            let token = ContinueToken { revision, start: "ns/a\0".into() };
            assert_eq!(ContinueToken::decode(&token.encode()).unwrap(), token);
        }
    }

    #[test]
    fn bad_tokens_are_explained() {
        let cases = [
            ("!!", "illegal base64 data at input byte 0"),
            ("e30", "server does not recognize this encoded version "),
            ("W10", "json: cannot unmarshal array into Go value of type storage.continueToken"),
            ("eyJ", "unexpected end of JSON input"),
            ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi94In0", "../x"),
        ];
        for (token, why) in cases {
            let want = format!("invalid continue token: continue key is not valid: {why}");
            assert_eq!(ContinueToken::decode(token).unwrap_err().message, want);
        }
    }
}
