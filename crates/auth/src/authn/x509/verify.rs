//! Finds a chain from a client's certificate to a trusted one, with the reference's rules.

use super::certificate::{Certificate, ExtendedUsage};
use super::signature::is_signed_by;
use kubelith_meta::time::Time;

/// Signature checks per request: a client must not make us try every combination of its certificates.
const MAX_SIGNATURE_CHECKS: usize = 100;
/// Certificates after the leaf that are looked at.
const MAX_INTERMEDIATES: usize = 32;

/// Whether `leaf` chains up to one of `roots` through `intermediates`, at `now`, for client authentication.
/// Returns the earliest end of a certificate of the chain.
pub fn verify(
    leaf: &Certificate,
    intermediates: &[Certificate],
    roots: &[Certificate],
    now: Time,
) -> Result<Time, String> {
    let intermediates = &intermediates[..intermediates.len().min(MAX_INTERMEDIATES)];
    let mut search = Search { intermediates, roots, now, checks: 0, wrong_usage: false, hint: None };
    search.valid(leaf, Position::Leaf, &[])?;
    if roots.iter().any(|root| root.der == leaf.der) {
        search.usage(&[leaf])?;
        return Ok(leaf.not_after);
    }
    let mut chain = vec![leaf];
    if search.extend(&mut chain)? {
        let ends = chain.iter().map(|c| c.not_after);
        return Ok(ends.min().expect("a chain has a leaf"));
    }
    match (search.wrong_usage, search.hint) {
        (true, _) => Err("x509: certificate specifies an incompatible key usage".into()),
        (false, Some(hint)) => Err(format!(
            "x509: certificate signed by unknown authority (possibly because of {} while trying to verify candidate authority certificate)",
            kubelith_meta::text::quote(&hint)
        )),
        (false, None) => Err("x509: certificate signed by unknown authority".into()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Leaf,
    Intermediate,
    Root,
}

struct Search<'a> {
    intermediates: &'a [Certificate],
    roots: &'a [Certificate],
    now: Time,
    checks: usize,
    /// A chain was found, but one of its certificates is not for client authentication.
    wrong_usage: bool,
    /// Why the first candidate that bears the issuer's name was not it.
    hint: Option<String>,
}

impl<'a> Search<'a> {
    /// Completes `chain`, depth first; roots before intermediates.
    fn extend(&mut self, chain: &mut Vec<&'a Certificate>) -> Result<bool, String> {
        let last = *chain.last().expect("a chain has a leaf");
        let (roots, intermediates) = (self.roots, self.intermediates);
        let candidates = roots.iter().map(|c| (c, Position::Root));
        for (parent, position) in candidates.chain(intermediates.iter().map(|c| (c, Position::Intermediate))) {
            if parent.subject != last.issuer || chain.iter().any(|c| same_key_and_name(c, parent)) {
                continue;
            }
            self.checks += 1;
            if self.checks > MAX_SIGNATURE_CHECKS {
                return Err("x509: signature check attempts limit reached while verifying certificate chain".into());
            }
            let fits = may_sign(parent).and_then(|()| is_signed_by(last, &parent.public_key));
            if let Err(e) = fits.and_then(|()| self.valid(parent, position, chain)) {
                self.hint.get_or_insert(e);
                continue;
            }
            chain.push(parent);
            let complete = match position {
                Position::Root if self.usage(chain).is_err() => {
                    self.wrong_usage = true;
                    false
                }
                Position::Root => true,
                _ => self.extend(chain)?,
            };
            if complete {
                return Ok(true);
            }
            chain.pop();
        }
        Ok(false)
    }

    fn valid(&self, cert: &Certificate, position: Position, chain: &[&Certificate]) -> Result<(), String> {
        if cert.unknown_critical_extension {
            return Err("x509: unhandled critical extension".into());
        }
        let expired = "x509: certificate has expired or is not yet valid: current time";
        if self.now < cert.not_before {
            return Err(format!("{expired} {} is before {}", self.now.rfc3339(), cert.not_before.rfc3339()));
        }
        if self.now > cert.not_after {
            return Err(format!("{expired} {} is after {}", self.now.rfc3339(), cert.not_after.rfc3339()));
        }
        if position == Position::Leaf {
            return Ok(());
        }
        let constraints = cert.name_constraints.iter();
        let mut names = constraints.flat_map(|c| chain.iter().flat_map(|b| &b.alternative_names).map(move |n| (c, n)));
        if names.any(|(constraints, name)| !constraints.allow(name)) {
            return Err("x509: a root or intermediate certificate is not authorized to sign for this name".into());
        }
        let constraints = cert.basic_constraints;
        if position == Position::Intermediate && !constraints.is_some_and(|c| c.is_ca) {
            return Err("x509: certificate is not authorized to sign other certificates".into());
        }
        let below = u32::try_from(chain.len() - 1).unwrap_or(u32::MAX);
        if constraints.and_then(|c| c.path_length).is_some_and(|max| below > max) {
            return Err("x509: too many intermediates for path length constraint".into());
        }
        Ok(())
    }

    /// Usages nest: every certificate of the chain must allow client authentication.
    fn usage(&self, chain: &[&Certificate]) -> Result<(), String> {
        if chain.iter().any(|c| c.extended_usage == ExtendedUsage::Other) {
            return Err("x509: certificate specifies an incompatible key usage".into());
        }
        Ok(())
    }
}

/// A parent that may sign: a CA if it can say so (version 3 can), and not barred by its key usage.
fn may_sign(parent: &Certificate) -> Result<(), String> {
    let ca = parent.basic_constraints.map_or(!parent.version3, |c| c.is_ca);
    if !ca || parent.may_sign_certificates == Some(false) {
        return Err("x509: invalid signature: parent certificate cannot sign this kind of certificate".into());
    }
    Ok(())
}

/// The same authority twice in a chain is a loop.
fn same_key_and_name(a: &Certificate, b: &Certificate) -> bool {
    a.subject == b.subject && a.public_key.key == b.public_key.key && a.alternative_names == b.alternative_names
}
