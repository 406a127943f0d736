//! Whether the console is served.

use super::storage::StorageBackend;
use crate::flags::{Flags, OWN};

const FLAG: &str = "enable-console";
/// Flags of kube-apiserver that a newcomer gives, too.
const PLAIN: [&str; 8] = [
    "advertise-address",
    "bind-address",
    "permit-port-sharing",
    "secure-port",
    "storage-backend",
    "v",
    "vmodule",
    "logging-format",
];

/// A server that somebody starts to try it has the console; one that stands in for kube-apiserver has it only if asked to.
pub fn served(flags: &Flags, backend: StorageBackend) -> bool {
    if flags.is_given(FLAG) {
        return flags.bool(FLAG);
    }
    let is_plain = |name: &str| PLAIN.contains(&name) || OWN.iter().any(|flag| flag.name == name);
    backend == StorageBackend::Embedded && flags.given().all(is_plain)
}

#[cfg(test)]
mod tests {
    use crate::flags;
    use crate::options::Options;

    #[test]
    fn newcomers_have_it() {
        let served = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::from_flags(&flags::parse(&words).unwrap()).unwrap().console
        };
        for (line, expected) in [
            ("", true),
            ("--data-dir=/d --secure-port=7443 --bind-address=127.0.0.1 -v=2", true),
            ("--enable-console=false", false),
            ("--storage-backend=memory", false),
            ("--storage-backend=memory --enable-console", true),
            ("--etcd-servers=http://127.0.0.1:2379", false),
            ("--etcd-servers=http://127.0.0.1:2379 --enable-console", true),
            ("--authorization-mode=RBAC", false),
            ("--token-auth-file=/t", false),
        ] {
            assert_eq!(served(line), expected, "{line}");
        }
    }
}
