//! Formats of strings by name: `format.dns1123Label().validate(x)`.

use super::{NAMED_FORMAT, Run, global, list, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Opaque, Res, Val};
use kubelith_meta::names;
use kubelith_schema::structural::formats::fits;
use std::sync::Arc;

const THIS: Type = Type::Named(NAMED_FORMAT);

pub fn functions() -> Vec<Function> {
    let constants = [
        "format.dns1123Label",
        "format.dns1123Subdomain",
        "format.dns1035Label",
        "format.qualifiedName",
        "format.dns1123LabelPrefix",
        "format.dns1123SubdomainPrefix",
        "format.dns1035LabelPrefix",
        "format.labelValue",
        "format.uri",
        "format.uuid",
        "format.byte",
        "format.date",
        "format.datetime",
    ];
    let mut all = vec![
        of("validate", [member("format-validate", [THIS, Type::String], Type::optional(list(Type::String)))]),
        of("format.named", [global("format-named", [Type::String], Type::optional(THIS))]),
    ];
    all.extend(constants.map(|name| of(name, [global(name, [], THIS)])));
    all
}

pub fn run(id: &str) -> Option<Run> {
    macro_rules! constant {
        ($format:ident) => {
            Run::Many(|_| Ok(Val::opaque(Opaque::Format(NamedFormat::$format))))
        };
    }
    Some(match id {
        "format-validate" => Run::Binary(validate),
        "format-named" => Run::Unary(|name| {
            let found = NamedFormat::find(text(name)?);
            Ok(Val::Optional(found.map(|f| Arc::new(Val::opaque(Opaque::Format(f))))))
        }),
        _ => match NamedFormat::find(id.strip_prefix("format.")?)? {
            NamedFormat::Dns1123Label => constant!(Dns1123Label),
            NamedFormat::Dns1123Subdomain => constant!(Dns1123Subdomain),
            NamedFormat::Dns1035Label => constant!(Dns1035Label),
            NamedFormat::QualifiedName => constant!(QualifiedName),
            NamedFormat::Dns1123LabelPrefix => constant!(Dns1123LabelPrefix),
            NamedFormat::Dns1123SubdomainPrefix => constant!(Dns1123SubdomainPrefix),
            NamedFormat::Dns1035LabelPrefix => constant!(Dns1035LabelPrefix),
            NamedFormat::LabelValue => constant!(LabelValue),
            NamedFormat::Uri => constant!(Uri),
            NamedFormat::Uuid => constant!(Uuid),
            NamedFormat::Byte => constant!(Byte),
            NamedFormat::Date => constant!(Date),
            NamedFormat::DateTime => constant!(DateTime),
        },
    })
}

fn validate<'a>(format: &Val<'a>, string: &Val<'a>) -> Res<'a> {
    let Some(Opaque::Format(format)) = format.as_opaque() else { return Err(EvalError::no_overload()) };
    let messages = format.validate(text(string)?);
    if messages.is_empty() {
        return Ok(Val::Optional(None));
    }
    Ok(Val::some(Val::flat(messages.into_iter().map(Val::text))))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedFormat {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    QualifiedName,
    Dns1123LabelPrefix,
    Dns1123SubdomainPrefix,
    Dns1035LabelPrefix,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

/// The name in expressions, the name it has for itself, and the length of the pattern that costs are counted with.
const FORMATS: [(NamedFormat, &str, &str, u64); 13] = [
    (NamedFormat::Dns1123Label, "dns1123Label", "DNS1123Label", 30),
    (NamedFormat::Dns1123Subdomain, "dns1123Subdomain", "DNS1123Subdomain", 60),
    (NamedFormat::Dns1035Label, "dns1035Label", "DNS1035Label", 30),
    (NamedFormat::QualifiedName, "qualifiedName", "QualifiedName", 60),
    (NamedFormat::Dns1123LabelPrefix, "dns1123LabelPrefix", "DNS1123LabelPrefix", 30),
    (NamedFormat::Dns1123SubdomainPrefix, "dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60),
    (NamedFormat::Dns1035LabelPrefix, "dns1035LabelPrefix", "DNS1035LabelPrefix", 30),
    (NamedFormat::LabelValue, "labelValue", "LabelValue", 40),
    (NamedFormat::Uri, "uri", "URI", 1103),
    (NamedFormat::Uuid, "uuid", "uuid", 70),
    (NamedFormat::Byte, "byte", "byte", 84),
    (NamedFormat::Date, "date", "date", 71),
    (NamedFormat::DateTime, "datetime", "datetime", 71),
];

impl NamedFormat {
    pub fn find(name: &str) -> Option<NamedFormat> {
        FORMATS.iter().find(|f| f.1 == name).map(|f| f.0)
    }

    /// The name it has for itself.
    pub fn title(self) -> &'static str {
        FORMATS.iter().find(|f| f.0 == self).map_or("", |f| f.2)
    }

    pub fn pattern_length(self) -> u64 {
        FORMATS.iter().find(|f| f.0 == self).map_or(0, |f| f.3)
    }

    fn validate(self, text: &str) -> Vec<String> {
        use names::NameUse::{Full, Prefix};
        let unless = |fits: bool, message: &str| if fits { Vec::new() } else { vec![message.to_owned()] };
        match self {
            NamedFormat::Dns1123Label => names::name_is_dns_label(text, Full),
            NamedFormat::Dns1123Subdomain => names::name_is_dns_subdomain(text, Full),
            NamedFormat::Dns1035Label => names::name_is_dns1035_label(text, Full),
            NamedFormat::QualifiedName => names::is_qualified_name(text),
            NamedFormat::Dns1123LabelPrefix => names::name_is_dns_label(text, Prefix),
            NamedFormat::Dns1123SubdomainPrefix => names::name_is_dns_subdomain(text, Prefix),
            NamedFormat::Dns1035LabelPrefix => names::name_is_dns1035_label(text, Prefix),
            NamedFormat::LabelValue => names::is_label_value(text),
            NamedFormat::Uri => kubelith_meta::url::Url::parse_request(text).err().into_iter().collect(),
            NamedFormat::Uuid => unless(fits("uuid", text), "does not match the UUID format"),
            NamedFormat::Byte => unless(fits("byte", text), "invalid base64"),
            NamedFormat::Date => unless(fits("date", text), "invalid date"),
            NamedFormat::DateTime => unless(fits("datetime", text), "invalid datetime"),
        }
    }
}
