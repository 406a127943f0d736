//! What plugins are made from.

use crate::configuration::Configuration;
use crate::loopback::Loopback;
use crate::observe::Observer;
use futures::future::BoxFuture;
use kubelith_auth::Authorizer;
use kubelith_auth::hook::{Hook, Hooks};
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::Clock;
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_registry::Objects;
use kubelith_rules::expression::Expressions;
use std::path::Path;
use std::sync::Arc;

/// Makes the way to webhooks, as whom a kubeconfig file says.
pub type HookFactory = Arc<dyn Fn(Option<&Path>) -> Result<Arc<dyn Hooks>, String> + Send + Sync>;

/// Makes the way to the server that a kubeconfig file names.
pub type Reviewer = Arc<dyn Fn(&Path) -> Result<Arc<dyn Hook>, String> + Send + Sync>;

/// Finds custom resources: of a namespace, unless that is empty, and of a name, unless all are meant.
pub type FindCustom =
    Arc<dyn Fn(GroupVersionResource, Str, Option<Str>) -> BoxFuture<'static, Result<Vec<Value>, Status>> + Send + Sync>;

/// What plugins are made from.
#[derive(Clone)]
pub struct Config {
    pub objects: Arc<Objects>,
    pub authorizer: Arc<dyn Authorizer>,
    /// Whether a feature gate is on.
    pub gates: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// The minor version of the release that the server behaves as.
    pub release: u32,
    /// `--default-not-ready-toleration-seconds`.
    pub not_ready_toleration_seconds: i64,
    /// `--default-unreachable-toleration-seconds`.
    pub unreachable_toleration_seconds: i64,
    /// `--admission-control-config-file`.
    pub configuration: Configuration,
    /// The way to webhooks, with the credentials of a kubeconfig file if there is one.
    pub hooks: HookFactory,
    /// The way to the server that judges images.
    pub reviewer: Reviewer,
    /// The way to custom resources, which policies may take parameters from.
    pub custom: FindCustom,
    pub observer: Arc<dyn Observer>,
    pub server: Arc<dyn Loopback>,
    pub clock: Arc<dyn Clock>,
    /// Where uids and suffixes of names come from.
    pub made_up: MadeUp,
    /// What expressions in CEL are compiled with.
    pub expressions: Arc<Expressions>,
}
