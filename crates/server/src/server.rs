//! The server as a whole: put together by a builder, then run until it is told to stop.

use crate::chain::{self, ChainConfig, InFlight};
use crate::delegate::{Delegate, Start};
use crate::health::{Check, HealthChecks, health_routes};
use crate::installation;
use crate::lifecycle::{Begun, HookContext, Lifecycle, PostStartHook, PreShutdownHook, Tasks, termination};
use crate::loopback::LoopbackClient;
use crate::routes::{self, ListedPaths, Listing, Routes};
use futures::FutureExt;
use futures::future::BoxFuture;
use kubelith_features::VersionInfo;
use kubelith_http::BoxHandler;
use kubelith_listen::{Listener, Stop};
use kubelith_observe::metrics::{Metrics, Selection, metrics_route};
use kubelith_observe::spans::Tracer;
use kubelith_tls::server_config::RELOAD_INTERVAL;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// With `--shutdown-send-retry-after`, at least this long every connection that speaks is sent elsewhere: one that is
/// closed while a request is on its way would lose it.
const LAST_CALL: Duration = Duration::from_secs(1);
/// For connections to close once their requests are done.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);
/// For tasks to end after the last request.
const TASK_LIMIT: Duration = Duration::from_secs(10);

/// What is decided before the parts come together.
pub struct ServerConfig {
    pub chain: ChainConfig,
    pub version: VersionInfo,
    /// /livez believes in the start for this long.
    pub livez_grace_period: Duration,
    /// Between a red /readyz and refusing requests.
    pub shutdown_delay: Duration,
    pub watch_termination_grace_period: Duration,
    /// Serve /statusz.
    pub statusz: bool,
    /// What /metrics shows.
    pub metrics: Selection,
}

/// Collects the parts of a server. Health checks show in the order in which they and hooks are added.
pub struct ServerBuilder {
    config: ServerConfig,
    metrics: Metrics,
    lifecycle: Lifecycle,
    tasks: Tasks,
    routes: Routes,
    listed: Vec<ListedPaths>,
    checks: HealthChecks,
    post_start: Vec<PostStartHook>,
    pre_shutdown: Vec<PreShutdownHook>,
    at_end: Vec<AtEnd>,
    delegate: BoxHandler,
    loopback: LoopbackClient,
    begun: Begun,
}

type AtEnd = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

impl ServerBuilder {
    pub fn new(config: ServerConfig, metrics: Metrics) -> ServerBuilder {
        let mut checks = HealthChecks::new();
        // The reference watches over the certificate of its loopback connection here; ours has no socket.
        checks.add_liveness(Check::passing("loopback-serving-certificate"));
        ServerBuilder {
            config,
            metrics,
            lifecycle: Lifecycle::default(),
            tasks: Tasks::default(),
            routes: Routes::default(),
            listed: Vec::new(),
            checks,
            post_start: Vec::new(),
            pre_shutdown: Vec::new(),
            at_end: Vec::new(),
            delegate: installation::nobody(),
            loopback: LoopbackClient::unconnected(),
            begun: Begun::Anew,
        }
    }

    /// A copy of a server that was ready sleeps until its [`Lifecycle::awake`] is raised.
    pub fn begun(mut self, begun: Begun) -> ServerBuilder {
        self.begun = begun;
        self
    }

    /// The server chain: what serves everything that no route of the frame takes. Its hooks and checks come after
    /// those that are there already.
    pub fn delegate(mut self, chain: impl Into<Delegate>) -> ServerBuilder {
        let chain = chain.into();
        self.delegate = chain.handler;
        self.pre_shutdown.extend(chain.pre_shutdown);
        self.listed.extend(chain.listed);
        for start in chain.starts {
            match start {
                Start::Hook(hook) => self = self.post_start_hook(hook),
                Start::Boot(check) => self.checks.add_boot(check, self.config.livez_grace_period),
                Start::Always(check) => self.checks.add(check),
                Start::Readiness(check) => self.checks.add_readyz(check),
            }
        }
        self
    }

    /// More paths beside the APIs.
    pub fn routes(mut self, add: impl FnOnce(&mut Routes)) -> ServerBuilder {
        add(&mut self.routes);
        self
    }

    /// Paths for the index that are known only when asked for.
    pub fn listed_paths(mut self, list: impl Fn() -> Vec<String> + Send + Sync + 'static) -> ServerBuilder {
        self.listed.push(Arc::new(list));
        self
    }

    pub fn checks(mut self, add: impl FnOnce(&mut HealthChecks)) -> ServerBuilder {
        add(&mut self.checks);
        self
    }

    /// Adds a hook, and the check that it is done.
    pub fn post_start_hook(mut self, hook: PostStartHook) -> ServerBuilder {
        let done = hook.done();
        let check = Check::sync(["poststarthook/", &hook.name].concat(), move || {
            if done.load(Ordering::Acquire) { Ok(()) } else { Err("not finished".into()) }
        });
        self.checks.add_boot(check, self.config.livez_grace_period);
        self.post_start.push(hook);
        self
    }

