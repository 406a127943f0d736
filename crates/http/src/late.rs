//! Writes that go on after nobody waits for their answer any longer.

/// Told how they end.
pub trait LateWrites: Send + Sync {
    fn ended(&self, how: Late);
}

/// How a write ended after its request was answered with a timeout, or its client had left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    Done,
    Failed,
    Panicked,
    /// Not in the time that one waits to hear of it.
    Pending,
}
