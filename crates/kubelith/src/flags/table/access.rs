//! Flags of authentication and authorization.

use super::super::{Flag, Kind::*};
use super::{flag, later};

pub const AUTHENTICATION: &[Flag] = &[
    flag(
        "anonymous-auth",
        Bool,
        "true",
        "Let requests without credentials in as system:anonymous in group system:unauthenticated; what they may do is \
         up to authorization.",
    ),
    flag("api-audiences", List, "", "Audiences that tokens must be meant for; the service account issuer by default."),
    later("authentication-config", Text, "", "File with JWT authenticators and anonymous access."),
    later(
        "authentication-token-webhook-cache-ttl",
        Duration,
        "2m0s",
        "How long answers of the token webhook are kept.",
    ),
    later("authentication-token-webhook-config-file", Text, "", "Kubeconfig of the service that judges bearer tokens."),
    later(
        "authentication-token-webhook-version",
        Text,
        "v1beta1",
        "Version of authentication.k8s.io TokenReview that is sent.",
    ),
    flag(
        "client-ca-file",
        Text,
        "",
        "Authorities of client certificates: the common name is the user, organizations are the groups. Our own \
         authority is trusted, too.",
    ),
    later(
        "enable-bootstrap-token-auth",
        Bool,
        "",
        "Let secrets of type bootstrap.kubernetes.io/token in kube-system authenticate.",
    ),
    later("oidc-ca-file", Text, "", "Authorities of the OpenID provider's certificate; those of the host without it."),
    later("oidc-client-id", Text, "", "Client that OpenID tokens must be meant for."),
    later("oidc-groups-claim", Text, "", "Claim with the user's groups."),
    later("oidc-groups-prefix", Text, "", "Prefix for those groups."),
    later("oidc-issuer-url", Text, "", "URL of the OpenID provider; https only."),
    later("oidc-required-claim", Map, "", "Claims that a token must have: name=value. Can be repeated."),
    later("oidc-signing-algs", List, "RS256", "Algorithms that tokens may be signed with."),
    later("oidc-username-claim", Text, "sub", "Claim with the user's name."),
    later("oidc-username-prefix", Text, "", "Prefix for user names; - for none."),
    later(
        "requestheader-allowed-names",
        List,
        "",
        "Common names of front proxies; any that --requestheader-client-ca-file vouches for if empty.",
    ),
    later("requestheader-client-ca-file", Text, "", "Authorities of front proxies, whose headers are believed."),
    later(
        "requestheader-extra-headers-prefix",
        List,
        "",
        "Prefixes of headers with more about the user: X-Remote-Extra-.",
    ),
    later("requestheader-group-headers", List, "", "Headers with the user's groups: X-Remote-Group."),
    later("requestheader-uid-headers", List, "", "Headers with the user's uid: X-Remote-Uid."),
    later("requestheader-username-headers", List, "", "Headers with the user's name: X-Remote-User."),
    later(
        "service-account-extend-token-expiration",
        Bool,
        "true",
        "Let tokens for pods live a year, so that clients which never reread them go on.",
    ),
    later(
        "service-account-issuer",
        Array,
        "",
        "Issuer of service account tokens: an https URL. The first signs; others are accepted. https://kubernetes.default.svc.cluster.local without it.",
    ),
    later("service-account-jwks-uri", Text, "", "URL of the keys in the discovery document."),
    later(
        "service-account-key-file",
        Array,
        "",
        "Public or private keys that verify service account tokens. Ours without it.",
    ),
    later("service-account-lookup", Bool, "true", "Check that tokens still exist in storage."),
    later("service-account-max-token-expiration", Duration, "", "Longest life of a token that is asked for."),
    flag("token-auth-file", Text, "", "CSV file of fixed tokens: token,user,uid,\"group,…\"."),
];

pub const AUTHORIZATION: &[Flag] = &[
    later(
        "authorization-config",
        Text,
        "",
        "File with the chain of authorizers. Excludes --authorization-mode and the webhook flags.",
    ),
    flag(
        "authorization-mode",
        List,
        "",
        "Authorizers in order: AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC, Node. Node,RBAC without it.",
    ),
    later("authorization-policy-file", Text, "", "Policy for mode ABAC: one JSON object per line."),
    later("authorization-webhook-cache-authorized-ttl", Duration, "5m0s", "How long a yes of the webhook is kept."),
    later("authorization-webhook-cache-unauthorized-ttl", Duration, "30s", "How long a no of the webhook is kept."),
    later("authorization-webhook-config-file", Text, "", "Kubeconfig of the service for mode Webhook."),
    later(
        "authorization-webhook-version",
        Text,
        "v1beta1",
        "Version of authorization.k8s.io SubjectAccessReview that is sent.",
    ),
];
