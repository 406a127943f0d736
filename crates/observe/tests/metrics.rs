//! The text of `/metrics` read as strictly as the format is written: what passes here, every scraper takes.

use kubelith_http::{Body, BoxHandler, Reply, Request, Response};
use kubelith_server::testing::{ADMIN_TOKEN, TestServer, USER_TOKEN};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Labels = Vec<(String, String)>;

#[derive(Debug, Default)]
struct Family {
    kind: String,
    /// By sample name and labels.
    samples: BTreeMap<(String, Labels), f64>,
}

/// Families by name. Panics with the line that is wrong.
fn parse(text: &str) -> BTreeMap<String, Family> {
    assert!(text.ends_with('\n'), "the last line has no end");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut helped, mut current) = (BTreeSet::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, _) = rest.split_once(' ').expect(line);
            assert!(is_name(name) && helped.insert(name.to_owned()), "{line}");
            current = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect(line);
            assert_eq!(name, current, "TYPE follows its HELP: {line}");
            assert!(["counter", "gauge", "histogram", "summary", "untyped"].contains(&kind), "{line}");
            let family = Family { kind: kind.into(), ..Family::default() };
            assert!(families.insert(name.into(), family).is_none(), "twice: {line}");
        } else {
            let (name, labels, value) = sample(line);
            let family = families.get_mut(&current).expect(line);
            let own = match family.kind.as_str() {
                "histogram" => ["_bucket", "_sum", "_count"].iter().any(|s| name == format!("{current}{s}")),
                _ => name == current,
            };
            assert!(own, "a sample of another metric: {line}");
            assert!(family.samples.insert((name, labels), value).is_none(), "twice: {line}");
        }
    }
    families
}

fn sample(line: &str) -> (String, Labels, f64) {
    let (head, value) = line.rsplit_once(' ').expect(line);
    let value = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        number => number.parse().unwrap_or_else(|_| panic!("no number: {line}")),
    };
    let Some((name, labels)) = head.split_once('{') else {
        assert!(is_name(head), "{line}");
        return (head.into(), Vec::new(), value);
    };
    assert!(is_name(name), "{line}");
    let mut rest = labels.strip_suffix('}').expect(line);
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let (label, quoted) = rest.split_once("=\"").expect(line);
        assert!(is_name(label) && !label.contains(':'), "{line}");
        let mut text = String::new();
        let mut chars = quoted.char_indices();
        let end = loop {
            match chars.next().expect(line) {
                (at, '"') => break at,
                (_, '\\') => match chars.next().expect(line).1 {
                    'n' => text.push('\n'),
                    c @ ('\\' | '"') => text.push(c),
                    other => panic!("no escape {other:?}: {line}"),
                },
                (_, c) => text.push(c),
            }
        };
        pairs.push((label.to_owned(), text));
        rest = quoted[end + 1..].trim_start_matches(',');
    }
    let names: BTreeSet<_> = pairs.iter().map(|(n, _)| n).collect();
    assert_eq!(names.len(), pairs.len(), "a label twice: {line}");
    (name.into(), pairs, value)
}

fn is_name(text: &str) -> bool {
    let start = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    text.starts_with(start) && text.chars().all(|c| start(c) || c.is_ascii_digit())
}

/// Buckets grow, the last one holds everything and says so as the count does.
fn check_histogram(name: &str, family: &Family) {
    let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for ((sample, labels), value) in &family.samples {
        if sample.ends_with("_bucket") {
            let (bound, rest): (Vec<_>, Vec<_>) = labels.iter().cloned().partition(|(l, _)| l == "le");
            let bound = if bound[0].1 == "+Inf" { f64::INFINITY } else { bound[0].1.parse().unwrap() };
            series.entry(rest).or_default().push((bound, *value));
        }
    }
    for (labels, mut buckets) in series {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.windows(2).all(|w| w[0].1 <= w[1].1), "{name}{labels:?}: {buckets:?}");
        let (last, all) = *buckets.last().unwrap();
        assert_eq!(last, f64::INFINITY, "{name}{labels:?}");
        assert_eq!(family.samples[&(format!("{name}_count"), labels.clone())], all, "{name}{labels:?}");
        assert!(family.samples.contains_key(&(format!("{name}_sum"), labels)), "{name}");
    }
}

fn echo() -> BoxHandler {
    Arc::new(|_: Request| -> Reply { Reply::Ready(Response::new(Body::from("{}"))) })
}

#[tokio::test]
async fn every_scraper_can_read_it() {
    let server = TestServer::start(|b| b.delegate(echo())).await;
    for path in [
        "/api/v1/pods",
        "/api/v1/namespaces/default/pods/a%22b%5Cc%0Ad",
        "/apis/a%22%0A/v1/b%5C",
        "/nowhere",
        "/readyz",
    ] {
        for token in [ADMIN_TOKEN, USER_TOKEN, "wrong"] {
            server.get(path, token).await;
        }
    }
    for path in ["/metrics", "/metrics/slis"] {
        let answer = server.get(path, ADMIN_TOKEN).await;
        assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
        let families = parse(answer.text());
        for (name, family) in families.iter().filter(|(_, f)| f.kind == "histogram") {
            check_histogram(name, family);
        }
        if path == "/metrics" {
            let requests = &families["apiserver_request_total"].samples;
            assert!(
                requests.keys().any(|(_, labels)| labels.contains(&("resource".into(), "b\\".into()))),
                "{requests:?}"
            );
            assert!(families.contains_key("apiserver_request_filter_duration_seconds"));
        }
    }
}
