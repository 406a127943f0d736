//! PodSecurityConfiguration: what holds for namespaces without labels, and who is exempt.

use super::policy::{BAD_LEVEL, BAD_VERSION, Level, LevelVersion, Policy, Version};
use kubelith_codec::config::{Format, Shape, TEXTS, Unknown};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1123_label, is_dns1123_subdomain};
use kubelith_meta::text::aggregate;

const FORMAT: Format = Format {
    group: "pod-security.admission.config.k8s.io",
    versions: &["v1", "v1beta1", "v1alpha1"],
    kind: "PodSecurityConfiguration",
    fields: &[
        (
            "defaults",
            Shape::Object(&[
                ("enforce", Shape::Text),
                ("enforce-version", Shape::Text),
                ("audit", Shape::Text),
                ("audit-version", Shape::Text),
                ("warn", Shape::Text),
                ("warn-version", Shape::Text),
            ]),
        ),
        ("exemptions", Shape::Object(&[("usernames", TEXTS), ("namespaces", TEXTS), ("runtimeClasses", TEXTS)])),
    ],
    unknown: Unknown::Refused,
    scheme: Some("k8s.io/pod-security-admission/admission/api/scheme/scheme.go:31"),
};

/// Without a file: everything is allowed where no label says otherwise, and nobody is exempt from what labels say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub defaults: Policy,
    usernames: Vec<String>,
    namespaces: Vec<String>,
    runtime_classes: Vec<String>,
}

impl Settings {
    pub fn read(text: Option<&[u8]>) -> Result<Settings, String> {
        let Some(text) = text.filter(|t| !t.is_empty()) else {
            return Ok(Settings {
                defaults: Policy::PRIVILEGED,
                usernames: Vec::new(),
                namespaces: Vec::new(),
                runtime_classes: Vec::new(),
            });
        };
        let document = FORMAT.read(text).map_err(|why| why.to_string())?;
        let failed = |why: String| format!("failed to initialize admission plugin \"PodSecurity\": {why}");
        let defaults = defaults(&document).map_err(|errors| {
            let all = aggregate(errors);
            failed(format!("PodSecurity configuration error: {all}"))
        })?;
        let texts = |name: &str| -> Vec<String> {
            let list = document.at(&["exemptions", name]).and_then(Value::as_array).unwrap_or(&[]);
            list.iter().map(|v| v.as_str().unwrap_or_default().to_owned()).collect()
        };
        let settings = Settings {
            defaults,
            usernames: texts("usernames"),
            namespaces: texts("namespaces"),
            runtime_classes: texts("runtimeClasses"),
        };
        let errors = settings.errors();
        match errors.is_empty() {
            true => Ok(settings),
            false => {
                let all = aggregate(errors.0.iter().map(ToString::to_string));
                Err(failed(format!("PodSecurity invalid: {all}")))
            }
        }
    }

    fn errors(&self) -> ErrorList {
        let mut errors = ErrorList::default();
        let mut check = |field: &str, names: &[String], wrong: fn(&str) -> Vec<String>| {
            let exemptions = Path::new("exemptions");
            let list = exemptions.child(field);
            for (i, name) in names.iter().enumerate() {
                let (path, wrong) = (list.index(i), wrong(name));
                if !wrong.is_empty() {
                    errors.push(Error::invalid(&path, name.as_str(), wrong.join(", ")));
                } else if names[..i].contains(name) {
                    errors.push(Error::duplicate(&path, name.as_str()));
                }
            }
        };
        check("namespaces", &self.namespaces, is_dns1123_label);
        check("runtimeClasses", &self.runtime_classes, is_dns1123_subdomain);
        check("usernames", &self.usernames, |name| match name {
            "" => vec!["username must not be empty".to_owned()],
            _ => Vec::new(),
        });
        errors
    }

    pub fn exempts_namespace(&self, namespace: &str) -> bool {
        contains(&self.namespaces, namespace)
    }

    pub fn exempts_user(&self, user: &str) -> bool {
        contains(&self.usernames, user)
    }

    /// By the runtime class of a pod or a template.
    pub fn exempts_pod(&self, pod: &Value) -> bool {
        !self.runtime_classes.is_empty() && contains(&self.runtime_classes, pod.str_at(&["spec", "runtimeClassName"]))
    }
}

fn contains(names: &[String], name: &str) -> bool {
    !name.is_empty() && names.iter().any(|n| n == name)
}

fn defaults(document: &Value) -> Result<Policy, Vec<String>> {
    let mut errors = Vec::new();
    let mut mode = |name: &str| {
        let given = |key: &str| Some(document.str_at(&["defaults", key])).filter(|text| !text.is_empty());
        let level = given(name).map_or(Some(Level::Privileged), Level::parse);
        if level.is_none() {
            errors.push(format!("{name}: {BAD_LEVEL}"));
        }
        let key = format!("{name}-version");
        let version = given(&key).map_or(Some(Version::Latest), Version::parse);
        if version.is_none() {
            errors.push(format!("{key}: {BAD_VERSION}"));
        }
        LevelVersion { level: level.unwrap_or(Level::Restricted), version: version.unwrap_or(Version::Latest) }
    };
    let policy = Policy { enforce: mode("enforce"), audit: mode("audit"), warn: mode("warn") };
    if errors.is_empty() { Ok(policy) } else { Err(errors) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rest: &str) -> Result<Settings, String> {
        let head = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n";
        Settings::read(Some(format!("{head}{rest}").as_bytes()))
    }

    #[test]
    fn settings() {
        let all = read(
            "defaults: {enforce: baseline, enforce-version: v1.30}\n\
             exemptions: {usernames: [bob], namespaces: [kube-system], runtimeClasses: [kata]}\n",
        )
        .unwrap();
        assert_eq!(all.defaults.enforce.to_string(), "baseline:v1.30");
        assert_eq!(all.defaults.warn, Policy::PRIVILEGED.warn);
        assert!(all.exempts_user("bob") && all.exempts_namespace("kube-system") && !all.exempts_namespace(""));
        let mut pod = Value::object();
        assert!(!all.exempts_pod(&pod));
        pod.set_at(&["spec", "runtimeClassName"], "kata".into());
        assert!(all.exempts_pod(&pod));
        assert_eq!(Settings::read(None).unwrap(), read("").unwrap());
    }

    /// Each was given to kube-apiserver v1.36.
    #[test]
    fn errors() {
        for (rest, want) in [
            (
                "defaults: {enforce: odd, warn-version: x}\nexemptions: {namespaces: [A]}\n",
                "failed to initialize admission plugin \"PodSecurity\": PodSecurity configuration error: [enforce: must be \
                 one of privileged, baseline, restricted, warn-version: must be \"latest\" or \"v1.x\"]",
            ),
            ("deflts: {}\n", "strict decoding error: unknown field \"deflts\""),
            (
                "exemptions: {namespaces: [b, b], usernames: [\"\"]}\n",
                "failed to initialize admission plugin \"PodSecurity\": PodSecurity invalid: [exemptions.namespaces[1]: \
                 Duplicate value: \"b\", exemptions.usernames[0]: Invalid value: \"\": username must not be empty]",
            ),
        ] {
            assert_eq!(read(rest).unwrap_err(), want);
        }
    }
}
