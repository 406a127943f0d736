//! How kubelets are spoken to.

use crate::flags::Flags;
use kubelith_kube::connect::KubeletOptions;
use kubelith_outbound::egress::Route;
use std::num::NonZeroU32;
use std::path::PathBuf;

pub fn from_flags(flags: &Flags, route: &Route, errors: &mut Vec<String>) -> KubeletOptions {
    let file = |name: &str| Some(flags.text(name)).filter(|f| !f.is_empty()).map(PathBuf::from);
    let (cert, key) = (file("kubelet-client-certificate"), file("kubelet-client-key"));
    if cert.is_some() != key.is_some() {
        errors.push("--kubelet-client-certificate and --kubelet-client-key must be specified together".to_owned());
    }
    KubeletOptions {
        certificate_authority: file("kubelet-certificate-authority"),
        client_certificate: cert.zip(key),
        address_types: flags.list("kubelet-preferred-address-types"),
        port: u16::try_from(flags.int("kubelet-port")).unwrap_or(0),
        route: route.clone(),
        bandwidth: u32::try_from(flags.int("max-connection-bytes-per-sec")).ok().and_then(NonZeroU32::new),
    }
}
