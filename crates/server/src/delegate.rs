//! One server of the chain: what it answers, and what it adds to the life of the whole. A server stands in front of
//! another one, answers what it knows and passes on the rest:
//!
//! ```text
//! request ─► aggregator ─► kube ─► extensions ─► 404
//! ```
//!
//! The chain is built from its end. Each link takes over the hooks, checks and listed paths of the one behind it, so
//! these come out in the order extensions, kube, aggregator: the order in which health shows them.

use crate::health::Check;
use crate::installation;
use crate::lifecycle::{PostStartHook, PreShutdownHook};
use crate::routes::ListedPaths;
use kubelith_http::BoxHandler;
use std::sync::Arc;

pub struct Delegate {
    pub(crate) handler: BoxHandler,
    /// In the order in which they were added, which is the order of health checks.
    pub(crate) starts: Vec<Start>,
    pub(crate) pre_shutdown: Vec<PreShutdownHook>,
    pub(crate) listed: Vec<ListedPaths>,
}

/// What shows in health.
pub(crate) enum Start {
    Hook(PostStartHook),
    /// A check of the start: /livez believes in it for a while.
    Boot(Check),
    Always(Check),
    Readiness(Check),
}

impl Delegate {
    /// The end of the chain: 404, or 503 while paths are still being installed.
    pub fn end() -> Delegate {
        Delegate::from(installation::nobody())
    }

    /// A server in front of this one. `serve` is given the handler to pass on to.
    pub fn behind(self, serve: impl FnOnce(BoxHandler) -> BoxHandler) -> Delegate {
        Delegate { handler: serve(self.handler.clone()), ..self }
    }

    pub fn handler(&self) -> BoxHandler {
        self.handler.clone()
    }

    /// Runs when the server serves; a health check `poststarthook/<name>` until it is done. A name that a server
    /// further down the chain has taken stays theirs.
    pub fn post_start_hook(mut self, hook: PostStartHook) -> Delegate {
        let taken = |s: &Start| matches!(s, Start::Hook(known) if known.name == hook.name);
        if !self.starts.iter().any(taken) {
            self.starts.push(Start::Hook(hook));
        }
        self
    }

    pub fn post_start_hooks(self, hooks: impl IntoIterator<Item = PostStartHook>) -> Delegate {
        hooks.into_iter().fold(self, Delegate::post_start_hook)
    }

    /// Runs when the server was told to stop and still serves.
    pub fn pre_shutdown_hook(mut self, hook: PreShutdownHook) -> Delegate {
        self.pre_shutdown.push(hook);
        self
    }

    /// A check of /healthz, /livez and /readyz.
    pub fn check(mut self, check: Check) -> Delegate {
        self.starts.push(Start::Always(check));
        self
    }

    /// A check that fails while the server starts: /livez believes in it for `--livez-grace-period`.
    pub fn boot_check(mut self, check: Check) -> Delegate {
        self.starts.push(Start::Boot(check));
        self
    }

    /// A check of /readyz alone.
    pub fn readiness_check(mut self, check: Check) -> Delegate {
        self.starts.push(Start::Readiness(check));
        self
    }

    /// Paths for the index at `/` that are known only when it is asked for.
    pub fn listed_paths(mut self, list: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Delegate {
        self.listed.push(Arc::new(list));
        self
    }
}

impl From<BoxHandler> for Delegate {
    fn from(handler: BoxHandler) -> Delegate {
        Delegate { handler, starts: Vec::new(), pre_shutdown: Vec::new(), listed: Vec::new() }
    }
}

impl<H: kubelith_http::Handler> From<Arc<H>> for Delegate {
    fn from(handler: Arc<H>) -> Delegate {
        Delegate::from(handler as BoxHandler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ADMIN_TOKEN, TestServer};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn hook(name: &'static str) -> PostStartHook {
        PostStartHook::new(name, |_| async { Ok(()) })
    }

    #[tokio::test]
    async fn the_inner_server_comes_first_and_keeps_its_names() {
        let stopped = Arc::new(AtomicBool::new(false));
        let told = stopped.clone();
        let chain = Delegate::end()
            .post_start_hook(hook("shared"))
            .check(Check::passing("inner"))
            .listed_paths(|| vec!["/inner".into()])
            .behind(|next| next)
            .post_start_hooks([hook("shared"), hook("outer")])
            .readiness_check(Check::passing("ready"))
            .pre_shutdown_hook(PreShutdownHook::new("told", move || async move {
                told.store(true, Ordering::Release);
                Ok(())
            }));
        let server = TestServer::start(|b| b.delegate(chain)).await;
        let answer = server.get("/readyz?verbose", ADMIN_TOKEN).await;
        let names: Vec<&str> = answer.text().lines().filter_map(|l| l.split_once(']')?.1.split(' ').next()).collect();
        let expected = ["ping", "log", "poststarthook/shared", "inner", "poststarthook/outer", "ready", "shutdown"];
        assert_eq!(names, expected);
        assert!(server.get("/", ADMIN_TOKEN).await.text().contains("\"/inner\""));
        server.stop().await.unwrap();
        assert!(stopped.load(Ordering::Acquire));
    }
}
