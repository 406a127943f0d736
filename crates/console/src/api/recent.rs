//! The last requests that were slow, refused or denied, as they are shown.

use super::{Sources, millis};
use kubelith_auth::User;
use kubelith_http::RequestInfo;
use kubelith_observe::recent::{Denial, Refusal, SlowRequest};
use serde::Serialize;
use std::collections::BTreeMap;

/// Who asked for what.
#[derive(Serialize)]
pub struct Asked {
    user: String,
    verb: String,
    path: String,
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

impl Asked {
    pub fn of(user: &User, info: &RequestInfo) -> Asked {
        Asked {
            user: user.name.to_string(),
            verb: info.verb.to_string(),
            path: info.path.to_string(),
            group: info.group.to_string(),
            resource: info.resource.to_string(),
            subresource: info.subresource.to_string(),
            namespace: info.namespace.to_string(),
            name: info.name.to_string(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Slow {
    time: u64,
    took_ms: f64,
    code: u16,
    /// Milliseconds by part.
    parts: BTreeMap<&'static str, f64>,
    #[serde(flatten)]
    asked: Asked,
}

impl Slow {
    /// `store` is what the store is called.
    pub fn of(slow: &SlowRequest, store: &'static str) -> Slow {
        let named = |name: &'static str| if name == "etcd" { store } else { name };
        Slow {
            time: millis(slow.at),
            took_ms: slow.took.as_secs_f64() * 1e3,
            code: slow.code,
            parts: slow.parts.iter().map(|(name, spent)| (named(name), spent.as_secs_f64() * 1e3)).collect(),
            asked: Asked::of(&slow.asked.user, &slow.asked.info),
        }
    }
}

#[derive(Serialize)]
pub struct Refused {
    last: u64,
    count: u64,
    #[serde(flatten)]
    asked: Asked,
}

impl Refused {
    pub fn of(refusal: &Refusal) -> Refused {
        let asked = Asked::of(&refusal.asked.user, &refusal.asked.info);
        Refused { last: millis(refusal.last), count: refusal.count, asked }
    }
}

#[derive(Serialize)]
struct Denied {
    last: u64,
    count: u64,
    reason: String,
    groups: Vec<String>,
    #[serde(flatten)]
    asked: Asked,
}

impl Denied {
    fn of(denial: &Denial) -> Denied {
        Denied {
            last: millis(denial.last),
            count: denial.count,
            reason: denial.reason.clone(),
            groups: denial.asked.user.groups.iter().map(|group| group.to_string()).collect(),
            asked: Asked::of(&denial.asked.user, &denial.asked.info),
        }
    }
}

#[derive(Serialize)]
pub struct Denials {
    items: Vec<Denied>,
}

/// `GET /kubelith/v1/denials`: newest first.
pub fn denials(sources: &Sources) -> Denials {
    let lists = sources.metrics.requests.recent.lists();
    Denials { items: lists.denied.iter().rev().map(Denied::of).collect() }
}
