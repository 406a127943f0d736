//! The console: a page under `/console/` that is served to anybody, the sessions by which people sign in there, and the read-only
//! paths below `/kubelith/v1` that tell what the Kubernetes API does not. `docs/guides/console.md` is for those who use it.
//!
//! The page holds nothing secret. Everything that it shows it asks of the API, as who is signed in, through the whole filter
//! chain.

mod api;
mod assets;
mod gate;
mod session;

pub use api::{Backup, Cost, Sources};
pub use session::{SessionAuthenticator, Sessions, remove_cookie};

use kubelith_server::filters::Layer;
use kubelith_server::routes::Routes;
use std::sync::Arc;

/// Where the page is.
pub const PATH: &str = "/console/";

/// Serves the page, before anybody has to say who they are.
pub fn layer(sessions: Arc<Sessions>) -> Layer {
    gate::layer(sessions)
}

/// Adds the paths below `/kubelith/v1`.
pub fn install(routes: &mut Routes, sources: Sources, sessions: Arc<Sessions>) {
    api::install(routes, Arc::new(sources), sessions);
}
