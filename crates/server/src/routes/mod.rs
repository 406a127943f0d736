//! Paths that are no resources: /version, /metrics, the index, health. What is not found here goes on to the
//! APIs.

mod debug;
mod index;
mod logs;
mod openid;
mod profiles;
mod version;
mod zpages;

pub use debug::install as install_debug;
pub use index::{ListedPaths, install as install_index};
use kubelith_http::{BoxHandler, Handler, Reply, Request};
pub use logs::install as install_logs;
pub use openid::{OpenIdDocuments, OpenIdReady, install as install_openid};
pub use profiles::install as install_profiles;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
pub use version::install as install_version;
pub use zpages::{install_flagz, install_statusz};

/// Whether a path shows in the index at `/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    Listed,
    Unlisted,
}

/// Exact paths, then those that are found when they are asked for, then prefixes (which end in `/`), longest first, then the rest of the
/// chain.
#[derive(Default)]
pub struct Routes {
    exact: HashMap<String, BoxHandler>,
    found: Vec<Find>,
    prefixes: Vec<(String, BoxHandler)>,
    listed: BTreeSet<String>,
}

/// The handler of a path, if it has one.
type Find = Box<dyn Fn(&str) -> Option<BoxHandler> + Send + Sync>;

impl Routes {
    /// Serves the paths that `find` has a handler for: many, of which few are ever asked for. They are not listed.
    pub fn found(&mut self, find: impl Fn(&str) -> Option<BoxHandler> + Send + Sync + 'static) {
        self.found.push(Box::new(find));
    }

    /// Serves one path. A second handler for the same path replaces the first.
    pub fn exact(&mut self, path: impl Into<String>, listing: Listing, handler: BoxHandler) {
        let path = path.into();
        if listing == Listing::Listed {
            self.listed.insert(path.clone());
        }
        self.exact.insert(path, handler);
    }

    /// Serves everything below `path`, which ends in a slash.
    pub fn prefix(&mut self, path: impl Into<String>, listing: Listing, handler: BoxHandler) {
        let path = path.into();
        debug_assert!(path.ends_with('/'));
        if listing == Listing::Listed {
            self.listed.insert(path.clone());
        }
        self.prefixes.push((path, handler));
    }

    pub fn listed(&self) -> &BTreeSet<String> {
        &self.listed
    }

    /// A handler that passes what it does not know on to `next`.
    pub fn before(mut self, next: BoxHandler) -> BoxHandler {
        let slashes = |p: &str| p.bytes().filter(|b| *b == b'/').count();
        self.prefixes.sort_by_key(|(p, _)| std::cmp::Reverse((slashes(p), p.len())));
        Arc::new(Router { exact: self.exact, found: self.found, prefixes: self.prefixes, next })
    }
}

struct Router {
    exact: HashMap<String, BoxHandler>,
    found: Vec<Find>,
    prefixes: Vec<(String, BoxHandler)>,
    next: BoxHandler,
}

impl Handler for Router {
    fn handle(&self, request: Request) -> Reply {
        let info = request.info();
        // Nearly all requests; no route lies below a resource.
        if info.is_resource_request {
            return self.next.handle(request);
        }
        let path = info.path.as_str();
        if let Some(handler) = self.exact.get(path) {
            return handler.handle(request);
        }
        if let Some(handler) = self.found.iter().find_map(|find| find(path)) {
            return handler.handle(request);
        }
        let prefix = self.prefixes.iter().find(|(p, _)| path.starts_with(p.as_str())).map(|(_, h)| h);
        prefix.unwrap_or(&self.next).handle(request)
    }
}
