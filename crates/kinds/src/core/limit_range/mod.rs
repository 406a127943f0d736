//! LimitRanges.

pub mod defaults;
pub mod validate;

use kubelith_meta::random;
use kubelith_rules::Kind;

/// One without a name gets one that nobody would guess.
pub const LIMIT_RANGE: Kind = Kind {
    group: "",
    plural: "limitranges",
    defaults: defaults::RULES,
    rules: validate::RULES,

    creates_on_update: true,
    prepare_for_create: |_, _, range| {
        if range.meta().name().is_empty() {
            range.meta_mut().set_name(&random::uid(random::random_bits));
        }
    },
    ..Kind::PLAIN
};
