//! The rest.

use super::super::{Flag, FlagKind::*};
use super::{deprecated, flag, no_use};

pub const FLAGS: &[Flag] = &[
    flag("aggregator-reject-forwarding-redirect", Bool, "true", "Refuse redirects of aggregated APIs."),
    flag("allow-privileged", Bool, "", "Let pods ask for privileged containers."),
    flag(
        "coordinated-leadership-lease-duration",
        Duration,
        "15s",
        "Life of the lease of the server that elects leaders, with the feature gate CoordinatedLeaderElection.",
    ),
    flag("coordinated-leadership-renew-deadline", Duration, "10s", "Time for that server to renew its lease."),
    flag("coordinated-leadership-retry-period", Duration, "2s", "Time between tries to get or renew that lease."),
    flag(
        "enable-aggregator-routing",
        Bool,
        "",
        "Call aggregated APIs at their endpoints instead of their cluster address.",
    ),
    deprecated(
        flag("enable-logs-handler", Bool, "", "Serve /var/log under /logs."),
        "Log handler functionality is deprecated",
    ),
    flag(
        "endpoint-reconciler-type",
        Text,
        "lease",
        "How the endpoints of the kubernetes service are kept: lease, master-count (deprecated), none.",
    ),
    flag("event-ttl", Duration, "1h0m0s", "How long events are kept."),
    flag("kubelet-certificate-authority", Text, "", "Authorities of kubelets' certificates."),
    flag("kubelet-client-certificate", Text, "", "Client certificate for kubelets."),
    flag("kubelet-client-key", Text, "", "Key of that certificate."),
    flag(
        "kubelet-preferred-address-types",
        List,
        "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP",
        "Kinds of node addresses to reach kubelets by, best first.",
    ),
    no_use("kubelet-timeout", Duration, "5s", "Time for requests to kubelets; kube-apiserver does not heed it either."),
    flag("kubernetes-service-node-port", Int, "", "Node port of the kubernetes service; 0 makes it of type ClusterIP."),
    flag(
        "max-connection-bytes-per-sec",
        Int,
        "",
        "Bandwidth of a connection that a client takes over (exec, attach, port-forward, proxy); 0 for no limit.",
    ),
    flag("peer-advertise-ip", Text, "", "Address under which other API servers reach this one."),
    flag("peer-advertise-port", Text, "", "Port under which other API servers reach this one."),
    flag(
        "peer-ca-file",
        Text,
        "",
        "Authorities of other API servers' certificates, for requests for APIs that only those servers know.",
    ),
    flag(
        "proxy-client-cert-file",
        Text,
        "",
        "Client certificate by which aggregated APIs and webhooks know this server.",
    ),
    flag("proxy-client-key-file", Text, "", "Key of that certificate."),
    flag("service-account-signing-endpoint", Text, "", "Socket of an external signer of service account tokens."),
    flag("service-account-signing-key-file", Text, "", "Key that signs service account tokens. Ours without it."),
    flag(
        "service-cluster-ip-range",
        Text,
        "",
        "Addresses for services: a CIDR, or one of each family. 10.0.0.0/24 without it.",
    ),
    flag("service-node-port-range", PortRange, "30000-32767", "Ports for services of type NodePort."),
];
