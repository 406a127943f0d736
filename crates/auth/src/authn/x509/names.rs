//! Name constraints: an authority may be limited to certificates whose alternative names lie in its domains.

use std::net::IpAddr;
use x509_parser::extensions::{GeneralName, NameConstraints};

/// An alternative name of a certificate, of the kinds that can be constrained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AltName {
    Dns(String),
    Email(String),
    Uri(String),
    Ip(IpAddr),
    /// One that cannot be read; it lies in no domain.
    Unreadable,
}

/// What an authority may sign for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Constraints {
    permitted: Vec<Subtree>,
    excluded: Vec<Subtree>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subtree {
    Dns(String),
    Email(String),
    Uri(String),
    /// Address and mask.
    Ip(Vec<u8>, Vec<u8>),
}

impl AltName {
    pub fn of(name: &GeneralName<'_>) -> Option<AltName> {
        Some(match name {
            GeneralName::DNSName(dns) => AltName::Dns(dns.to_ascii_lowercase()),
            GeneralName::RFC822Name(email) => AltName::Email(email.to_string()),
            GeneralName::URI(uri) => AltName::Uri(uri.to_string()),
            GeneralName::IPAddress(bytes) => match (<[u8; 4]>::try_from(*bytes), <[u8; 16]>::try_from(*bytes)) {
                (Ok(v4), _) => AltName::Ip(v4.into()),
                (_, Ok(v6)) => AltName::Ip(v6.into()),
                _ => AltName::Unreadable,
            },
            _ => return None,
        })
    }
}

impl Constraints {
    pub fn of(extension: &NameConstraints<'_>) -> Constraints {
        let read = |list: &Option<Vec<_>>| {
            let list: &[x509_parser::extensions::GeneralSubtree<'_>] = list.as_deref().unwrap_or_default();
            list.iter().filter_map(|s| Subtree::of(&s.base)).collect()
        };
        Constraints { permitted: read(&extension.permitted_subtrees), excluded: read(&extension.excluded_subtrees) }
    }

    /// A name must lie in no excluded domain, and in a permitted one if there are any of its kind.
    pub fn allow(&self, name: &AltName) -> bool {
        if self.excluded.iter().any(|s| s.contains(name)) {
            return false;
        }
        let mut of_kind = self.permitted.iter().filter(|s| s.is_for(name)).peekable();
        of_kind.peek().is_none() || of_kind.any(|s| s.contains(name))
    }
}

impl Subtree {
    fn of(base: &GeneralName<'_>) -> Option<Subtree> {
        match base {
            GeneralName::DNSName(dns) => Some(Subtree::Dns(dns.to_ascii_lowercase())),
            GeneralName::RFC822Name(email) => Some(Subtree::Email(email.to_string())),
            GeneralName::URI(uri) => Some(Subtree::Uri(uri.to_ascii_lowercase())),
            GeneralName::IPAddress(bytes) if bytes.len() == 8 || bytes.len() == 32 => {
                let (address, mask) = bytes.split_at(bytes.len() / 2);
                Some(Subtree::Ip(address.to_vec(), mask.to_vec()))
            }
            _ => None,
        }
    }

    fn is_for(&self, name: &AltName) -> bool {
        match name {
            AltName::Dns(_) => matches!(self, Subtree::Dns(_)),
            AltName::Email(_) => matches!(self, Subtree::Email(_)),
            AltName::Uri(_) => matches!(self, Subtree::Uri(_)),
            AltName::Ip(_) => matches!(self, Subtree::Ip(..)),
            AltName::Unreadable => true,
        }
    }

