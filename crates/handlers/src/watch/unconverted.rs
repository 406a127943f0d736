//! Objects that a webhook has to convert before they can be shown.

use super::WatchState;
use crate::views;
use kubelith_store::cache::{CachedObject, Form};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Between two tries to convert an object, at first and at most.
const CONVERT_AGAIN: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

impl WatchState {
    /// Whether a webhook has to be asked before the object can be shown.
    pub(super) fn is_unconverted(&self, object: &CachedObject) -> bool {
        let endpoint = &self.cx.endpoint;
        object.broken.is_none()
            && endpoint.resource.conversion.rewrites()
            && !views::is_native(&self.cx, object)
            && object.form(Form::Json, &endpoint.kind, endpoint.resource.conversion.generation()).is_none()
    }

    /// Waits until the webhook that converts an object has done so: as in the reference, a watch goes on when it can, and
    /// nobody has to begin anew. What was converted is kept with the object. `false` if the watch is over before.
    pub(super) async fn converted(&self, object: &CachedObject) -> bool {
        if !self.is_unconverted(object) {
            return true;
        }
        let mut pause = CONVERT_AGAIN.0;
        while views::json_of(&self.cx, object).await.is_err() {
            if Instant::now() + pause >= self.deadline {
                sleep_until(self.deadline).await;
                return false;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(CONVERT_AGAIN.1);
        }
        true
    }
}
