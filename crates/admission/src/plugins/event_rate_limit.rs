//! EventRateLimit: how many events the server takes, from anybody, a namespace, a user, or about one object.

use crate::plugin::{Plugin, Verdict};
use kubelith_codec::config::{Format, Item, Shape, Unknown};
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::text::aggregate;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::Request;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

const FORMAT: Format = Format {
    group: "eventratelimit.admission.k8s.io",
    versions: &["v1alpha1"],
    kind: "Configuration",
    fields: &[(
        "limits",
        Shape::List(&Item {
            shape: Shape::Object(&[
                ("type", Shape::Text),
                ("qps", Shape::Int),
                ("burst", Shape::Int),
                ("cacheSize", Shape::Int),
            ]),
            list: "[]v1alpha1.Limit",
        }),
    )],
    unknown: Unknown::PassedOver,
    scheme: Some("pkg/admission/eventratelimit/config.go:31"),
};

/// Keys that are remembered if the configuration does not say.
const DEFAULT_KEYS: usize = 4096;
const TYPES: [&str; 4] = ["Server", "Namespace", "User", "SourceAndObject"];

pub struct EventRateLimit {
    limits: Vec<Limit>,
}

struct Limit {
    kind: String,
    per_second: f64,
    burst: f64,
    keys: usize,
    buckets: Mutex<Buckets>,
}

/// Buckets by key, and in the order in which they were asked for: `order` has the keys by the number of their last use.
#[derive(Default)]
struct Buckets {
    by_key: HashMap<Arc<str>, (u64, Bucket)>,
    order: BTreeMap<u64, Arc<str>>,
    uses: u64,
}

impl Buckets {
    /// The bucket of a key, which was asked for last from now on; a new one takes the place of the one that was asked for
    /// longest ago, which is the fullest and means the least.
    fn of(&mut self, key: &str, max: usize, new: Bucket) -> &mut Bucket {
        self.uses += 1;
        let key: Arc<str> = match self.by_key.get_key_value(key) {
            Some((key, (before, _))) => {
                self.order.remove(before);
                key.clone()
            }
            None => {
                while self.by_key.len() >= max.max(1)
                    && let Some((_, oldest)) = self.order.pop_first()
                {
                    self.by_key.remove(&oldest);
                }
                key.into()
            }
        };
        self.order.insert(self.uses, key.clone());
        let (number, bucket) = self.by_key.entry(key).or_insert((self.uses, new));
        *number = self.uses;
        bucket
    }
}

/// Fills with time; each event takes one.
#[derive(Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl EventRateLimit {
    pub fn new(text: Option<&[u8]>) -> Result<EventRateLimit, String> {
        let document = match text {
            Some(text) => FORMAT.read(text).map_err(|why| why.to_string())?,
            None => Value::Null,
        };
        let limits = document.get("limits").and_then(Value::as_array).unwrap_or(&[]);
        let errors = validate(limits);
        match errors.is_empty() {
            true => Ok(EventRateLimit { limits: limits.iter().map(Limit::of).collect() }),
            false => Err(aggregate(errors.0.iter().map(ToString::to_string))),
        }
    }
}

fn validate(limits: &[Value]) -> ErrorList {
    let mut errors = ErrorList::default();
    let path = Path::new("limits");
    if limits.is_empty() {
        errors.push(Error::invalid(&path, BadValue::from(Value::Null), "must not be empty"));
    }
    for (i, limit) in limits.iter().enumerate() {
        let (path, kind) = (path.index(i), limit.str_at(&["type"]));
        let number = |name: &str| limit.get(name).and_then(Value::as_i64).unwrap_or_default();
        if !TYPES.contains(&kind) {
            errors.push(Error::not_supported(&path.child("type"), kind, TYPES));
        }
        for name in ["burst", "qps"] {
            if number(name) <= 0 {
                errors.push(Error::invalid(
                    &path.child(name),
                    BadValue::from(Value::from(number(name))),
                    "must be positive",
                ));
            }
        }
        if kind != "Server" && number("cacheSize") < 0 {
            let shown = BadValue::from(Value::from(number("cacheSize")));
            errors.push(Error::invalid(&path.child("cacheSize"), shown, "must not be negative"));
        }
    }
    errors
}