    fn contains(&self, name: &AltName) -> bool {
        match (self, name) {
            (Subtree::Dns(domain), AltName::Dns(dns)) => in_domain(dns, domain),
            (Subtree::Email(constraint), AltName::Email(email)) => email_fits(email, constraint),
            (Subtree::Uri(domain), AltName::Uri(uri)) => host_of(uri).is_some_and(|host| in_domain(&host, domain)),
            (Subtree::Ip(address, mask), AltName::Ip(ip)) => {
                let bytes = match ip {
                    IpAddr::V4(v4) => v4.octets().to_vec(),
                    IpAddr::V6(v6) => v6.octets().to_vec(),
                };
                let same = |((a, m), b): ((&u8, &u8), &u8)| a & m == b & m;
                bytes.len() == address.len() && address.iter().zip(mask).zip(&bytes).all(same)
            }
            _ => false,
        }
    }
}

/// `host.example.com` lies in `example.com` and in `.example.com`; the latter does not hold `example.com` itself.
fn in_domain(host: &str, domain: &str) -> bool {
    if domain.is_empty() {
        return true;
    }
    let host = host.trim_end_matches('.');
    match domain.strip_prefix('.') {
        Some(_) => host.ends_with(domain) && host.len() > domain.len(),
        None => host == domain || host.strip_suffix(domain).is_some_and(|h| h.ends_with('.')),
    }
}

/// A constraint with an `@` is one mailbox, without it a domain of hosts.
fn email_fits(email: &str, constraint: &str) -> bool {
    let Some((local, host)) = email.rsplit_once('@') else { return false };
    match constraint.rsplit_once('@') {
        Some((wanted, domain)) => local == wanted && host.eq_ignore_ascii_case(domain),
        None => in_domain(&host.to_ascii_lowercase(), &constraint.to_ascii_lowercase()),
    }
}

/// A URI's host; none for addresses, to which domains do not apply.
fn host_of(uri: &str) -> Option<String> {
    let authority = uri.split_once("://")?.1.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = host.split(':').next().filter(|h| !h.is_empty() && !host.starts_with('['))?;
    host.parse::<IpAddr>().is_err().then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains() {
        let dns = |s: &str| Subtree::Dns(s.into());
        let cases = [
            (dns("example.com"), AltName::Dns("example.com".into()), true),
            (dns("example.com"), AltName::Dns("a.b.example.com".into()), true),
            (dns("example.com"), AltName::Dns("badexample.com".into()), false),
            (dns(".example.com"), AltName::Dns("example.com".into()), false),
            (dns(".example.com"), AltName::Dns("a.example.com".into()), true),
            (dns(""), AltName::Dns("anything".into()), true),
            (dns("example.com"), AltName::Email("a@example.com".into()), false),
            (Subtree::Email("example.com".into()), AltName::Email("a@example.com".into()), true),
            (Subtree::Email("a@example.com".into()), AltName::Email("b@example.com".into()), false),
            (Subtree::Uri("example.com".into()), AltName::Uri("spiffe://example.com/ns/a".into()), true),
            (Subtree::Uri("example.com".into()), AltName::Uri("spiffe://10.0.0.1/ns/a".into()), false),
            (Subtree::Ip(vec![10, 0, 0, 0], vec![255, 0, 0, 0]), AltName::Ip([10, 9, 8, 7].into()), true),
            (Subtree::Ip(vec![10, 0, 0, 0], vec![255, 0, 0, 0]), AltName::Ip([11, 9, 8, 7].into()), false),
        ];
        for (subtree, name, want) in cases {
            assert_eq!(subtree.contains(&name), want, "{subtree:?} {name:?}");
        }
    }

    #[test]
    fn exclusion_wins_and_other_kinds_are_free() {
        let constraints = Constraints {
            permitted: vec![Subtree::Dns("example.com".into())],
            excluded: vec![Subtree::Dns("bad.example.com".into())],
        };
        assert!(constraints.allow(&AltName::Dns("ok.example.com".into())));
        assert!(!constraints.allow(&AltName::Dns("x.bad.example.com".into())));
        assert!(!constraints.allow(&AltName::Dns("other.org".into())));
        assert!(constraints.allow(&AltName::Email("a@other.org".into())));
        assert!(!constraints.allow(&AltName::Unreadable));
    }
}
