//! `POST /kubelith/v1/links`: a link that signs who asks in to the console, once.

use super::Outcome;
use crate::PATH;
use crate::session::{LINK_SECONDS, Sessions};
use http::StatusCode;
use kubelith_http::{Request, respond};
use kubelith_meta::Status;

pub fn make(sessions: &Sessions, request: &Request) -> Outcome {
    let user = request.user().ok_or_else(|| Status::unauthorized("Unauthorized"))?;
    let code = sessions.link(user.clone());
    // Behind the hash, where it is sent to no server and shows in no log.
    let answer = serde_json::json!({ "path": format!("{PATH}#code={code}"), "seconds": LINK_SECONDS });
    Ok(respond::json(StatusCode::CREATED, answer.to_string() + "\n"))
}
