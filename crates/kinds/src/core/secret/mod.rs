//! Secrets.

pub mod defaults;
pub mod validate;
mod warnings;

use kubelith_rules::Kind;

pub const SECRET: Kind = Kind {
    group: "",
    plural: "secrets",
    defaults: defaults::RULES,
    rules: validate::RULES,

    prepare_for_update: |_, _, _, secret, old| {
        if secret.str_at(&["type"]).is_empty()
            && let Some(kept) = old.get("type")
        {
            secret.set_at(&["type"], kept.clone());
        }
    },
    warnings_on_create: |_, secret| warnings::warnings(secret),
    warnings_on_update: |_, _, secret, _| warnings::warnings(secret),
    ..Kind::PLAIN
};
