//! Options of authentication and authorization.

use crate::flags::Flags;
use kubelith_meta::text::Quoted;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct AccessOptions {
    pub anonymous: bool,
    pub audiences: Vec<String>,
    pub client_ca_file: Option<PathBuf>,
    pub token_file: Option<PathBuf>,
    pub authorization_modes: Vec<String>,
}

const MODES: [&str; 6] = ["AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"];

impl AccessOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> AccessOptions {
        let file = |name: &str| Some(flags.text(name)).filter(|f| !f.is_empty()).map(PathBuf::from);
        let mut modes = flags.list("authorization-mode");
        if modes.is_empty() {
            // The reference lets everybody do everything here; a newcomer's server must not.
            modes = vec!["Node".into(), "RBAC".into()];
        }
        check_modes(&modes, flags, errors);
        // Without a rule for anybody, strangers would have all rights.
        let anonymous = flags.bool("anonymous-auth") && !modes.iter().any(|m| m == "AlwaysAllow");
        AccessOptions {
            anonymous,
            audiences: flags.list("api-audiences"),
            client_ca_file: file("client-ca-file"),
            token_file: file("token-auth-file"),
            authorization_modes: modes,
        }
    }
}

fn check_modes(modes: &[String], flags: &Flags, errors: &mut Vec<String>) {
    let policy = flags.text("authorization-policy-file");
    let webhook = flags.text("authorization-webhook-config-file");
    for mode in modes {
        if !MODES.contains(&mode.as_str()) {
            errors.push(format!("authorization-mode {} is not a valid mode", Quoted(mode)));
        }
        if mode == "ABAC" && policy.is_empty() {
            errors.push("authorization-mode ABAC's authorization policy file not passed".into());
        }
        if mode == "Webhook" && webhook.is_empty() {
            errors.push("authorization-mode Webhook's authorization config file not passed".into());
        }
    }
    let has = |wanted: &str| modes.iter().any(|m| m == wanted);
    if !policy.is_empty() && !has("ABAC") {
        errors.push("cannot specify --authorization-policy-file without mode ABAC".into());
    }
    if !webhook.is_empty() && !has("Webhook") {
        errors.push("cannot specify --authorization-webhook-config-file without mode Webhook".into());
    }
    if modes.iter().enumerate().any(|(i, mode)| modes[..i].contains(mode)) {
        let quoted: Vec<String> = modes.iter().map(|m| Quoted(m).to_string()).collect();
        errors.push(format!("authorization-mode [{}] has mode specified more than once", quoted.join(" ")));
    }
}
