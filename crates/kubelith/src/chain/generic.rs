//! What every server of the chain has, whatever it serves: contributed once, by the innermost.

use super::Shared;
use kubelith_server::Delegate;
use kubelith_server::lifecycle::PostStartHook;

/// In the reference each server starts its informers in this hook; our watch caches are full before anything is served.
pub fn hooks(_shared: &Shared<'_>, next: Delegate) -> Delegate {
    next.post_start_hook(PostStartHook::new("generic-apiserver-start-informers", |_| async { Ok(()) }))
}
