//! Lets a request on when its priority level has seats for it, lets it wait for its turn, or refuses it.

use super::Layer;
use super::max_in_flight::too_many_requests;
use crate::fairness::{Fairness, Permit, Schema, Started};
use http::HeaderName;
use kubelith_http::askers::Asker;
use kubelith_http::latency::{Part, track};
use kubelith_http::{Body, BoxHandler, Handler, Reply, Request, Response};
use kubelith_observe::metrics::requests::RequestMetrics;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Nobody waits longer than this for a turn.
const MAX_WAIT: Duration = Duration::from_secs(60);

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// `request_timeout` bounds the waiting of requests that have no deadline of their own.
pub fn layer(fairness: Arc<Fairness>, request_timeout: Duration, metrics: Arc<RequestMetrics>) -> Layer {
    let default_wait = request_timeout / 4;
    Layer::new("priority-and-fairness", move |next| Link {
        inner: Arc::new(Inner { fairness, default_wait, metrics, next }),
    })
}

struct Link {
    inner: Arc<Inner>,
}

struct Inner {
    fairness: Arc<Fairness>,
    default_wait: Duration,
    metrics: Arc<RequestMetrics>,
    next: BoxHandler,
}

impl Handler for Link {
    fn handle(&self, request: Request) -> Reply {
        let info = request.info();
        if info.is_long_running() && info.verb != "watch" {
            return self.inner.next.handle(request);
        }
        match self.inner.fairness.start(&request) {
            Started::Running(permit) if asks_in_turn(&request, permit.schema()) => self.inner.run_now(request, permit),
            Started::Running(permit) => self.inner.run(request, permit),
            Started::Rejected(schema) => {
                asks_in_turn(&request, &schema);
                Reply::Ready(self.inner.refuse(&request, &schema))
            }
            Started::Waiting(turn) => {
                let (inner, schema) = (self.inner.clone(), turn.schema().clone());
                asks_in_turn(&request, &schema);
                Reply::pending(async move {
                    let deadline = inner.wait_until(&request);
                    match turn.wait_until(deadline).await {
                        Some((permit, waited)) => {
                            track(&request, Part::Queue, waited);
                            inner.run(request, permit).await
                        }
                        None => inner.refuse(&request, &schema),
                    }
                })
            }
        }
    }
}

impl Inner {
    /// Seats are held until the answer is sent; those of a watch until it has begun.
    fn run(self: &Arc<Self>, request: Request, permit: Permit) -> Reply {
        let schema = permit.schema();
        // Those who have no limits go first.
        let turn = if schema.is_exempt() { None } else { schema.level.turns.take() };
        let Some(turn) = turn else { return self.run_now(request, permit) };
        let inner = self.clone();
        Reply::pending(async move {
            turn.await;
            inner.run_now(request, permit).await
        })
    }

    fn run_now(&self, request: Request, permit: Permit) -> Reply {
        let schema = permit.schema();
        let turns = (!schema.is_exempt()).then(|| schema.level.turns.clone());
        // Long answers of those who have limits make room for the others.
        let in_turn = move |body: Body| match turns {
            Some(turns) => body.taking_turns(turns),
            None => body,
        };
        if request.info().verb == "watch" {
            let watching = self.fairness.watching(&request);
            return self.next.handle(request).map(|response| {
                let response = with_ids(response, permit.schema());
                drop(permit);
                response.map(|body| in_turn(body.with_guard(watching)))
            });
        }
        self.next
            .handle(request)
            .map(move |response| with_ids(response, permit.schema()).map(|body| in_turn(body.with_guard(permit))))
    }

    fn refuse(&self, request: &Request, schema: &Schema) -> Response {
        self.metrics.dropped(request);
        with_ids(too_many_requests(schema.level.dropped().into()), schema)
    }

    /// A quarter of the time that the request has in all.
    fn wait_until(&self, request: &Request) -> Instant {
        let received = request.received().instant;
        let wait = request.deadline().map_or(self.default_wait, |deadline| deadline.duration_since(received) / 4);
        received + wait.min(MAX_WAIT)
    }
}

/// Tells the connection who asks. True if the request was read in its turn: it need not wait for another one.
fn asks_in_turn(request: &Request, schema: &Schema) -> bool {
    let asker = if schema.is_exempt() { Asker::Unlimited } else { Asker::Limited(schema.level.turns.clone()) };
    request.connection().is_some_and(|connection| connection.askers.ask(asker))
}

fn with_ids(mut response: Response, schema: &Schema) -> Response {
    let headers = response.headers_mut();
    headers.insert(LEVEL_UID, schema.level_uid.clone());
    headers.insert(SCHEMA_UID, schema.uid.clone());
    response
}
