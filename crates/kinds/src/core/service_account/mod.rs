//! ServiceAccounts.

use kubelith_meta::Value;
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing::Required;
use kubelith_rules::common::{meta, meta_update};
use kubelith_rules::{Kind, Rules};

pub const SERVICE_ACCOUNT: Kind = Kind {
    group: "",
    plural: "serviceaccounts",
    rules: RULES,

    delete_returns_object: true,
    prepare_for_create: |_, _, account| clean_secrets(account),
    prepare_for_update: |_, _, _, account, _| clean_secrets(account),
    warnings_on_create: |_, account| mountable_secrets_warning(account),
    warnings_on_update: |_, _, account, old| {
        let known = old.meta().annotation(ENFORCE_MOUNTABLE_SECRETS).is_some();
        if known { Vec::new() } else { mountable_secrets_warning(account) }
    },
    ..Kind::PLAIN
};

pub const RULES: Rules = Rules {
    create: |_, object| meta(object, Required, name_is_dns_subdomain),
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        errors.extend(meta(new, Required, name_is_dns_subdomain));
        errors
    },
};

const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

/// References to secrets are names, nothing else.
fn clean_secrets(account: &mut Value) {
    for secret in account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        secret.make_object().retain(|key, _| key == "name");
    }
}

fn mountable_secrets_warning(account: &Value) -> Vec<String> {
    if account.meta().annotation(ENFORCE_MOUNTABLE_SECRETS).is_none() {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate \
         access to mounted secrets"
    )]
}
