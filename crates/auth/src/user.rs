//! The identity behind a request. It is part of `meta`, since strategies and admission look at it, too.

pub use kubelith_meta::user::*;
