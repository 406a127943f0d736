//! Service accounts: how they are named as users, and their tokens.

pub mod authenticate;
pub mod issue;
pub mod keys;
pub mod legacy;
mod ring;

pub use authenticate::ServiceAccountTokens;
pub use issue::{BoundTo, ExternalSigner, IssuedToken, NodeRef, TokenIssuer, TokenSpec};
pub use keys::{KeySet, NamedKey, Publication};
pub use legacy::{LegacyTokenUse, LegacyTokens};
pub use ring::KeyRing;

use kubelith_meta::Str;
use kubelith_meta::names::{is_dns1123_label, is_dns1123_subdomain};

pub const USERNAME_PREFIX: &str = "system:serviceaccount:";
pub const ALL_ACCOUNTS_GROUP: &str = "system:serviceaccounts";
pub const NAMESPACE_GROUP_PREFIX: &str = "system:serviceaccounts:";

/// `system:serviceaccount:<namespace>:<name>`
pub fn username(namespace: &str, name: &str) -> Str {
    let mut user = Str::with_capacity(USERNAME_PREFIX.len() + namespace.len() + 1 + name.len());
    user.push_str(USERNAME_PREFIX);
    user.push_str(namespace);
    user.push(':');
    user.push_str(name);
    user
}

/// The groups of every service account of `namespace`.
pub fn groups(namespace: &str) -> Vec<Str> {
    vec![ALL_ACCOUNTS_GROUP.into(), format!("{NAMESPACE_GROUP_PREFIX}{namespace}").into()]
}

/// Namespace and name, if `user` is a well-formed service account.
pub fn split_username(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(USERNAME_PREFIX)?.split_once(':')?;
    let fits = !name.contains(':') && is_dns1123_label(namespace).is_empty() && is_dns1123_subdomain(name).is_empty();
    fits.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(username("ns", "sa"), "system:serviceaccount:ns:sa");
        assert_eq!(split_username("system:serviceaccount:ns:sa.x"), Some(("ns", "sa.x")));
        for bad in [
            "sa",
            "system:serviceaccount:ns",
            "system:serviceaccount::sa",
            "system:serviceaccount:ns:",
            "system:serviceaccount:ns:a:b",
            "system:serviceaccount:n.s:a",
            "system:serviceaccount:ns:A",
        ] {
            assert_eq!(split_username(bad), None, "{bad}");
        }
    }
}
