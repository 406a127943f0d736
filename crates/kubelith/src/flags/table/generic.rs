//! Flags of the server as such.

use super::super::{Flag, FlagKind::*};
use super::flag;

pub const FLAGS: &[Flag] = &[
    flag(
        "advertise-address",
        Ip,
        "",
        "Address under which the cluster reaches this server. Without it, --bind-address, and if that is unspecified \
         the first address of this machine.",
    ),
    flag(
        "cors-allowed-origins",
        List,
        "",
        "Origins that scripts in browsers may call from: regular expressions that pin the start and the end of the \
         host, such as //example\\.com(:|$).",
    ),
    flag(
        "emulated-version",
        List,
        "",
        "Earlier minor release to behave as: kube=1.35. Its feature gates and their defaults count, and APIs that it did \
         not have are not served.",
    ),
    flag("emulation-forward-compatible", Bool, "", "Serve newer versions of the APIs of the emulated release, too."),
    flag("external-hostname", Text, "", "Host name for URLs that point to this server, as in OpenID discovery."),
    flag(
        "feature-gates",
        FeatureGates,
        "",
        "Switch features: Name=true,Other=false. AllAlpha and AllBeta stand for many.",
    ),
    flag(
        "goaway-chance",
        Float,
        "",
        "Chance, from 0 to .02, that an answer ends its HTTP/2 connection, so that clients spread over servers behind \
         a load balancer. Leave it 0 for a single server.",
    ),
    flag("livez-grace-period", Duration, "", "How long the start may take before /livez fails for it."),
    flag(
        "max-mutating-requests-inflight",
        Int,
        "200",
        "With priority and fairness: part of the total concurrency. Without: the most writes at once; 0 is no limit.",
    ),
    flag(
        "max-requests-inflight",
        Int,
        "400",
        "With priority and fairness: part of the total concurrency. Without: the most reads at once; 0 is no limit.",
    ),
    flag("min-compatibility-version", List, "", "Oldest minor release to stay compatible with: kube=1.35."),
    flag(
        "min-request-timeout",
        Int,
        "1800",
        "Seconds that a watch lasts at least; each ends at a random time up to twice of it.",
    ),
    flag("request-timeout", Duration, "1m0s", "Time to answer a request that is not long-running."),
    flag(
        "runtime-config-emulation-forward-compatible",
        Bool,
        "",
        "Let --runtime-config switch on APIs that are newer than the emulated release.",
    ),
    flag(
        "shutdown-delay-duration",
        Duration,
        "",
        "After SIGTERM, time during which /readyz fails and requests are still served.",
    ),
    flag(
        "shutdown-send-retry-after",
        Bool,
        "",
        "While stopping, keep listening until requests under way are answered, and answer new ones with 429 and \
         Retry-After.",
    ),
    flag(
        "shutdown-watch-termination-grace-period",
        Duration,
        "",
        "Time over which open watches are ended while stopping; 0 ends them at once.",
    ),
    flag(
        "storage-initialization-timeout",
        Duration,
        "1m0s",
        "Time that an etcd that does not answer is waited for at the start, but no less than 20s. Nothing is served before.",
    ),
    flag(
        "strict-transport-security-directives",
        List,
        "",
        "Directives of the Strict-Transport-Security header; none for no header. Example: \
         max-age=31536000,includeSubDomains,preload.",
    ),
];
