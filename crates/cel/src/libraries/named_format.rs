//! Formats of strings by name: `format.dns1123Label().validate(x)`.

use super::{NAMED_FORMAT, global, list, member, of};
use crate::decl::Function;
use crate::types::Type;

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
