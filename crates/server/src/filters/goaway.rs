//! Ends an HTTP/2 connection now and then (`--goaway-chance`), so that clients spread over the servers behind
//! a load balancer. Requests under way are not touched.

use super::Layer;
use http::header::CONNECTION;
use http::{HeaderValue, Version};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// `None` if the chance is zero.
pub fn layer(chance: f64) -> Option<Layer> {
    if chance <= 0.0 {
        return None;
    }
    let dice = Dice::new();
    Some(Layer::from_fn("goaway", move |request, next| {
        let leave = request.version() == Version::HTTP_2 && dice.roll() < chance;
        let response = next.handle(request);
        if !leave {
            return response;
        }
        response.map(|mut response| {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            response
        })
    }))
}

/// Numbers from 0 to below 1 that are even enough for balancing; nothing secret hangs on them.
struct Dice {
    seed: RandomState,
    rolls: AtomicU64,
}

impl Dice {
    fn new() -> Dice {
        Dice { seed: RandomState::new(), rolls: AtomicU64::new(0) }
    }

    fn roll(&self) -> f64 {
        let mut hasher = self.seed.build_hasher();
        hasher.write_u64(self.rolls.fetch_add(1, Ordering::Relaxed));
        (hasher.finish() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rolls_are_even() {
        let dice = Dice::new();
        let hits = (0..100_000).filter(|_| dice.roll() < 0.02).count();
        assert!((1_700..2_300).contains(&hits), "{hits}");
    }
}
