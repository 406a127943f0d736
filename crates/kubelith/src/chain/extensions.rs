//! The API extensions server: custom resources. It is the last to be asked, so that no definition can take a built-in
//! group's place.
//!
//! In health it shows, in this order: `start-apiextensions-informers`, `start-apiextensions-controllers`,
//! `crd-informer-synced`.

use super::Shared;
use kubelith_server::Delegate;

pub fn server(_shared: &Shared<'_>, next: Delegate) -> Delegate {
    next
}
