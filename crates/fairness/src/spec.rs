//! FlowSchemas and PriorityLevelConfigurations as the algorithms need them, read from the stored objects.

use crate::dealer::Dealer;
use crate::matching::{Names, NonResourceRule, ResourceRule, Rule, Subject};
use kubelith_meta::{Str, Value};

pub const EXEMPT: &str = "exempt";
pub const CATCH_ALL: &str = "catch-all";
/// What the API defaults a limited level's shares to.
const DEFAULT_SHARES: i64 = 30;

#[derive(Debug, Clone, PartialEq)]
pub struct FlowSchema {
    pub name: Str,
    pub uid: Str,
    /// Lower comes first.
    pub precedence: i64,
    pub level: Str,
    pub distinguisher: Option<Distinguisher>,
    pub rules: Vec<Rule>,
    /// The condition `Dangling` as the object has it.
    pub dangling: Option<Condition>,
}

/// What tells the flows of a schema apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distinguisher {
    User,
    Namespace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub status: Str,
    pub reason: Str,
    pub message: Str,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PriorityLevel {
    pub name: Str,
    pub uid: Str,
    pub shares: u32,
    pub lendable_percent: u32,
    /// `None`: as much as the server has.
    pub borrowing_percent: Option<u32>,
    pub discipline: Discipline,
}

/// What becomes of a request that finds no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// Never happens: requests are counted, not limited.
    Exempt,
    Reject,
    Queue(Queuing),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queuing {
    pub queues: u32,
    pub hand_size: u32,
    pub length_limit: u32,
    pub dealer: Dealer,
}

impl FlowSchema {
    /// Validation has seen the object, so what is missing or odd here matches nothing.
    pub fn parse(object: &Value) -> FlowSchema {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let conditions = object.at(&["status", "conditions"]);
        FlowSchema {
            name: object.str_at(&["metadata", "name"]).into(),
            uid: object.str_at(&["metadata", "uid"]).into(),
            precedence: spec.get("matchingPrecedence").and_then(Value::as_i64).unwrap_or(1000),
            level: spec.str_at(&["priorityLevelConfiguration", "name"]).into(),
            distinguisher: match spec.str_at(&["distinguisherMethod", "type"]) {
                "ByUser" => Some(Distinguisher::User),
                "ByNamespace" => Some(Distinguisher::Namespace),
                _ => None,
            },
            rules: items(spec, "rules").iter().map(rule).collect(),
            dangling: conditions.and_then(Value::as_array).and_then(|all| {
                let condition = all.iter().find(|c| c.str_at(&["type"]) == "Dangling")?;
                let text = |key| Str::from(condition.str_at(&[key]));
                Some(Condition { status: text("status"), reason: text("reason"), message: text("message") })
            }),
        }
    }

    /// In use whenever there is no object of this name.
    pub fn mandatory_exempt() -> FlowSchema {
        FlowSchema::everything(EXEMPT, 1, None, &["system:masters"])
    }

    /// In use whenever there is no object of this name.
    pub fn mandatory_catch_all() -> FlowSchema {
        let everybody = ["system:unauthenticated", "system:authenticated"];
        FlowSchema::everything(CATCH_ALL, 10_000, Some(Distinguisher::User), &everybody)
    }

    fn everything(name: &str, precedence: i64, distinguisher: Option<Distinguisher>, groups: &[&str]) -> FlowSchema {
        FlowSchema {
            name: name.into(),
            uid: Str::default(),
            precedence,
            level: name.into(),
            distinguisher,
            rules: vec![Rule {
                subjects: groups.iter().map(|group| Subject::Group((*group).into())).collect(),
                resources: vec![ResourceRule {
                    verbs: Names::All,
                    groups: Names::All,
                    resources: Names::All,
                    cluster_scope: true,
                    namespaces: Names::All,
                }],
                non_resources: vec![NonResourceRule { verbs: Names::All, paths: vec!["*".into()] }],
            }],
            dangling: None,
        }
    }
}

impl PriorityLevel {
    /// Says what is broken; a broken level is treated as absent.
    pub fn parse(object: &Value) -> Result<PriorityLevel, String> {
        let name = object.str_at(&["metadata", "name"]);
        let kind = object.str_at(&["spec", "type"]);
        let (limited, exempt) = (object.at(&["spec", "limited"]), object.at(&["spec", "exempt"]));
        if (kind == "Limited") != limited.is_some() {
            return Err("broken union structure at the top, for Limited".into());
        }
        if (kind == "Exempt") != exempt.is_some() {
            return Err("broken union structure at the top, for Exempt".into());
        }
        if (kind == "Exempt") != (name == EXEMPT) {
            return Err("non-alignment between name and type".into());
        }
        let common = limited.or(exempt).unwrap_or(&Value::Null);
        let number = |key: &str| common.get(key).and_then(Value::as_i64).map(|n| u32::try_from(n).unwrap_or(0));
        let default_shares = if limited.is_some() { DEFAULT_SHARES as u32 } else { 0 };
        Ok(PriorityLevel {
            name: name.into(),
            uid: object.str_at(&["metadata", "uid"]).into(),
            shares: number("nominalConcurrencyShares").unwrap_or(default_shares),
            lendable_percent: number("lendablePercent").unwrap_or(0).min(100),
            borrowing_percent: number("borrowingLimitPercent"),
            discipline: match limited {
                Some(limited) => discipline(limited)?,
                None => Discipline::Exempt,
            },
        })
    }

