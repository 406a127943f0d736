//! ClusterTrustBundles.

pub mod validate;

use kubelith_rules::Kind;

pub const CLUSTER_TRUST_BUNDLE: Kind =
    Kind { group: "certificates.k8s.io", plural: "clustertrustbundles", rules: validate::RULES, ..Kind::PLAIN }
        .guarded();