impl Limit {
    fn of(limit: &Value) -> Limit {
        let number = |name: &str| limit.get(name).and_then(Value::as_i64).unwrap_or_default();
        let kind = limit.str_at(&["type"]).to_owned();
        let keys = match (kind.as_str(), usize::try_from(number("cacheSize")).unwrap_or_default()) {
            ("Server", _) => 1,
            (_, 0) => DEFAULT_KEYS,
            (_, keys) => keys,
        };
        Limit { kind, per_second: number("qps") as f64, burst: number("burst") as f64, keys, buckets: Mutex::default() }
    }

    fn key(&self, request: Request<'_>, event: &Value) -> String {
        match self.kind.as_str() {
            "Namespace" => request.call.namespace.as_str().to_owned(),
            "User" => request.call.user.name.as_str().to_owned(),
            "SourceAndObject" => [
                ["source", "component"],
                ["source", "host"],
                ["involvedObject", "kind"],
                ["involvedObject", "namespace"],
                ["involvedObject", "name"],
                ["involvedObject", "uid"],
                ["involvedObject", "apiVersion"],
            ]
            .map(|path| event.str_at(&path))
            .concat(),
            _ => String::new(),
        }
    }

    fn takes(&self, key: &str, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.of(key, self.keys, Bucket { tokens: self.burst, at: now });
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.tokens = (bucket.tokens + since * self.per_second).min(self.burst);
        bucket.at = now;
        let takes = bucket.tokens >= 1.0;
        if takes {
            bucket.tokens -= 1.0;
        }
        takes
    }
}

impl Plugin for EventRateLimit {
    fn validate<'a>(&'a self, request: Request<'a>, event: &'a Value) -> Verdict<'a> {
        let kind = &request.call.kind;
        if !kind.group.is_empty() || kind.kind != "Event" || request.call.dry_run() {
            return Verdict::Idle;
        }
        let now = Instant::now();
        let mut refused = Vec::new();
        for limit in &self.limits {
            let key = limit.key(request, event);
            if !limit.takes(&key, now) {
                refused.push(format!("limit reached on type {} for key {key}", limit.kind));
            }
        }
        match refused.is_empty() {
            true => Verdict::PASSED,
            false => Verdict::Ready(Err(Status::too_many_requests_now(aggregate(refused)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const HEAD: &str = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n";

    #[test]
    fn buckets_fill_with_time() {
        let text = format!("{HEAD}limits: [{{type: Namespace, qps: 2, burst: 3, cacheSize: 2}}]\n");
        let plugin = EventRateLimit::new(Some(text.as_bytes())).unwrap();
        let (limit, now) = (&plugin.limits[0], Instant::now());
        let taken = |key: &str, now: Instant| (0..5).filter(|_| limit.takes(key, now)).count();
        assert_eq!((taken("a", now), taken("b", now)), (3, 3));
        assert_eq!(taken("a", now + Duration::from_secs(1)), 2);
        // The third key takes the place of the one that was asked for longest ago.
        assert_eq!((taken("c", now), limit.buckets.lock().unwrap().by_key.len()), (3, 2));
    }

    #[test]
    fn bad_files() {
        for (text, why) in [
            ("", "limits: Invalid value: null: must not be empty"),
            (
                "limits: [{type: Odd, qps: 1, burst: 0}]\n",
                "[limits[0].type: Unsupported value: \"Odd\": supported values: \"Server\", \"Namespace\", \"User\", \"SourceAndObject\", limits[0].burst: Invalid value: 0: must be positive]",
            ),
        ] {
            let said = EventRateLimit::new(Some(format!("{HEAD}{text}").as_bytes())).err().unwrap();
            assert_eq!(said, why);
        }
    }
}