    /// In use whenever there is no object of this name.
    pub fn mandatory_exempt() -> PriorityLevel {
        PriorityLevel {
            name: EXEMPT.into(),
            uid: Str::default(),
            shares: 0,
            lendable_percent: 0,
            borrowing_percent: None,
            discipline: Discipline::Exempt,
        }
    }

    /// In use whenever there is no object of this name.
    pub fn mandatory_catch_all() -> PriorityLevel {
        PriorityLevel {
            name: CATCH_ALL.into(),
            shares: 5,
            discipline: Discipline::Reject,
            ..PriorityLevel::mandatory_exempt()
        }
    }
}

fn discipline(limited: &Value) -> Result<Discipline, String> {
    let queuing = limited.at(&["limitResponse", "queuing"]);
    if (limited.str_at(&["limitResponse", "type"]) == "Reject") != queuing.is_none() {
        return Err("broken union structure for limit response".into());
    }
    let Some(queuing) = queuing else { return Ok(Discipline::Reject) };
    let number = |key: &str, default: u32| {
        queuing.get(key).and_then(Value::as_i64).map_or(default, |n| u32::try_from(n).unwrap_or(0))
    };
    let (queues, hand_size) = (number("queues", 64), number("handSize", 8));
    let dealer = Dealer::new(queues, hand_size)?;
    Ok(Discipline::Queue(Queuing { queues, hand_size, length_limit: number("queueLengthLimit", 50), dealer }))
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or_default()
}

fn texts(value: &Value, key: &str) -> Vec<Str> {
    items(value, key).iter().filter_map(Value::as_str).map(Str::from).collect()
}

fn rule(value: &Value) -> Rule {
    Rule {
        subjects: items(value, "subjects").iter().filter_map(subject).collect(),
        resources: items(value, "resourceRules")
            .iter()
            .map(|rule| ResourceRule {
                verbs: Names::of(texts(rule, "verbs")),
                groups: Names::of(texts(rule, "apiGroups")),
                resources: Names::of(texts(rule, "resources")),
                cluster_scope: rule.get("clusterScope").and_then(Value::as_bool).unwrap_or(false),
                namespaces: Names::of(texts(rule, "namespaces")),
            })
            .collect(),
        non_resources: items(value, "nonResourceRules")
            .iter()
            .map(|rule| NonResourceRule {
                verbs: Names::of(texts(rule, "verbs")),
                paths: texts(rule, "nonResourceURLs"),
            })
            .collect(),
    }
}

fn subject(value: &Value) -> Option<Subject> {
    Some(match value.str_at(&["kind"]) {
        "User" => match value.at(&["user", "name"])?.as_str()? {
            "*" => Subject::Anyone,
            name => Subject::User(name.into()),
        },
        "Group" => match value.at(&["group", "name"])?.as_str()? {
            "*" => Subject::Anyone,
            name => Subject::Group(name.into()),
        },
        "ServiceAccount" => {
            let account = value.get("serviceAccount")?;
            let name = account.str_at(&["name"]);
            Subject::ServiceAccount {
                namespace: account.str_at(&["namespace"]).into(),
                name: (name != "*").then(|| name.into()),
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    fn level(name: &str, spec: &str) -> Result<PriorityLevel, String> {
        let text = format!(r#"{{"metadata":{{"name":"{name}","uid":"u"}},"spec":{spec}}}"#);
        PriorityLevel::parse(&json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn reads_levels() {
        let queued = level(
            "l",
            r#"{"type":"Limited","limited":{"nominalConcurrencyShares":20,"lendablePercent":50,
                "limitResponse":{"type":"Queue","queuing":{"queues":128,"handSize":6,"queueLengthLimit":50}}}}"#,
        )
        .unwrap();
        assert_eq!((queued.shares, queued.lendable_percent, queued.borrowing_percent), (20, 50, None));
        let Discipline::Queue(queuing) = queued.discipline else { panic!("{queued:?}") };
        assert_eq!((queuing.queues, queuing.hand_size, queuing.length_limit), (128, 6, 50));
        let rejecting = r#"{"type":"Limited","limited":{"borrowingLimitPercent":7,"limitResponse":{"type":"Reject"}}}"#;
        let rejecting = level("l", rejecting).unwrap();
        assert_eq!((rejecting.shares, rejecting.borrowing_percent), (30, Some(7)));
        assert_eq!(rejecting.discipline, Discipline::Reject);
        let exempt = level("exempt", r#"{"type":"Exempt","exempt":{}}"#).unwrap();
        assert_eq!((exempt.shares, exempt.discipline), (0, Discipline::Exempt));
    }

    #[test]
    fn says_what_is_broken() {
        for (name, spec, why) in [
            ("l", r#"{"type":"Limited"}"#, "broken union structure at the top, for Limited"),
            ("exempt", r#"{"type":"Exempt"}"#, "broken union structure at the top, for Exempt"),
            ("l", r#"{"type":"Exempt","exempt":{}}"#, "non-alignment between name and type"),
            (
                "l",
                r#"{"type":"Limited","limited":{"limitResponse":{"type":"Queue"}}}"#,
                "broken union structure for limit response",
            ),
            (
                "l",
                r#"{"type":"Limited","limited":{"limitResponse":{"type":"Queue","queuing":{"queues":2,"handSize":3}}}}"#,
                "handSize 3 is greater than deckSize 2",
            ),
        ] {
            assert_eq!(level(name, spec).unwrap_err(), why);
        }
    }
}
