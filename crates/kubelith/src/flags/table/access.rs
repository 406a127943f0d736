//! Flags of authentication and authorization.

use super::super::{Flag, FlagKind::*};
use super::flag;

pub const AUTHENTICATION: &[Flag] = &[
    flag(
        "anonymous-auth",
        Bool,
        "true",
        "Let requests without credentials in as system:anonymous in group system:unauthenticated; what they may do is \
         up to authorization.",
    ),
    flag("api-audiences", List, "", "Audiences that tokens must be meant for; the service account issuer by default."),
    flag("authentication-config", Text, "", "File with JWT authenticators and anonymous access."),
    flag("authentication-token-webhook-cache-ttl", Duration, "2m0s", "How long answers of the token webhook are kept."),
    flag("authentication-token-webhook-config-file", Text, "", "Kubeconfig of the service that judges bearer tokens."),
    flag(
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
    flag(
        "enable-bootstrap-token-auth",
        Bool,
        "",
        "Let secrets of type bootstrap.kubernetes.io/token in kube-system authenticate.",
    ),
    flag("oidc-ca-file", Text, "", "Authorities of the OpenID provider's certificate; those of the host without it."),
    flag("oidc-client-id", Text, "", "Client that OpenID tokens must be meant for."),
    flag("oidc-groups-claim", Text, "", "Claim with the user's groups."),
    flag("oidc-groups-prefix", Text, "", "Prefix for those groups."),
    flag("oidc-issuer-url", Text, "", "URL of the OpenID provider; https only."),
    flag("oidc-required-claim", Map, "", "Claims that a token must have: name=value. Can be repeated."),
    flag("oidc-signing-algs", List, "RS256", "Algorithms that tokens may be signed with."),
    flag("oidc-username-claim", Text, "sub", "Claim with the user's name."),
    flag("oidc-username-prefix", Text, "", "Prefix for user names; - for none."),
    flag(
        "requestheader-allowed-names",
        List,
        "",
        "Common names of front proxies; any that --requestheader-client-ca-file vouches for if empty.",
    ),
    flag("requestheader-client-ca-file", Text, "", "Authorities of front proxies, whose headers are believed."),
    flag(
        "requestheader-extra-headers-prefix",
        List,
        "",
        "Prefixes of headers with more about the user: X-Remote-Extra-.",
    ),
    flag("requestheader-group-headers", List, "", "Headers with the user's groups: X-Remote-Group."),
    flag("requestheader-uid-headers", List, "", "Headers with the user's uid: X-Remote-Uid."),
    flag("requestheader-username-headers", List, "", "Headers with the user's name: X-Remote-User."),
    flag(
        "service-account-extend-token-expiration",
        Bool,
        "true",
        "Let tokens for pods live a year, so that clients which never reread them go on.",
    ),
    flag(
        "service-account-issuer",
        Array,
        "",
        "Issuer of service account tokens: an https URL. The first signs; others are accepted. https://kubernetes.default.svc without it.",
    ),
    flag("service-account-jwks-uri", Text, "", "URL of the keys in the discovery document."),
    flag(
        "service-account-key-file",
        Array,
        "",
        "Public or private keys that verify service account tokens. Ours without it.",
    ),
    flag("service-account-lookup", Bool, "true", "Check that tokens still exist in storage."),
    flag("service-account-max-token-expiration", Duration, "", "Longest life of a token that is asked for."),
    flag("token-auth-file", Text, "", "CSV file of fixed tokens: token,user,uid,\"group,…\"."),
];

pub const AUTHORIZATION: &[Flag] = &[
    flag(
        "authorization-config",
        Text,
        "",
        "File with the chain of authorizers. Excludes --authorization-mode and the webhook flags.",
    ),
    flag(
        "authorization-mode",
        List,
        "",
        "Authorizers in order: AlwaysAllow, AlwaysDeny, ABAC, Webhook, RBAC, Node. Without it Node,RBAC, or AlwaysAllow if \
         --etcd-servers is given.",
    ),
    flag("authorization-policy-file", Text, "", "Policy for mode ABAC: one JSON object per line."),
    flag("authorization-webhook-cache-authorized-ttl", Duration, "5m0s", "How long a yes of the webhook is kept."),
    flag("authorization-webhook-cache-unauthorized-ttl", Duration, "30s", "How long a no of the webhook is kept."),
    flag("authorization-webhook-config-file", Text, "", "Kubeconfig of the service for mode Webhook."),
    flag(
        "authorization-webhook-version",
        Text,
        "v1beta1",
        "Version of authorization.k8s.io SubjectAccessReview that is sent.",
    ),
];
