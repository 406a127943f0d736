//! Controllers of kube-controller-manager, in the process of the API server.
//!
//! Each acts under the service account that it has there, through the whole filter chain: authorization, admission and the
//! audit log see it as they would see the real one. What they read comes from the server's own watch caches. Only the
//! holder of the lease `kube-system/kube-controller-manager` acts, so that a real kube-controller-manager, or another
//! server, may stand beside.
//!
//! `names` says which there are and which are wanted, `lease` who acts, `world` what they see of the server.

mod accounts;
mod caches;
mod condition;
mod events;
mod garbage;
mod jobs;
mod lease;
mod metrics;
mod names;
mod namespace;
mod old_tokens;
mod policies;
mod quotas;
mod requests;
mod resources;
mod roles;
mod root_ca;
mod storage_versions;
mod tokens;
mod volumes;
mod world;

pub use lease::{Leadership, Lease};
pub use metrics::ControllerMetrics;
pub use names::{KNOWN, Name, Selection};
pub use requests::Signing;
pub use tokens::LegacyTokens;
pub use world::{Discovered, Known, World};

use events::Recorder;
use kubelith_admission::plugins::QuotaUsage;
use kubelith_auth::User;
use kubelith_auth::service_account;
use kubelith_auth::user::GROUP_AUTHENTICATED;
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::Clock;
use kubelith_observe::metrics::Metrics;
use kubelith_server::lifecycle::Tasks;
use kubelith_server::loopback::LoopbackClient;
use std::sync::Arc;
use std::time::Duration;

const KUBE_SYSTEM: &str = "kube-system";
/// What is written is this program's, whichever runs the controllers.
const AGENT: &str = "kube-controller-manager/v1.36.4";

/// What controllers need to know of how the server was started.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Until a namespace that is being deleted is emptied: other servers on the same store may not have seen it yet.
    pub namespace_grace: Duration,
    /// How long a namespace is left alone after its deletion was seen.
    pub namespace_pause: Duration,
    /// What clients verify this server by, in PEM.
    pub root_ca: Option<String>,
    /// The authority that signs requests, if this server has one of its own.
    pub signing: Option<Signing>,
}

/// What every controller gets.
#[derive(Clone)]
pub struct Context {
    /// Of nobody in particular; see [`Context::client`].
    pub client: LoopbackClient,
    pub world: Arc<dyn World>,
    pub clock: Arc<dyn Clock>,
    pub made_up: MadeUp,
    pub metrics: Metrics,
    pub figures: Arc<ControllerMetrics>,
    /// Counts what quotas limit.
    pub quotas: Arc<QuotaUsage>,
    /// Signs tokens that live in Secrets.
    pub tokens: Arc<dyn LegacyTokens>,
    /// Ends when another becomes the leader.
    pub tasks: Tasks,
    pub settings: Arc<Settings>,
}

impl Context {
    /// The client of a controller, which is a service account of kube-system.
    fn client(&self, account: &str) -> LoopbackClient {
        let mut groups = service_account::groups(KUBE_SYSTEM);
        groups.push(GROUP_AUTHENTICATED.into());
        let user = User::named(service_account::username(KUBE_SYSTEM, account)).with_groups(&groups);
        self.client.as_user(user).as_agent(AGENT)
    }

    /// Tells users what a controller did to their objects.
    fn recorder(&self, account: &str, component: &'static str) -> Recorder {
        Recorder::new(self.client(account), self.clock.clone(), self.made_up.clone(), component)
    }
}

/// The user that holds the lease.
pub fn manager_client(client: &LoopbackClient) -> LoopbackClient {
    let user = User::named("system:kube-controller-manager").with_groups(&[GROUP_AUTHENTICATED]);
    client.as_user(user).as_agent(AGENT)
}

/// Starts the controllers that are wanted. They run until the tasks of the context end.
pub fn start(context: &Context, selection: &Selection) {
    for name in Name::ALL {
        if selection.wants(name) {
            run(context, name);
        }
    }
}

fn run(context: &Context, name: Name) {
    match name {
        Name::Namespace => namespace::start(context),
        Name::GarbageCollector => garbage::start(context),
        Name::ServiceAccount => accounts::start(context),
        Name::RootCaPublisher => root_ca::start(context),
        Name::ClusterRoleAggregation => roles::start(context),
        Name::ServiceAccountToken => tokens::start(context),
        Name::ResourceQuota => quotas::start(context),
        Name::RequestApprover => requests::approve(context),
        Name::RequestSigner => requests::sign(context),
        Name::RequestCleaner => requests::clean(context),
        Name::TtlAfterFinished => jobs::start(context),
        Name::VolumeProtection => volumes::protect_volumes(context),
        Name::ClaimProtection => volumes::protect_claims(context),
        Name::OldTokens => old_tokens::start(context),
        Name::StorageVersions => storage_versions::start(context),
        Name::PolicyStatus => policies::start(context),
    }
}
