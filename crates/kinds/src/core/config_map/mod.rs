//! ConfigMaps.

pub mod validate;

use kubelith_rules::Kind;

pub const CONFIG_MAP: Kind = Kind { group: "", plural: "configmaps", rules: validate::RULES, ..Kind::PLAIN };
