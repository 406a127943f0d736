//! Numbers that follow from a seed (splitmix64): the same plan for the same seed, on every machine.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// `part` tells those apart that draw on their own.
    pub fn new(seed: u64, part: u64) -> Random {
        let mut random = Random(seed ^ part.wrapping_mul(0xd134_2543_de82_ef95));
        random.draw();
        random
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.draw() % end as u64) as usize
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn between(&mut self, from: Duration, to: Duration) -> Duration {
        let span = (to - from).as_micros() as u64;
        from + Duration::from_micros(self.draw() % span.max(1))
    }
}
