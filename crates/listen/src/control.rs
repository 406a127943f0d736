//! Telling connections to leave. Each has its own bell, so that driving one never touches what others share:
//! with thousands of connections a common one would be a lock on every read.

use futures::task::AtomicWaker;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Context;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Order {
    Stay = 0,
    /// Take no new requests, end when those under way are done.
    Leave = 1,
    /// End now.
    Drop = 2,
}

#[derive(Debug, Default)]
pub struct Control {
    order: AtomicU8,
    waker: AtomicWaker,
}

impl Control {
    /// Orders only get stricter.
    pub fn order(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        self.waker.wake();
    }

    /// The order in force; `cx` is woken when it changes.
    pub fn poll(&self, cx: &Context<'_>) -> Order {
        self.waker.register(cx.waker());
        match self.order.load(Ordering::Acquire) {
            0 => Order::Stay,
            1 => Order::Leave,
            _ => Order::Drop,
        }
    }
}

/// All open connections.
#[derive(Debug, Default)]
pub struct Connections {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    /// What those that come from now on are told at once.
    order: Option<Order>,
    open: HashMap<u64, Arc<Control>>,
}

/// A connection's entry; leaves the list when dropped.
#[derive(Debug)]
pub struct Entry {
    connections: Arc<Connections>,
    id: u64,
    pub control: Arc<Control>,
}

impl Connections {
    pub fn enter(self: &Arc<Self>) -> Entry {
        let control = Arc::new(Control::default());
        let mut inner = self.lock();
        let id = inner.next;
        inner.next += 1;
        inner.open.insert(id, control.clone());
        if let Some(order) = inner.order {
            control.order(order);
        }
        drop(inner);
        Entry { connections: self.clone(), id, control }
    }

    pub fn order_all(&self, order: Order) {
        let mut inner = self.lock();
        inner.order = inner.order.max(Some(order));
        for control in inner.open.values() {
            control.order(order);
        }
    }

    pub fn len(&self) -> usize {
        self.lock().open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.lock().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_reach_old_and_new_connections_and_only_get_stricter() {
        let cx = Context::from_waker(std::task::Waker::noop());
        let all = Arc::new(Connections::default());
        let old = all.enter();
        assert_eq!(old.control.poll(&cx), Order::Stay);
        all.order_all(Order::Leave);
        let new = all.enter();
        assert_eq!((old.control.poll(&cx), new.control.poll(&cx)), (Order::Leave, Order::Leave));
        all.order_all(Order::Drop);
        all.order_all(Order::Leave);
        assert_eq!((old.control.poll(&cx), new.control.poll(&cx)), (Order::Drop, Order::Drop));
        drop((old, new));
        assert!(all.is_empty());
    }
}
