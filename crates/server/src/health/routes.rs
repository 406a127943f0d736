//! The answers: `ok`, a line per check with `?verbose` and on failure, and each check under its own path.

use super::{Check, HealthChecks};
use http::StatusCode;
use kubelith_http::{BoxHandler, Reply, Request, Response, query, respond};
use kubelith_meta::text::Quoted;
use kubelith_observe::metrics::health::HealthMetrics;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Each endpoint with its handler, and what is below them. `ready` is raised when /readyz is green for the first time.
pub fn health_routes(
    checks: HealthChecks,
    ready: CancellationToken,
    metrics: &Arc<HealthMetrics>,
) -> ([(&'static str, BoxHandler); 3], SingleChecks) {
    let HealthChecks { healthz, livez, readyz } = checks;
    let single = SingleChecks([("/healthz", healthz.into()), ("/livez", livez.into()), ("/readyz", readyz.into())]);
    let endpoints = single.0.clone().map(|(path, checks)| {
        let ready = (path == "/readyz").then(|| ready.clone());
        (path, together(&path[1..], checks, ready, metrics.clone()))
    });
    (endpoints, single)
}

/// Each check under its own path, by endpoint. They are a hundred, of which hardly any is ever asked for.
#[derive(Clone)]
pub struct SingleChecks([(&'static str, Arc<[Check]>); 3]);

impl SingleChecks {
    pub fn find(&self, path: &str) -> Option<BoxHandler> {
        let (checks, name) = self
            .0
            .iter()
            .find_map(|(endpoint, checks)| Some((checks, path.strip_prefix(endpoint)?.strip_prefix('/')?)))?;
        // Of two checks with the same name the last one counts.
        checks.iter().rfind(|check| check.name == name).map(|check| single(check.clone()))
    }

    pub fn paths(&self) -> Vec<String> {
        let of = |(endpoint, checks): &(&str, Arc<[Check]>)| {
            checks.iter().map(|check| format!("{endpoint}/{}", check.name)).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of).collect()
    }
}

fn single(check: Check) -> BoxHandler {
    Arc::new(move |_: Request| -> Reply {
        let check = check.clone();
        Reply::pending(async move {
            match check.run().await {
                Ok(()) => respond::text(StatusCode::OK, "ok"),
                Err(why) => {
                    respond::error_text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {why}"))
                }
            }
        })
    })
}

fn together(
    name: &'static str,
    checks: Arc<[Check]>,
    ready: Option<CancellationToken>,
    metrics: Arc<HealthMetrics>,
) -> BoxHandler {
    Arc::new(move |request: Request| -> Reply {
        let (checks, ready, metrics) = (checks.clone(), ready.clone(), metrics.clone());
        Reply::pending(async move {
            let query = request.uri().query();
            let excluded: BTreeSet<String> = query::pairs(query.unwrap_or(""))
                .filter(|(key, _)| key == "exclude")
                .map(|(_, value)| value.into_owned())
                .collect();
            let report = Report::make(name, &checks, excluded, &metrics).await;
            let response = report.answer(name, query::has(query, "verbose"));
            if let Some(ready) = ready.filter(|_| response.status().is_success()) {
                ready.cancel();
            }
            response
        })
    })
}

#[derive(Default)]
struct Report {
    lines: String,
    failed: Vec<String>,
    /// Reasons, which only the log may see: the endpoint is public.
    reasons: String,
}

impl Report {
    async fn make(endpoint: &str, checks: &[Check], excluded: BTreeSet<String>, metrics: &HealthMetrics) -> Report {
        let mut report = Report::default();
        let mut unknown = excluded.clone();
        for check in checks {
            let name = &*check.name;
            let group = check.group.as_deref().filter(|g| excluded.contains(*g));
            // Writing to a string cannot fail.
            let _ = if excluded.contains(name) {
                unknown.remove(name);
                writeln!(report.lines, "[+]{name} excluded: ok")
            } else if let Some(group) = group {
                unknown.remove(group);
                writeln!(report.lines, "[+]{name} excluded with {group}: ok")
            } else if let Err(why) = check.run().await {
                metrics.failed(name, endpoint);
                report.failed.push(name.to_owned());
                let _ = writeln!(report.reasons, "[-]{name} failed: {why}");
                writeln!(report.lines, "[-]{name} failed: reason withheld")
            } else {
                metrics.passed(name, endpoint);
                writeln!(report.lines, "[+]{name} ok")
            };
        }
        if !unknown.is_empty() {
            let quoted: Vec<String> = unknown.iter().map(|n| Quoted(n).to_string()).collect();
            let _ = writeln!(
                report.lines,
                "warn: some health checks cannot be excluded: no matches for {}",
                quoted.join(",")
            );
        }
        report
    }

    fn answer(self, name: &str, verbose: bool) -> Response {
        if !self.failed.is_empty() {
            tracing::info!(v = 2, "{} check failed: {name}\n{}", self.failed.join(","), self.reasons);
            let text = format!("{}{name} check failed", self.lines);
            return respond::error_text(StatusCode::INTERNAL_SERVER_ERROR, text);
        }
        let text = if verbose { format!("{}{name} check passed\n", self.lines) } else { "ok".to_owned() };
        let mut response = respond::text(StatusCode::OK, text);
        response.headers_mut().insert(respond::X_CONTENT_TYPE_OPTIONS, respond::NOSNIFF);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use kubelith_http::RequestBody;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    type HealthRoutes = ([(&'static str, BoxHandler); 3], SingleChecks);

    async fn get((endpoints, single): &HealthRoutes, url: &str) -> (u16, String) {
        let uri: http::Uri = url.parse().unwrap();
        let together = endpoints.iter().find(|(path, _)| *path == uri.path()).map(|(_, handler)| handler.clone());
        let Some(route) = together.or_else(|| single.find(uri.path())) else { return (404, String::new()) };
        let response = route.handle(http::Request::get(uri).body(RequestBody::Full(None)).unwrap().into()).await;
        let status = response.status().as_u16();
        let Ok(body) = response.into_body().collect().await else { panic!("body") };
        (status, String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn texts_are_the_references() {
        let healthy = Arc::new(AtomicBool::new(false));
        let mut checks = HealthChecks::new();
        let state = healthy.clone();
        let hook = Check::sync("poststarthook/x", move || {
            if state.load(Ordering::Relaxed) { Ok(()) } else { Err("not finished".into()) }
        });
        checks.add_boot(hook, Duration::from_secs(10));
        checks.add_readyz(Check::passing("shutdown").in_group("exits"));
        let ready = CancellationToken::new();
        let metrics = Arc::new(HealthMetrics::new(&kubelith_observe::metrics::Registry::new()));
        let routes = health_routes(checks, ready.clone(), &metrics);
        let below = ["ping", "log", "poststarthook/x"].map(|check| format!("/healthz/{check}"));
        assert_eq!(routes.1.paths()[..3], below);

        assert_eq!(get(&routes, "/livez").await, (200, "ok".into()), "grace period");
        let failed =
            "[+]ping ok\n[+]log ok\n[-]poststarthook/x failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n";
        assert_eq!(get(&routes, "/readyz").await, (500, failed.into()));
        let single = get(&routes, "/readyz/poststarthook/x").await;
        assert_eq!(single, (500, "internal server error: not finished\n".into()));
        assert!(!ready.is_cancelled());

        let excluded = "[+]ping ok\n[+]log ok\n[+]poststarthook/x excluded: ok\n[+]shutdown excluded with exits: ok\n\
                        warn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nreadyz check passed\n";
        let url = "/readyz?verbose&exclude=poststarthook/x&exclude=b&exclude=exits&exclude=a";
        assert_eq!(get(&routes, url).await, (200, excluded.into()));
        assert!(ready.is_cancelled());

        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(get(&routes, "/livez").await.0, 500, "the grace period is over");
        healthy.store(true, Ordering::Relaxed);
        assert_eq!(get(&routes, "/livez").await, (200, "ok".into()));
        assert_eq!(get(&routes, "/livez/shutdown").await.0, 404);
    }
}