    /// Takes spans of requests from here on.
    pub fn tracer(mut self, tracer: Option<Tracer>) -> ServerBuilder {
        self.config.chain.tracer = tracer;
        self
    }

    pub fn pre_shutdown_hook(mut self, hook: PreShutdownHook) -> ServerBuilder {
        self.pre_shutdown.push(hook);
        self
    }

    /// Runs last, when no request and no task is left: flush the audit log, close the store.
    pub fn at_end<F>(mut self, run: impl FnOnce() -> F + Send + 'static) -> ServerBuilder
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.at_end.push(Box::new(|| Box::pin(run())));
        self
    }

    /// Where background work is started; it is told to end and waited for.
    pub fn tasks(&self) -> Tasks {
        self.tasks.clone()
    }

    pub fn lifecycle(&self) -> Lifecycle {
        self.lifecycle.clone()
    }

    /// Calls this server from within; works once it is built.
    pub fn loopback(&self) -> LoopbackClient {
        self.loopback.clone()
    }

    pub fn build(mut self) -> Server {
        let shutting_down = self.lifecycle.shutdown_initiated.clone();
        self.checks.add_readyz(Check::sync("shutdown", move || {
            if shutting_down.is_cancelled() { Err("process is shutting down".into()) } else { Ok(()) }
        }));
        let slis = self.metrics.health.clone();
        let (endpoints, single) = health_routes(self.checks, self.lifecycle.has_been_ready.clone(), &slis);
        for (path, handler) in endpoints {
            self.routes.exact(path, Listing::Listed, handler);
        }
        let listed = single.clone();
        self.listed.push(Arc::new(move || listed.paths()));
        self.routes.found(move |path| single.find(path));
        let selection = Arc::new(self.config.metrics.clone());
        self.metrics.describe_selection(&selection);
        let everything = Arc::new(Selection::default());
        self.routes.exact(
            "/metrics",
            Listing::Listed,
            metrics_route(self.metrics.registry.clone(), selection, {
                let (requests, impersonation) = (self.metrics.requests.clone(), self.metrics.impersonation.clone());
                move || {
                    requests.reset();
                    impersonation.reset();
                }
            }),
        );
        let health = self.metrics.health.clone();
        let slis = metrics_route(self.metrics.slis.clone(), everything, move || health.reset());
        self.routes.exact("/metrics/slis", Listing::Listed, slis);
        routes::install_version(&mut self.routes, &self.config.version);
        if self.config.statusz {
            routes::install_statusz(&mut self.routes, &self.config.version);
        }
        routes::install_index(&mut self.routes, self.listed);

        let in_flight = InFlight::default();
        let handler = self.routes.before(self.delegate);
        let request_timeout = self.config.chain.request_timeout;
        let send_retry_after = self.config.chain.send_retry_after;
        let chain = chain::build(handler, self.config.chain, &self.lifecycle, &in_flight, &self.metrics);
        self.loopback.connect(chain.handler.clone(), Some(self.metrics.rest_client.clone()));
        if self.begun == Begun::Anew {
            self.lifecycle.awake.cancel();
        }
        Server {
            loopback: self.loopback,
            begun: self.begun,
            chain,
            metrics: self.metrics,
            lifecycle: self.lifecycle,
            tasks: self.tasks,
            in_flight,
            post_start: self.post_start,
            pre_shutdown: self.pre_shutdown,
            at_end: self.at_end,
            stopping: Stopping {
                delay: self.config.shutdown_delay,
                watch_grace: self.config.watch_termination_grace_period,
                request_timeout,
                send_retry_after,
                systemd: false,
            },
        }
    }
}

/// How the server goes.
struct Stopping {
    delay: Duration,
    watch_grace: Duration,
    request_timeout: Duration,
    send_retry_after: bool,
    /// It is told how the server is doing.
    systemd: bool,
}

/// Ready to run.
pub struct Server {
    chain: chain::Chain,
    loopback: LoopbackClient,
    metrics: Metrics,
    lifecycle: Lifecycle,
    tasks: Tasks,
    in_flight: InFlight,
    post_start: Vec<PostStartHook>,
    pre_shutdown: Vec<PreShutdownHook>,
    at_end: Vec<AtEnd>,
    stopping: Stopping,
    begun: Begun,
}

/// Why a server ended that was not told to.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServerFailed(pub String);

impl Server {
    /// Calls this server from within, as system:apiserver.
    pub fn loopback(&self) -> LoopbackClient {
        self.loopback.clone()
    }

    pub fn tasks(&self) -> Tasks {
        self.tasks.clone()
    }

    pub fn filter_names(&self) -> &[&'static str] {
        &self.chain.names
    }

    pub fn lifecycle(&self) -> Lifecycle {
        self.lifecycle.clone()
    }

    /// Serves until `stop` is cancelled or a part fails, then goes in order:
    ///
    /// 1. /readyz turns red; load balancers have `delay` to notice, pre-shutdown hooks run meanwhile.
    /// 2. New requests are refused, those under way are answered, watches are ended.
    /// 3. Connections are closed, tasks told to end, then what was registered for the end runs.
    pub async fn run(mut self, listener: Listener, stop: CancellationToken) -> Result<(), ServerFailed> {
        self.stopping.systemd = true;
        self.watch_certificates(&listener);
        let stats = listener.stats();
        self.metrics.watch_handshakes(move || stats.tls_handshake_errors.load(Ordering::Relaxed));
        let stop_listening = Stop::default();
        let serving = listener.serve(self.handler(), stop_listening.clone());
        self.run_behind(serving, stop_listening, stop).await
    }

