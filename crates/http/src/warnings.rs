//! Warnings for the client, gathered while its request is handled.

use std::sync::{Arc, Mutex};

/// More of them are not kept: their headers would be cut anyway.
const MAX_TEXTS: usize = 4 * 1024;

/// Where handlers put warnings for the client.
#[derive(Debug, Clone, Default)]
pub struct Warnings {
    list: Arc<Mutex<Vec<String>>>,
}

impl Warnings {
    /// Empty texts and repetitions are passed over.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut list = self.list.lock().unwrap_or_else(|e| e.into_inner());
        if !text.is_empty() && list.len() < MAX_TEXTS && !list.contains(&text) {
            list.push(text);
        }
    }

    pub fn texts(&self) -> Vec<String> {
        self.list.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.list.lock().unwrap_or_else(|e| e.into_inner()))
    }
}
