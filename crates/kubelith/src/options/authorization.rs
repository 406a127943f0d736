//! Options of authorization: who is asked whether a request may go on.

use super::authentication::{duration, file};
use crate::flags::Flags;
use kubelith_meta::text::Quoted;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone)]
pub enum AuthorizationOptions {
    /// `--authorization-mode` and its companions.
    Modes(ModeOptions),
    /// `--authorization-config`.
    File(PathBuf),
}

#[derive(Debug, Clone)]
pub struct ModeOptions {
    pub modes: Vec<String>,
    pub policy_file: Option<PathBuf>,
    pub webhook_file: Option<PathBuf>,
    pub webhook_version: String,
    pub authorized_ttl: Duration,
    pub unauthorized_ttl: Duration,
}

const MODES: [&str; 6] = ["AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"];

impl AuthorizationOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> AuthorizationOptions {
        const OLD_FLAGS: [&str; 5] = [
            "authorization-mode",
            "authorization-webhook-config-file",
            "authorization-webhook-version",
            "authorization-webhook-cache-authorized-ttl",
            "authorization-webhook-cache-unauthorized-ttl",
        ];
        if let Some(config) = file(flags, "authorization-config") {
            if OLD_FLAGS.iter().any(|f| flags.is_given(f)) {
                errors.push(
                    "--authorization-config can not be specified when --authorization-mode or \
                     --authorization-webhook-* flags are defined"
                        .into(),
                );
            }
            return AuthorizationOptions::File(config);
        }
        let mut modes = flags.list("authorization-mode");
        if modes.is_empty() {
            // With an etcd the server stands in for the reference, which lets everybody with a credential do everything
            // here. A newcomer's server must not.
            modes = match flags.list("etcd-servers").is_empty() {
                true => vec!["Node".into(), "RBAC".into()],
                false => vec!["AlwaysAllow".into()],
            };
        }
        let options = ModeOptions {
            modes,
            policy_file: file(flags, "authorization-policy-file"),
            webhook_file: file(flags, "authorization-webhook-config-file"),
            webhook_version: flags.text("authorization-webhook-version"),
            authorized_ttl: duration(flags, "authorization-webhook-cache-authorized-ttl"),
            unauthorized_ttl: duration(flags, "authorization-webhook-cache-unauthorized-ttl"),
        };
        options.check(errors);
        AuthorizationOptions::Modes(options)
    }

    /// Everybody may do everything: then strangers must not be let in as anonymous.
    pub fn allows_always(&self) -> bool {
        matches!(self, AuthorizationOptions::Modes(o) if o.has("AlwaysAllow"))
    }
}

impl ModeOptions {
    fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|m| m == mode)
    }

    fn check(&self, errors: &mut Vec<String>) {
        for mode in &self.modes {
            if !MODES.contains(&mode.as_str()) {
                errors.push(format!("authorization-mode {} is not a valid mode", Quoted(mode)));
            }
            if mode == "ABAC" && self.policy_file.is_none() {
                errors.push("authorization-mode ABAC's authorization policy file not passed".into());
            }
            if mode == "Webhook" && self.webhook_file.is_none() {
                errors.push("authorization-mode Webhook's authorization config file not passed".into());
            }
        }
        if self.policy_file.is_some() && !self.has("ABAC") {
            errors.push("cannot specify --authorization-policy-file without mode ABAC".into());
        }
        if self.webhook_file.is_some() && !self.has("Webhook") {
            errors.push("cannot specify --authorization-webhook-config-file without mode Webhook".into());
        }
        if self.modes.iter().enumerate().any(|(i, mode)| self.modes[..i].contains(mode)) {
            let quoted: Vec<String> = self.modes.iter().map(|m| Quoted(m).to_string()).collect();
            errors.push(format!("authorization-mode [{}] has mode specified more than once", quoted.join(" ")));
        }
    }
}
