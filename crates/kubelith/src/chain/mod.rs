//! The server chain: what serves the APIs, from the top to the 404 at its end.
//!
//! ```text
//! request ─► filters ─► frame's own paths ─► (storage versions) ─► (peers) ─► aggregator ─► documents ─► kube ─► extensions ─► 404
//! ```
//!
//! It is built from its end, each server in a file of its own. A server gets what all share and the server behind it,
//! and answers a `Delegate`: its handler in front of the other's, and the hooks, checks and paths that it adds.

mod aggregator;
mod beginning;
mod controllers;
mod extensions;
mod generic;
mod kube;
mod own_requests;
mod peers;
mod services;
mod shared;

pub use beginning::write as write_beginning;
pub use shared::{Builtin, Frame, Shared};

use kubelith_aggregator::PeerProxy;
use kubelith_openapi::OpenApi;
use kubelith_server::Delegate;

/// Puts the servers one behind the other.
pub fn build(shared: &Shared<'_>, builtin: Builtin) -> Result<Delegate, String> {
    let nobody = Delegate::end();
    let generic = generic::hooks(shared, nobody);
    let (extensions, custom) = extensions::server(shared, generic);
    let peers = peers::proxy(shared)?;
    let storage_versions = kube::storage_versions(shared);
    let peer_hooks = peers.as_ref().map(PeerProxy::hooks).unwrap_or_default();
    let kube = kube::server(shared, builtin, extensions, peer_hooks, storage_versions.clone())?;
    let documents = documents(shared, kube);
    let aggregator = aggregator::server(shared, documents)?;
    let aggregator = match peers {
        Some(peers) => aggregator.behind(|next| peers.before(next)),
        None => aggregator,
    };
    let aggregator = match storage_versions {
        Some(barrier) => aggregator.behind(|next| barrier.before(next)),
        None => aggregator,
    };
    Ok(controllers::beside(shared, custom, aggregator))
}

/// Discovery and OpenAPI of everything that is served, whoever serves it. The aggregator comes before them: the documents
/// of a group version that another server has are that server's to answer.
fn documents(shared: &Shared<'_>, next: Delegate) -> Delegate {
    let (discovery, openapi) = (shared.discovery.clone(), shared.openapi.clone());
    next.behind(|next| openapi.before(discovery.before(next))).listed_paths(move || {
        let mut paths: Vec<String> = OpenApi::LISTED.iter().map(|p| (*p).to_owned()).collect();
        paths.extend(["/api", "/apis", "/apis/"].map(str::to_owned));
        for group in discovery.groups() {
            let root = if group.name.is_empty() { "/api".to_owned() } else { format!("/apis/{}", group.name) };
            paths.extend(group.versions.iter().map(|v| format!("{root}/{}", v.name)));
            paths.push(root);
        }
        paths
    })
}
