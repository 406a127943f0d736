//! What a ConfigMap of service quality says:
//!
//! ```text
//! subjects: |                    one per line
//!   user alice
//!   group interns
//!   serviceaccount batch/*
//!   namespace sandbox
//! shared-by: subject             each subject has a budget (default); or user: each user; or class: one for all
//! requests-per-second: "50"      with requests-burst, one second's worth by default
//! list-bytes-per-second: 10Mi    with list-bytes-burst
//! concurrent-watches: "20"
//! ```

use crate::Digest;
use kubelith_meta::Str;
use kubelith_meta::quantity::Quantity;

/// Rates and sizes beyond this are no limits but mistakes.
const MAX: f64 = 1e15;

#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    pub name: Str,
    /// With the lines that named them, which are the names of their accounts.
    pub subjects: Vec<(Str, Subject)>,
    pub shared_by: SharedBy,
    pub requests: Option<Rate>,
    pub list_bytes: Option<Rate>,
    pub watches: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    User(Str),
    Group(Str),
    /// Without a name: all of the namespace.
    ServiceAccount {
        namespace: Str,
        name: Option<Str>,
    },
    /// Whoever asks for something in this namespace.
    Namespace(Str),
}

/// Who draws on the same budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedBy {
    Subject,
    User,
    Class,
}

/// So much per second, and so much at once after a quiet time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    pub burst: f64,
}

impl Class {
    /// Says everything that is wrong.
    pub fn parse<'a>(name: &str, data: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Class, Vec<String>> {
        let mut class = Class {
            name: name.into(),
            subjects: Vec::new(),
            shared_by: SharedBy::Subject,
            requests: None,
            list_bytes: None,
            watches: None,
        };
        let mut errors = Vec::new();
        let (mut requests, mut requests_burst, mut bytes, mut bytes_burst) = (None, None, None, None);
        for (key, value) in data {
            let value = value.trim();
            let mut amount = || match quantity(value) {
                Ok(amount) => Some(amount),
                Err(why) => {
                    errors.push(format!("{key}: {why}"));
                    None
                }
            };
            match key {
                "subjects" => class.read_subjects(value, &mut errors),
                "shared-by" => match value {
                    "subject" => class.shared_by = SharedBy::Subject,
                    "user" => class.shared_by = SharedBy::User,
                    "class" => class.shared_by = SharedBy::Class,
                    _ => errors.push(format!("{key}: {value:?} is none of subject, user, class")),
                },
                "requests-per-second" => requests = amount(),
                "requests-burst" => requests_burst = amount(),
                "list-bytes-per-second" => bytes = amount(),
                "list-bytes-burst" => bytes_burst = amount(),
                "concurrent-watches" => class.watches = amount().map(|n| n.min(f64::from(u32::MAX)) as u32),
                _ => errors.push(format!("{key}: unknown key")),
            }
        }
        class.requests = rate("requests", requests, requests_burst, &mut errors);
        class.list_bytes = rate("list-bytes", bytes, bytes_burst, &mut errors);
        if class.subjects.is_empty() && errors.is_empty() {
            errors.push("subjects: at least one is needed".into());
        }
        if errors.is_empty() && class.requests.is_none() && class.list_bytes.is_none() && class.watches.is_none() {
            errors.push("no budget: one of requests-per-second, list-bytes-per-second, concurrent-watches".into());
        }
        if errors.is_empty() { Ok(class) } else { Err(errors) }
    }

    /// On whose account a request goes; `None` if the class does not concern it.
    pub fn account<'a>(&'a self, request: &Digest<'a>) -> Option<&'a str> {
        let (line, _) = self.subjects.iter().find(|(_, subject)| subject.concerns(request))?;
        Some(match self.shared_by {
            SharedBy::Class => "",
            SharedBy::User => request.user,
            SharedBy::Subject => line,
        })
    }

    fn read_subjects(&mut self, text: &str, errors: &mut Vec<String>) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match Subject::parse(line) {
                Some(subject) => self.subjects.push((line.into(), subject)),
                None => errors.push(format!(
                    "subjects: {line:?} is none of \"user NAME\", \"group NAME\", \"serviceaccount NAMESPACE/NAME\", \
                     \"namespace NAME\""
                )),
            }
        }
    }
}

