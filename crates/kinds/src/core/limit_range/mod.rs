//! LimitRanges.

pub mod defaults;
pub mod validate;

use kubelith_rules::Kind;

/// One without a name gets one that nobody would guess.
pub const LIMIT_RANGE: Kind = Kind {
    group: "",
    plural: "limitranges",
    defaults: defaults::RULES,
    rules: validate::RULES,

    creates_on_update: true,
    prepare_for_create: |env, call, range| {
        if range.meta().name().is_empty() {
            range.meta_mut().set_name(&env.made_up.uid(&["limitrange", &call.namespace]));
        }
    },
    ..Kind::PLAIN
};
