//! Does to requests what tests have scripted (`faults`). It stands behind authorization: what a user may not do fails as ever.

use super::Layer;
use crate::faults::{Asker, Effect, Faults};
use bytes::Bytes;
use futures::stream;
use http_body_util::BodyExt;
use kubelith_http::context::{ExpiredWatch, StaleBy};
use kubelith_http::{Body, BoxError, BoxHandler, Reply, Request, RequestInfo, Response, respond};
use kubelith_meta::Status;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

pub fn layer(faults: Arc<Faults>) -> Layer {
    Layer::from_fn("faults", move |request, next| handle(&faults, request, next))
}

fn handle(faults: &Arc<Faults>, request: Request, next: &BoxHandler) -> Reply {
    let info = request.info().clone();
    if !info.is_resource_request {
        return next.handle(request);
    }
    let user = request.user().map(|user| user.name.to_string()).unwrap_or_default();
    // Only the server itself comes without a connection.
    let asker = Asker { user: &user, is_server: request.connection().is_none() };
    let effect = faults.take(asker, &info);
    let is_watch = info.verb == "watch";
    let entry = is_watch.then(|| faults.enter(asker, &info));
    let reply = match effect {
        None => next.handle(request),
        Some(effect) => act(effect, request, &info, next),
    };
    match entry {
        None => reply,
        Some(entry) => {
            reply.map(|response| response.map(|body| body.until_cancelled(entry.end).with_guard(entry.alive)))
        }
    }
}

fn act(effect: Effect, mut request: Request, info: &Arc<RequestInfo>, next: &BoxHandler) -> Reply {
    match effect {
        Effect::Answer(answer) => {
            let status = answer.status(request.method(), info);
            Reply::Ready(respond::status(&request, &status))
        }
        Effect::AnswerAfter(answer) => {
            let instead = respond::status(&request, &answer.status(request.method(), info));
            next.handle(request).map(move |done| if done.status().is_success() { instead } else { done })
        }
        Effect::Delay(by) => {
            let next = next.clone();
            Reply::pending(async move {
                tokio::time::sleep(by).await;
                next.handle(request).await
            })
        }
        Effect::DelayEvents(by) => next.handle(request).map(move |response| later(response, by)),
        Effect::ExpireWatch => {
            request.extensions_mut().insert(ExpiredWatch);
            next.handle(request)
        }
        // One that is to end before it has begun.
        Effect::EndWatch => next.handle(request).map(|response| response.map(|_| Body::empty())),
        Effect::StaleBy(revisions) => {
            request.extensions_mut().insert(StaleBy(revisions));
            next.handle(request)
        }
        Effect::FailAdmission(message) => {
            let status = Status::internal_error(message);
            Reply::Ready(respond::status(&request, &status))
        }
    }
}

/// What is on its way, with the time at which it is to arrive.
struct Delayed {
    body: Body,
    waiting: VecDeque<(Instant, Bytes)>,
    ended: bool,
}

/// Each piece comes as much later as every other.
fn later(response: Response, by: Duration) -> Response {
    response.map(|body| {
        let delayed = Delayed { body, waiting: VecDeque::new(), ended: false };
        Body::stream(stream::unfold(delayed, move |mut delayed| async move {
            loop {
                let due = delayed.waiting.front().map(|(due, _)| *due);
                if due.is_none() && delayed.ended {
                    return None;
                }
                tokio::select! {
                    frame = delayed.body.frame(), if !delayed.ended => match frame {
                        Some(Ok(frame)) => {
                            let piece = frame.into_data().ok().map(|data| (Instant::now() + by, data));
                            delayed.waiting.extend(piece);
                        }
                        Some(Err(why)) => return Some((Err::<Bytes, BoxError>(why), delayed)),
                        None => delayed.ended = true,
                    },
                    () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                        let piece = delayed.waiting.pop_front().map(|(_, data)| data).unwrap_or_default();
                        return Some((Ok(piece), delayed));
                    }
                }
            }
        }))
    })
}
