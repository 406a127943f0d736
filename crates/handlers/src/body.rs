//! Request bodies: read up to a limit, decoded as the kind the endpoint serves.

use super::context::Context;
use super::options::FieldValidation;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use kubelith_codec::json::Strictness;
use kubelith_codec::negotiate::{self, Format};
use kubelith_http::RequestBody;
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_registry::{Warnings, Working};
use kubelith_schema::Form;

/// Turns bodies into objects of one kind. Built-in kinds are decoded by their types; custom resources are
/// taken as they are and then pruned by their schema.
pub trait Decoder: Send + Sync + 'static {
    fn decode(&self, body: &[u8], format: Format, strictness: Strictness) -> Result<Decoded, Status>;

    /// Refuses what decodes and is still not of the endpoint's kind. Comes after unknown fields were reported.
    fn check(&self, _object: &Value) -> Result<(), Status> {
        Ok(())
    }

    /// Decodes what a patch made: also in another version than the endpoint's, which is converted. The error is the bare
    /// reason.
    fn decode_patched(&self, text: &[u8], strictness: Strictness) -> Result<Decoded, String>;

    /// Takes what a patch made as an object. The error is the bare reason.
    fn take(&self, value: Value, strictness: Strictness) -> Result<Decoded, String>;

    /// The same, of what is decoded from text in the reference: what text does not decode to without a loss is an error.
    fn take_exact(&self, value: Value, strictness: Strictness) -> Result<Decoded, String> {
        self.take(value, strictness)
    }

    /// The same for what server-side apply made.
    fn take_applied(&self, value: Value) -> Result<Decoded, String> {
        self.take(value, Strictness::Lenient)
    }
}

pub struct Decoded {
    /// At the endpoint's version, with apiVersion and kind; not defaulted yet.
    pub object: Value,
    /// Unknown and duplicate fields, as the reference words them.
    pub strict: Vec<String>,
    /// Whether the object is in canonical form.
    pub form: Form,
}

/// Reads a whole body. One over the limit is refused before it is held.
pub async fn read(mut body: RequestBody, limit: usize) -> Result<Bytes, Status> {
    let too_large = || Status::request_entity_too_large(format!("limit is {limit}"));
    let mut whole = BytesMut::new();
    let mut first: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Status::bad_request(format!("unable to read request body: {e}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + first.as_ref().map_or(0, Bytes::len) + data.len() > limit {
            return Err(too_large());
        }
        // Most bodies come in one piece, which is then not copied.
        match (first.take(), whole.is_empty()) {
            (None, true) => first = Some(data),
            (Some(piece), _) => {
                whole.extend_from_slice(&piece);
                whole.extend_from_slice(&data);
            }
            (None, false) => whole.extend_from_slice(&data),
        }
    }
    Ok(first.unwrap_or_else(|| whole.freeze()))
}

impl Context {
    /// The format of the request's body.
    pub fn input_format(&self) -> Result<Format, Status> {
        let (content_type, own) = (self.header(CONTENT_TYPE), self.endpoint.formats);
        let format = negotiate::input(content_type, own).map_err(|refused| {
            // Errors name what built-in kinds take, also to those who send custom resources something else.
            let is_less = own.len() < negotiate::BUILT_IN.len();
            let all = if is_less { negotiate::input(content_type, negotiate::BUILT_IN).err() } else { None };
            all.unwrap_or(refused)
        });
        format.map_err(kubelith_http::negotiated::negotiation_error)
    }

    /// Decodes a body of the endpoint's own kind and reports unknown fields as the client wishes.
    pub fn decode(&self, body: &[u8], format: Format, validation: FieldValidation) -> Result<Working, Status> {
        let strictness = match validation {
            FieldValidation::Ignore => Strictness::Lenient,
            _ => Strictness::Report,
        };
        let decoded = self.endpoint.decoder.decode(body, format, strictness)?;
        if !decoded.strict.is_empty() {
            // What it says to be, if it says so.
            let given = decoded.object.gvk();
            let kind = if given.kind == self.endpoint.kind.kind { &given } else { &self.endpoint.kind };
            report_strict(&self.warnings, kind, &decoded.strict, validation)?;
        }
        self.endpoint.decoder.check(&decoded.object)?;
        Ok(Working::new(decoded.object, decoded.form))
    }
}

/// Tells the client about unknown and duplicate fields, as it wishes.
pub fn report_strict(
    warnings: &Warnings,
    kind: &GroupVersionKind,
    problems: &[String],
    validation: FieldValidation,
) -> Result<(), Status> {
    if problems.is_empty() {
        return Ok(());
    }
    match validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => {
            for problem in problems {
                // A YAML document's duplicate keys are one problem, of which each line is a warning.
                match problem.strip_prefix("yaml: unmarshal errors:") {
                    Some(lines) => lines.trim_start().lines().for_each(|line| warnings.add(line.trim())),
                    None => warnings.add(problem.as_str()),
                }
            }
        }
        FieldValidation::Strict => {
            let all = problems.join(", ");
            return Err(Status::bad_request(format!(
                "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {all}",
                kind.kind, kind.version, kind.kind
            )));
        }
    }
    Ok(())
}

/// The start of a body for an error message: text if it looks like JSON, else hex.
pub fn summarize(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    match body {
        [] => "<empty>".into(),
        [b'{', ..] if body.len() > SHOWN => format!("{} ...", String::from_utf8_lossy(&body[..SHOWN])),
        [b'{', ..] => String::from_utf8_lossy(body).into_owned(),
        _ => {
            let hex: String = body.iter().take(SHOWN).map(|b| format!("{b:02x}")).collect();
            if body.len() > SHOWN { format!("{hex} ...") } else { hex }
        }
    }
}
