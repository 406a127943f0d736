//! What of a server follows from its options alone. It is made once; copies of the server, which have the same options, share it.

use crate::access::Authorities;
use crate::options::Options;
use kubelith_aggregator::{ApiServiceReadings, Local};
use kubelith_catalog::Catalog;
use kubelith_kube::Plan;
use kubelith_openapi::SharedDocuments;
use kubelith_server::fairness::FlowReadings;
use kubelith_store::KeyLayout;
use std::sync::{Arc, OnceLock};

/// Each part is made when the first server needs it.
#[derive(Default)]
pub struct Blueprint {
    layout: OnceLock<Arc<KeyLayout>>,
    served_by: OnceLock<Option<u64>>,
    plan: OnceLock<Arc<Plan>>,
    pub authorities: Authorities,
    /// OpenAPI of the built-in groups.
    pub documents: OnceLock<SharedDocuments>,
    /// Group versions that the kube server serves.
    pub built_in: OnceLock<Arc<[Local]>>,
    /// Of objects that all of them have.
    pub api_services: Arc<ApiServiceReadings>,
    pub flow_control: Arc<FlowReadings>,
}

impl Blueprint {
    /// Whose object a key is.
    pub fn layout(&self, catalog: &Catalog, root: &str) -> Arc<KeyLayout> {
        let stored = || catalog.descriptors.iter().filter(|d| d.storage.keeps_objects());
        let resources = || stored().map(|d| (d.storage.prefix.as_str(), d.storage.resource.clone()));
        self.layout.get_or_init(|| Arc::new(KeyLayout::new(root, resources()))).clone()
    }

    /// See [`Options::served_by`].
    pub fn served_by(&self, options: &Options) -> Option<u64> {
        *self.served_by.get_or_init(|| options.served_by())
    }

    /// The built-in groups, once a server has installed them.
    pub fn plan(&self) -> Option<Arc<Plan>> {
        self.plan.get().cloned()
    }

    pub fn keep_plan(&self, plan: &Arc<Plan>) {
        // The same options lead to the same plan, whoever made it first.
        let _ = self.plan.set(plan.clone());
    }
}