    /// What every request enters.
    pub fn handler(&self) -> BoxHandler {
        self.chain.handler.clone()
    }

    /// As [`Server::run`], behind whatever `serving` is: it ends when `stop_listening` says so, and nobody outside of this
    /// program is told.
    pub async fn run_behind(
        mut self,
        serving: impl Future<Output = ()> + Send + 'static,
        stop_listening: Stop,
        stop: CancellationToken,
    ) -> Result<(), ServerFailed> {
        let mut serving = tokio::spawn(serving);
        if self.stopping.systemd {
            termination::notify_ready();
        }

        let awake = self.lifecycle.awake.clone();
        let mut asleep = true;
        let failure = loop {
            tokio::select! {
                biased;
                () = awake.cancelled(), if asleep => {
                    asleep = false;
                    self.start_hooks();
                }
                () = stop.cancelled() => break None,
                why = self.tasks.failed() => break Some(why),
                _ = &mut serving => break Some("the listener has ended".to_owned()),
            }
        };
        if self.stopping.systemd {
            termination::notify_stopping();
        }
        let hooks = match &failure {
            // Nothing is sure any more: no grace, but no answer is torn either.
            Some(_) => {
                self.lifecycle.shutdown_initiated.cancel();
                Ok(())
            }
            None => self.stop_accepting().await,
        };
        self.lifecycle.not_accepting_new_requests.cancel();
        if !self.stopping.send_retry_after {
            stop_listening.gracefully.cancel();
        }
        let last_call = if self.stopping.send_retry_after { LAST_CALL } else { Duration::ZERO };
        tokio::join!(self.drain(), tokio::time::sleep(last_call));
        self.lifecycle.drained.cancel();
        stop_listening.gracefully.cancel();
        if tokio::time::timeout(CLOSE_LIMIT, &mut serving).await.is_err() {
            stop_listening.now.cancel();
            let _ = serving.await;
        }
        if let Err(names) = self.tasks.shut_down(TASK_LIMIT).await {
            tracing::warn!(tasks = names.join(","), "tasks did not end in time");
        }
        for run in std::mem::take(&mut self.at_end) {
            run().await;
        }
        self.lifecycle.stopped.cancel();
        match failure {
            Some(why) => Err(ServerFailed(why)),
            None => hooks.map_err(ServerFailed),
        }
    }

    fn start_hooks(&mut self) {
        let context = HookContext {
            client: self.loopback.clone(),
            tasks: self.tasks.clone(),
            stopping: self.tasks.stopping(),
            metrics: self.metrics.clone(),
            started: self.lifecycle.started.clone(),
            first_passes: self.lifecycle.first_passes.clone(),
            left: Arc::new(AtomicUsize::new(self.post_start.len())),
            begun: self.begun,
        };
        if self.post_start.is_empty() {
            self.lifecycle.started.cancel();
        }
        for hook in std::mem::take(&mut self.post_start) {
            hook.start(context.clone());
        }
    }

    fn watch_certificates(&self, listener: &Listener) {
        let tls = listener.tls();
        self.tasks.spawn_until_stopped("certificate-reload", async move {
            loop {
                tokio::time::sleep(RELOAD_INTERVAL).await;
                match tls.reload() {
                    Ok(true) => tracing::info!("serving certificates reloaded"),
                    Ok(false) => {}
                    Err(why) => tracing::debug!(err = %why, "serving certificates not reloaded"),
                }
            }
        });
    }

    async fn stop_accepting(&mut self) -> Result<(), String> {
        self.lifecycle.shutdown_initiated.cancel();
        tracing::info!(v = 1, "[graceful-termination] shutdown initiated");
        let hooks = run_pre_shutdown(std::mem::take(&mut self.pre_shutdown));
        let (result, ()) = tokio::join!(hooks, tokio::time::sleep(self.stopping.delay));
        result
    }

    async fn drain(&mut self) {
        self.in_flight.requests.close();
        let requests = tokio::time::timeout(self.stopping.request_timeout, self.in_flight.requests.wait());
        let (_, ()) = tokio::join!(requests, self.in_flight.watches.end(self.stopping.watch_grace));
        tracing::info!(v = 1, "[graceful-termination] requests in flight have drained");
    }
}

/// One after another; each runs, whatever became of those before it.
async fn run_pre_shutdown(hooks: Vec<PreShutdownHook>) -> Result<(), String> {
    let mut errors = Vec::new();
    for hook in hooks {
        let outcome = AssertUnwindSafe((hook.run)()).catch_unwind().await;
        let error = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(why)) => why,
            Err(_) => "panicked".to_owned(),
        };
        errors.push(format!("PreShutdownHook {:?} failed: {error}", hook.name));
    }
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