impl Subject {
    fn parse(line: &str) -> Option<Subject> {
        let (kind, name) = line.split_once(char::is_whitespace)?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return None;
        }
        Some(match kind {
            "user" => Subject::User(name.into()),
            "group" => Subject::Group(name.into()),
            "namespace" => Subject::Namespace(name.into()),
            "serviceaccount" => {
                let (namespace, name) = name.split_once('/').filter(|(ns, n)| !ns.is_empty() && !n.is_empty())?;
                Subject::ServiceAccount { namespace: namespace.into(), name: (name != "*").then(|| name.into()) }
            }
            _ => return None,
        })
    }

    fn concerns(&self, request: &Digest<'_>) -> bool {
        match self {
            Subject::User(name) => request.user == name,
            Subject::Group(name) => request.groups.iter().any(|group| group == name),
            Subject::Namespace(name) => request.is_resource_request && request.namespace == name,
            Subject::ServiceAccount { namespace, name } => {
                crate::matching::is_service_account(request.user, namespace, name.as_deref())
            }
        }
    }
}

fn quantity(text: &str) -> Result<f64, String> {
    let amount = Quantity::parse(text).map_err(|e| e.to_string())?.as_approximate_f64();
    if (0.0..=MAX).contains(&amount) { Ok(amount) } else { Err(format!("{text} is not between 0 and {MAX:e}")) }
}

fn rate(what: &str, per_second: Option<f64>, burst: Option<f64>, errors: &mut Vec<String>) -> Option<Rate> {
    match (per_second, burst) {
        (Some(per_second), burst) => Some(Rate { per_second, burst: burst.unwrap_or(per_second).max(1.0) }),
        (None, Some(_)) => {
            errors.push(format!("{what}-burst: needs {what}-per-second"));
            None
        }
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_class() {
        let class = Class::parse(
            "batch",
            [
                (
                    "subjects",
                    "user alice\n  group interns\n\nserviceaccount batch/*\nserviceaccount a/b\nnamespace sandbox\n",
                ),
                ("requests-per-second", "50"),
                ("requests-burst", "100"),
                ("list-bytes-per-second", "1Mi"),
                ("concurrent-watches", "20"),
            ],
        )
        .unwrap();
        assert_eq!(class.requests, Some(Rate { per_second: 50.0, burst: 100.0 }));
        assert_eq!(class.list_bytes, Some(Rate { per_second: 1_048_576.0, burst: 1_048_576.0 }));
        assert_eq!(class.watches, Some(20));
        let groups = ["interns".into()];
        for (user, namespace, account) in [
            ("alice", "x", Some("user alice")),
            ("system:serviceaccount:batch:job", "x", Some("serviceaccount batch/*")),
            ("system:serviceaccount:a:b", "x", Some("serviceaccount a/b")),
            ("system:serviceaccount:a:c", "x", None),
            ("bob", "sandbox", Some("namespace sandbox")),
            ("bob", "x", None),
        ] {
            let request = Digest { user, namespace, is_resource_request: true, ..Digest::default() };
            assert_eq!(class.account(&request), account, "{user} {namespace}");
        }
        let intern = Digest { user: "bob", groups: &groups, ..Digest::default() };
        assert_eq!(class.account(&intern), Some("group interns"));
        assert_eq!(Class { shared_by: SharedBy::User, ..class.clone() }.account(&intern), Some("bob"));
        assert_eq!(Class { shared_by: SharedBy::Class, ..class }.account(&intern), Some(""));
    }

    #[test]
    fn says_what_is_wrong() {
        type Case = (&'static [(&'static str, &'static str)], &'static [&'static str]);
        let cases: &[Case] = &[
            (&[], &["subjects: at least one is needed"]),
            (
                &[("subjects", "user a")],
                &["no budget: one of requests-per-second, list-bytes-per-second, concurrent-watches"],
            ),
            (&[("subjects", "user a"), ("requests-burst", "1")], &["requests-burst: needs requests-per-second"]),
            (
                &[("subjects", "user a"), ("concurrent-watches", "-1")],
                &["concurrent-watches: -1 is not between 0 and 1e15"],
            ),
            (
                &[("subjects", "user a"), ("speed", "1"), ("shared-by", "us")],
                &["speed: unknown key", "shared-by: \"us\" is none of subject, user, class"],
            ),
        ];
        for (data, errors) in cases {
            assert_eq!(Class::parse("c", data.iter().copied()).unwrap_err(), *errors);
        }
        for subject in ["user", "user a b", "people a", "serviceaccount a", "serviceaccount /a", "serviceaccount a/"] {
            let errors = Class::parse("c", [("subjects", subject), ("concurrent-watches", "1")]).unwrap_err();
            assert!(errors[0].starts_with(&format!("subjects: {subject:?} is none of")), "{errors:?}");
        }
        let errors = Class::parse("c", [("subjects", "user a"), ("requests-per-second", "fast")]).unwrap_err();
        assert!(errors[0].starts_with("requests-per-second: "), "{errors:?}");
    }
}
