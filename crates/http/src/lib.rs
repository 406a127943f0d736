//! HTTP as the server speaks it: requests with what filters leave with them, bodies, answers, and the trait that every
//! link of the chain is. No socket, no route and no resource is known here.

pub mod askers;
pub mod audit;
pub mod body;
pub mod connection;
pub mod context;
pub mod labels;
pub mod late;
pub mod latency;
mod message;
pub mod negotiated;
pub mod query;
pub mod request_info;
pub mod respond;
pub mod turns;
pub mod upgrade;
pub mod upload;
pub mod warnings;
pub mod websocket;

pub use message::{Body, BoxError, BoxHandler, Handler, Reply, Request, RequestBody, Response};
pub use request_info::RequestInfo;
