//! Room for what recurses deeply.

/// Runs something that recurses deeply; `None` if the system has no thread to do so.
pub fn on_stack<T: Send>(size: usize, run: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(size).spawn_scoped(scope, run).ok()?;
        Some(thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_cannot_be_had_is_no_panic() {
        assert_eq!(on_stack(1 << 20, || 1), Some(1));
        assert_eq!(on_stack(usize::MAX >> 1, || 1), None);
    }
}
