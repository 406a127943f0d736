//! Text that is to be stored as data.

use kubelith_codec::base64;
use kubelith_meta::{Map, Value};
use kubelith_rules::defaults::Defaults;

pub const RULES: Defaults = &[("io.k8s.api.core.v1.Secret", string_data)];

/// `stringData` can only be written: it goes into `data` and wins there (core/v1/conversion.go).
fn string_data(secret: &mut Map) {
    let Some(Value::Object(strings)) = secret.remove("stringData") else { return };
    if strings.is_empty() {
        return;
    }
    let data = secret.entry_or_null("data").make_object();
    for (key, value) in strings.iter() {
        data.insert(key, base64::encode(value.as_str().unwrap_or("").as_bytes()));
    }
}
