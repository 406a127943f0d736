//! Cells of events, which have other fields in either group.

use kubelith_meta::{Str, Value};
use kubelith_rules::cells::{self, Cells, Row};

pub const CELLS: Cells = &[
    ("event_last_seen", |row| Some(last_seen(row).into())),
    ("event_first_seen", |row| Some(first_seen(row).into())),
    ("event_object", object),
    ("event_source", source),
    ("event_message", |row| Some(either(row, &["message"], &["note"]).trim().into())),
    ("event_count", |row| Some(count(row).into())),
];

/// The text in the core group's field, or in the other's.
fn either<'a>(row: &Row<'a>, core: &[&str], other: &[&str]) -> &'a str {
    match row.text(core) {
        "" => row.text(other),
        text => text,
    }
}

fn age(row: &Row<'_>, time: &str) -> Option<Str> {
    cells::age(time, row.now)
}

fn first_seen(row: &Row<'_>) -> Str {
    age(row, either(row, &["firstTimestamp"], &["deprecatedFirstTimestamp"]))
        .or_else(|| age(row, row.text(&["eventTime"])))
        .unwrap_or_else(|| "<unknown>".into())
}

fn last_seen(row: &Row<'_>) -> Str {
    if row.at(&["series"]).is_some() {
        return age(row, row.text(&["series", "lastObservedTime"])).unwrap_or_else(|| "<unknown>".into());
    }
    age(row, either(row, &["lastTimestamp"], &["deprecatedLastTimestamp"])).unwrap_or_else(|| first_seen(row))
}

/// `pod/web-1`.
fn object(row: &Row<'_>) -> Option<Value> {
    let member = |name| either(row, &["involvedObject", name], &["regarding", name]);
    let kind = member("kind").to_lowercase();
    Some(match member("name") {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    })
}

/// `kubelet, node-1`.
fn source(row: &Row<'_>) -> Option<Value> {
    let first = |texts: &[&'_ str]| texts.iter().find(|t| !t.is_empty()).copied().map(Str::from).unwrap_or_default();
    let component = first(&[
        either(row, &["source", "component"], &["deprecatedSource", "component"]),
        either(row, &["reportingComponent"], &["reportingController"]),
    ]);
    let instance =
        first(&[either(row, &["source", "host"], &["deprecatedSource", "host"]), row.text(&["reportingInstance"])]);
    Some(if instance.is_empty() { component.into() } else { format!("{component}, {instance}").into() })
}

/// Events that happened once have no count.
fn count(row: &Row<'_>) -> i64 {
    if row.at(&["series"]).is_some() {
        return row.int(&["series", "count"]);
    }
    match row.int(&["count"]).max(row.int(&["deprecatedCount"])) {
        0 => 1,
        count => count,
    }
}
