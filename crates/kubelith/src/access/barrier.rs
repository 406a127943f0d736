//! Whoever changes a role or a binding sees it count with the next request: such writes are answered when the index of
//! RBAC has them.

use super::feed::RolesProgress;
use http::Method;
use kubelith_auth::authz::rbac::RBAC_GROUP;
use kubelith_http::{BoxHandler, Handler, Reply, Request};
use kubelith_store::cache::Hub;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any index takes; a server that is that slow answers without.
const PATIENCE: Duration = Duration::from_secs(1);

struct Barrier {
    next: BoxHandler,
    progress: RolesProgress,
    hub: Arc<Hub>,
}

/// Puts the wait in front of `next`.
pub fn before(next: BoxHandler, progress: RolesProgress, hub: Arc<Hub>) -> BoxHandler {
    Arc::new(Barrier { next, progress, hub })
}

impl Handler for Barrier {
    fn handle(&self, request: Request) -> Reply {
        let info = request.info();
        let reads = request.method() == Method::GET;
        // What we write ourselves, as the roles that every server has, nobody waits for.
        let own = request.connection().is_none();
        if info.group != RBAC_GROUP || !info.is_resource_request || reads || own {
            return self.next.handle(request);
        }
        let (resource, progress, hub) = (info.resource.clone(), self.progress.clone(), self.hub.clone());
        let response = self.next.handle(request);
        Reply::pending(async move {
            let response = response.await;
            if response.status().is_success() {
                let learned = async {
                    if hub.fresh().await.is_ok() {
                        progress.caught_up(&resource).await;
                    }
                };
                let _ = tokio::time::timeout(PATIENCE, learned).await;
            }
            response
        })
    }
}
