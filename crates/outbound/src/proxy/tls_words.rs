//! Why TLS with another server failed, in the words clients know.

use kubelith_meta::time::Time;
use kubelith_tls::Flaw;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, Error};
use std::io;
use std::net::SocketAddr;

/// Of a handshake with `name` that ended early; `ends` are our address and the other one, if they are known.
pub fn of_handshake(error: &io::Error, name: &ServerName<'_>, ends: Option<[SocketAddr; 2]>) -> String {
    if let Some(Error::InvalidCertificate(CertificateError::Other(why))) = tls_error(error)
        && format!("{why:?}").contains("UnsupportedCertVersion")
    {
        // The library reads no certificates that are so old; Go does, and finds no names in them.
        return format!("tls: failed to verify certificate: x509: {}", other_name(name, &[]));
    }
    match (of_io(error), error.kind(), ends) {
        (Some(text), ..) => text,
        (None, io::ErrorKind::UnexpectedEof, _) => "EOF".to_owned(),
        (None, io::ErrorKind::ConnectionReset, Some([from, to])) => {
            format!("read tcp {from}->{to}: read: connection reset by peer")
        }
        (None, io::ErrorKind::BrokenPipe, Some([from, to])) => format!("write tcp {from}->{to}: write: broken pipe"),
        (None, ..) => error.to_string(),
    }
}

/// `None` if it is no error of TLS.
pub fn of_io(error: &io::Error) -> Option<String> {
    tls_error(error).map(of)
}

fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref::<Error>()
}

fn of(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => format!("tls: failed to verify certificate: x509: {}", certificate(why)),
        Error::AlertReceived(alert) => format!("remote error: tls: {}", of_alert(*alert)),
        Error::InvalidMessage(_) => "tls: first record does not look like a TLS handshake".to_owned(),
        other => format!("tls: {other}"),
    }
}

fn certificate(error: &CertificateError) -> String {
    let outdated = |time: &UnixTime, side: &str, bound: &UnixTime| {
        let text = |t: &UnixTime| Time::from_unix(t.as_secs() as i64).rfc3339();
        format!("certificate has expired or is not yet valid: current time {} is {side} {}", text(time), text(bound))
    };
    if let Some(flaw) = Flaw::of(error) {
        return flaw.to_string();
    }
    match error {
        // Another authority of the same name has another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired | CertificateError::NotValidYet => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => outdated(time, "after", not_after),
        CertificateError::NotValidYetContext { time, not_before } => outdated(time, "before", not_before),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".to_owned()
        }
        // The certificate is an authority's own, and not one that is known. Go looks at who signed it only.
        CertificateError::Other(why) if format!("{why:?}").contains("CaUsedAsEndEntity") => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => other_name(expected, presented),
        other => other.to_string(),
    }
}

/// Only names of the kind that was looked for are told.
fn other_name(expected: &ServerName<'_>, presented: &[String]) -> String {
    let wanted = expected.to_str();
    let (kind, is_address) = match expected {
        ServerName::IpAddress(_) => ("IpAddress(", true),
        _ => ("DnsName(", false),
    };
    let bare = |name: &String| Some(name.strip_prefix(kind)?.trim_end_matches(')').trim_matches('"').to_owned());
    let names: Vec<String> = presented.iter().filter_map(bare).collect();
    match (names.is_empty(), is_address) {
        (false, _) => format!("certificate is valid for {}, not {wanted}", names.join(", ")),
        (true, true) => {
            format!("cannot validate certificate for {wanted} because it doesn't contain any IP SANs")
        }
        (true, false) => format!("certificate is not valid for any names, but wanted to match {wanted}"),
    }
}

fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription as A;
    let text = match alert {
        A::CloseNotify => "close notify",
        A::UnexpectedMessage => "unexpected message",
        A::BadRecordMac => "bad record MAC",
        A::DecryptionFailed => "decryption failed",
        A::RecordOverflow => "record overflow",
        A::DecompressionFailure => "decompression failure",
        A::HandshakeFailure => "handshake failure",
        A::BadCertificate => "bad certificate",
        A::UnsupportedCertificate => "unsupported certificate",
        A::CertificateRevoked => "revoked certificate",
        A::CertificateExpired => "expired certificate",
        A::CertificateUnknown => "unknown certificate",
        A::IllegalParameter => "illegal parameter",
        A::UnknownCA => "unknown certificate authority",
        A::AccessDenied => "access denied",
        A::DecodeError => "error decoding message",
        A::DecryptError => "error decrypting message",
        A::ExportRestriction => "export restriction",
        A::ProtocolVersion => "protocol version not supported",
        A::InsufficientSecurity => "insufficient security level",
        A::InternalError => "internal error",
        A::InappropriateFallback => "inappropriate fallback",
        A::UserCanceled => "user canceled",
        A::NoRenegotiation => "no renegotiation",
        A::MissingExtension => "missing extension",
        A::UnsupportedExtension => "unsupported extension",
        A::CertificateUnobtainable => "certificate unobtainable",
        A::UnrecognisedName => "unrecognized name",
        A::BadCertificateStatusResponse => "bad certificate status response",
        A::BadCertificateHashValue => "bad certificate hash value",
        A::UnknownPSKIdentity => "unknown PSK identity",
        A::CertificateRequired => "certificate required",
        A::NoApplicationProtocol => "no application protocol",
        other => return format!("alert({})", u8::from(other)),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn certificates_are_refused_in_go_s_words() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let name = |name: &'static str| ServerName::try_from(name).unwrap();
        let presented = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let both = presented(&["DnsName(\"a.b.svc\")", "IpAddress(10.0.0.1)"]);
        let other_name = |expected, presented| CertificateError::NotValidForNameContext { expected, presented };
        let cases = [
            (CertificateError::UnknownIssuer, "certificate signed by unknown authority"),
            (
                CertificateError::ExpiredContext { time: at(1_700_000_000), not_after: at(1_600_000_000) },
                "certificate has expired or is not yet valid: current time 2023-11-14T22:13:20Z is after \
                 2020-09-13T12:26:40Z",
            ),
            (
                CertificateError::NotValidYetContext { time: at(1_600_000_000), not_before: at(1_700_000_000) },
                "certificate has expired or is not yet valid: current time 2020-09-13T12:26:40Z is before \
                 2023-11-14T22:13:20Z",
            ),
            (other_name(name("x.svc"), both.clone()), "certificate is valid for a.b.svc, not x.svc"),
            (other_name(name("127.0.0.1"), both), "certificate is valid for 10.0.0.1, not 127.0.0.1"),
            (
                other_name(name("127.0.0.1"), presented(&["DnsName(\"a\")"])),
                "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
            ),
            (
                other_name(name("a"), presented(&["IpAddress(10.0.0.1)"])),
                "certificate is not valid for any names, but wanted to match a",
            ),
        ];
        for (error, expected) in cases {
            let text = of(&Error::InvalidCertificate(error));
            assert_eq!(text, format!("tls: failed to verify certificate: x509: {expected}"));
        }
        let alert = Error::AlertReceived(AlertDescription::CertificateRequired);
        assert_eq!(of(&alert), "remote error: tls: certificate required");
    }
}
