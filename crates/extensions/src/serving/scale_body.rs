//! Bodies of the scale subresource of custom resources. They are of one kind only: the reference knows no other there, and
//! says so in the words of the scheme that it looks in.

use kubelith_codec::json::{self, Strictness};
use kubelith_codec::negotiate::Format;
use kubelith_codec::yaml;
use kubelith_handlers::body::{Decoded, Decoder};
use kubelith_handlers::typed::TypedDecoder;
use kubelith_meta::{Status, Value};

pub struct ScaleDecoder(pub TypedDecoder);

impl Decoder for ScaleDecoder {
    fn decode(&self, body: &[u8], format: Format, strictness: Strictness) -> Result<Decoded, Status> {
        self.0.decode(body, format, strictness).map_err(|status| match self.is_other(body, format) {
            true => not_registered(),
            false => status,
        })
    }

    fn check(&self, object: &Value) -> Result<(), Status> {
        self.0.check(object).map_err(|_| not_registered())
    }

    fn decode_patched(&self, text: &[u8], strictness: Strictness) -> Result<Decoded, String> {
        self.0.decode_patched(text, strictness)
    }

    fn take(&self, value: Value, strictness: Strictness) -> Result<Decoded, String> {
        self.0.take(value, strictness)
    }
}

impl ScaleDecoder {
    /// Whether the body says that it is something else.
    fn is_other(&self, body: &[u8], format: Format) -> bool {
        let said = match format {
            Format::Yaml => yaml::read(body).ok().map(|document| document.value.gvk()),
            _ => json::type_meta(body).ok().and_then(|meta| meta.with_defaults(&self.0.kind).ok()),
        };
        said.is_some_and(|said| said != self.0.kind)
    }
}

fn not_registered() -> Status {
    Status::bad_request(
        "no kind is registered for the type v1.Scale in scheme \
         \"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781\"",
    )
}
