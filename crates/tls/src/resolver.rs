//! Chooses the certificate for a connection: by the server name the client asks for, else by the address it
//! came to, else the default.

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug)]
pub struct CertResolver {
    /// Lower-case names, some starting with `*.`.
    by_name: Arc<HashMap<String, Arc<CertifiedKey>>>,
    /// For clients without a server name.
    default: Arc<CertifiedKey>,
    /// For names that nothing matches.
    fallback: Arc<CertifiedKey>,
}

impl CertResolver {
    pub fn new(
        by_name: Arc<HashMap<String, Arc<CertifiedKey>>>,
        default: Arc<CertifiedKey>,
        fallback: Arc<CertifiedKey>,
    ) -> CertResolver {
        CertResolver { by_name, default, fallback }
    }

    fn for_name(&self, name: &str) -> &Arc<CertifiedKey> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        find(&self.by_name, &name).unwrap_or(&self.fallback)
    }
}

/// The name itself, else the pattern with its first labels replaced by `*`: `a.b.c`, `*.b.c`, `*.*.c`, `*.*.*`.
fn find<'m, T>(by_name: &'m HashMap<String, T>, name: &str) -> Option<&'m T> {
    if by_name.is_empty() {
        return None;
    }
    if let Some(found) = by_name.get(name) {
        return Some(found);
    }
    let labels: Vec<&str> = name.split('.').collect();
    (1..=labels.len()).find_map(|stars| {
        let pattern: Vec<&str> = std::iter::repeat_n("*", stars).chain(labels[stars..].iter().copied()).collect();
        by_name.get(&pattern.join("."))
    })
}

impl ResolvesServerCert for CertResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(match hello.server_name() {
            Some(name) => self.for_name(name).clone(),
            None => self.default.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_names_win_over_patterns() {
        let map: HashMap<String, i32> =
            [("a.b.c", 1), ("*.b.c", 2), ("*.*.c", 3), ("*", 4)].map(|(k, v)| (k.to_string(), v)).into();
        for (name, want) in
            [("a.b.c", Some(1)), ("x.b.c", Some(2)), ("x.y.c", Some(3)), ("c", Some(4)), ("x.y.z", None)]
        {
            assert_eq!(find(&map, name).copied(), want, "{name}");
        }
    }
}
