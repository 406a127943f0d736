//! Which admission plugins run, and how.

use crate::flags::Flags;
use kubelith_admission::{Configuration, Switches, is_known};

#[derive(Debug, Clone)]
pub struct AdmissionOptions {
    pub switches: Switches,
    pub configuration: Configuration,
    pub allow_privileged: bool,
    pub not_ready_toleration_seconds: i64,
    pub unreachable_toleration_seconds: i64,
}

/// Names the plugins that run, and no others do.
const EXACTLY: &str = "admission-control";

impl AdmissionOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> AdmissionOptions {
        let is_given = |flag: &str| flags.is_given(flag);
        let exactly = is_given(EXACTLY);
        if exactly && (is_given("enable-admission-plugins") || is_given("disable-admission-plugins")) {
            errors.push(
                "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive"
                    .to_owned(),
            );
        }
        let mut names = |flag: &str| {
            let names = flags.list(flag);
            let unknown = names.iter().filter(|name| !is_known(name));
            errors.extend(unknown.map(|name| format!("{flag} plugin {name:?} is unknown")));
            names
        };
        let only = names(EXACTLY);
        let enabled = names("enable-admission-plugins");
        let disabled = names("disable-admission-plugins");
        let mut switches = Switches { enabled, disabled };
        if let Some(both) = switches.enabled.iter().find(|name| switches.disabled.contains(name)) {
            errors.push(format!("[{both}] in enable-admission-plugins and disable-admission-plugins overlapped"));
        }
        let file = Some(flags.text("admission-control-config-file")).filter(|path| !path.is_empty());
        let configuration = file.map(|path| Configuration::read(path.as_ref())).transpose();
        let configuration = configuration.unwrap_or_else(|why| {
            errors.push(format!("failed to apply admission: failed to read plugin config: {why}"));
            None
        });
        if exactly {
            switches = Switches::exactly(only);
        }
        AdmissionOptions {
            switches,
            configuration: configuration.unwrap_or_default(),
            allow_privileged: flags.bool("allow-privileged"),
            not_ready_toleration_seconds: flags.int("default-not-ready-toleration-seconds"),
            unreachable_toleration_seconds: flags.int("default-unreachable-toleration-seconds"),
        }
    }
}
