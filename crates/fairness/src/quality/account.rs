//! Who has used how much. Use drains away at the rate that the class allows; what would not fit waits.

use super::class::{Class, Rate};
use crate::{Nanos, SECOND};
use kubelith_meta::Str;
use std::collections::HashMap;

/// Accounts of one class. When there are more, those that owe nothing go; if that does not help, newcomers share one.
const MAX_ACCOUNTS: usize = 10_000;
const OVERFLOW: &str = "\0overflow";

/// The accounts of one class.
#[derive(Debug, Default)]
pub struct Accounts {
    accounts: HashMap<Str, Account>,
    /// When settled ones were last looked for; not at every request while there are none.
    swept: Nanos,
}

#[derive(Debug, Default)]
struct Account {
    requests: Usage,
    list_bytes: Usage,
    watches: u32,
}

/// What was used and has not drained away yet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Usage {
    amount: f64,
    at: Nanos,
}

/// Over budget: which one, and when to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    Requests(Nanos),
    ListBytes(Nanos),
    /// When one of them ends, which nobody knows.
    Watches,
}

impl Refusal {
    pub fn budget(self) -> &'static str {
        match self {
            Refusal::Requests(_) => "requests",
            Refusal::ListBytes(_) => "list-bytes",
            Refusal::Watches => "watches",
        }
    }

    /// Whole seconds, at least one.
    pub fn retry_after(self) -> u64 {
        match self {
            Refusal::Requests(wait) | Refusal::ListBytes(wait) => wait.div_ceil(SECOND).max(1),
            Refusal::Watches => 1,
        }
    }
}

/// What a request is to the budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    ForList,
    ForWatch,
    ForOther,
}

impl Accounts {
    /// Charges a request, or says why not. A list is charged for its bytes when they are known, so it is let in as
    /// long as the account is not overdrawn. A watch counts until [`Accounts::end_watch`].
    pub fn charge(&mut self, now: Nanos, class: &Class, account: &str, asks: Asks) -> Result<(), Refusal> {
        let account = self.of(now, class, account, asks);
        if let (Asks::ForList, Some(rate)) = (asks, class.list_bytes) {
            account.list_bytes.fits(now, rate, 0.0).map_err(Refusal::ListBytes)?;
        }
        if asks == Asks::ForWatch && class.watches.is_some_and(|max| account.watches >= max) {
            return Err(Refusal::Watches);
        }
        if let Some(rate) = class.requests {
            account.requests.fits(now, rate, 1.0).map_err(Refusal::Requests)?;
            account.requests.add(now, rate, 1.0);
        }
        if asks == Asks::ForWatch {
            account.watches += 1;
        }
        Ok(())
    }

    /// Takes back what [`Accounts::charge`] charged: another class refused the request.
    pub fn refund(&mut self, now: Nanos, class: &Class, account: &str, asks: Asks) {
        let account = self.of(now, class, account, asks);
        if let Some(rate) = class.requests {
            account.requests.add(now, rate, -1.0);
        }
        if asks == Asks::ForWatch {
            account.watches = account.watches.saturating_sub(1);
        }
    }

    pub fn charge_list(&mut self, now: Nanos, class: &Class, account: &str, bytes: u64) {
        if let Some(rate) = class.list_bytes {
            self.of(now, class, account, Asks::ForList).list_bytes.add(now, rate, bytes as f64);
        }
    }

    pub fn end_watch(&mut self, account: &str) {
        if let Some(account) = self.accounts.get_mut(account) {
            account.watches = account.watches.saturating_sub(1);
        }
    }

    /// Who watches always gets an account of its own: there are no more of them than watches, and its end must find it.
    fn of(&mut self, now: Nanos, class: &Class, account: &str, asks: Asks) -> &mut Account {
        if !self.accounts.contains_key(account) {
            if self.accounts.len() >= MAX_ACCOUNTS && now >= self.swept + SECOND {
                self.swept = now;
                self.accounts.retain(|_, account| !account.is_settled(now, class));
            }
            let is_full = self.accounts.len() >= MAX_ACCOUNTS && asks != Asks::ForWatch;
            let name = if is_full { OVERFLOW } else { account };
            return self.accounts.entry(name.into()).or_default();
        }
        self.accounts.get_mut(account).expect("it is there")
    }
}

impl Account {
    fn is_settled(&self, now: Nanos, class: &Class) -> bool {
        let owes = |usage: &Usage, rate: Option<Rate>| rate.is_some_and(|rate| usage.left(now, rate) > 0.0);
        self.watches == 0 && !owes(&self.requests, class.requests) && !owes(&self.list_bytes, class.list_bytes)
    }
}

impl Usage {
    fn left(&self, now: Nanos, rate: Rate) -> f64 {
        let seconds = now.saturating_sub(self.at) as f64 / SECOND as f64;
        (self.amount - seconds * rate.per_second).max(0.0)
    }

    /// Whether there is room for so much more; else how long it takes until there is.
    fn fits(&self, now: Nanos, rate: Rate, more: f64) -> Result<(), Nanos> {
        let over = self.left(now, rate) + more - rate.burst;
        if over <= 0.0 {
            return Ok(());
        }
        // A rate of nothing: come back in an hour, somebody may have changed it.
        let seconds = if rate.per_second > 0.0 { over / rate.per_second } else { 3600.0 };
        Err((seconds.min(3600.0) * SECOND as f64) as Nanos)
    }

    fn add(&mut self, now: Nanos, rate: Rate, more: f64) {
        self.amount = (self.left(now, rate) + more).max(0.0);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(data: &[(&'static str, &'static str)]) -> Class {
        Class::parse("c", [("subjects", "user a")].into_iter().chain(data.iter().copied())).unwrap()
    }

    #[test]
    fn requests_drain_at_their_rate() {
        let class = class(&[("requests-per-second", "2"), ("requests-burst", "4")]);
        let mut accounts = Accounts::default();
        for _ in 0..4 {
            accounts.charge(0, &class, "a", Asks::ForOther).unwrap();
        }
        let refusal = accounts.charge(0, &class, "a", Asks::ForOther).unwrap_err();
        assert_eq!(refusal, Refusal::Requests(SECOND / 2));
        assert_eq!((refusal.retry_after(), refusal.budget()), (1, "requests"));
        // Another account is not concerned.
        accounts.charge(0, &class, "b", Asks::ForOther).unwrap();
        accounts.charge(SECOND / 2, &class, "a", Asks::ForOther).unwrap();
        assert!(accounts.charge(SECOND / 2, &class, "a", Asks::ForOther).is_err());
        accounts.refund(SECOND / 2, &class, "a", Asks::ForOther);
        accounts.charge(SECOND / 2, &class, "a", Asks::ForOther).unwrap();
        // Over a long time, two per second and not more.
        let mut let_in = 0;
        for step in 0..1000 {
            let now = 100 * SECOND + step * SECOND / 100;
            let_in += u32::from(accounts.charge(now, &class, "a", Asks::ForOther).is_ok());
        }
        assert_eq!(let_in, 4 + 19);
    }

    #[test]
    fn lists_are_paid_afterwards() {
        let class = class(&[("list-bytes-per-second", "1000"), ("list-bytes-burst", "2000")]);
        let mut accounts = Accounts::default();
        accounts.charge(0, &class, "a", Asks::ForList).unwrap();
        accounts.charge_list(0, &class, "a", 10_000);
        let refusal = accounts.charge(0, &class, "a", Asks::ForList).unwrap_err();
        assert_eq!((refusal, refusal.retry_after()), (Refusal::ListBytes(8 * SECOND), 8));
        // Other requests go on.
        accounts.charge(0, &class, "a", Asks::ForOther).unwrap();
        accounts.charge(8 * SECOND, &class, "a", Asks::ForList).unwrap();
    }

    #[test]
    fn watches_are_counted() {
        let class = class(&[("concurrent-watches", "2")]);
        let mut accounts = Accounts::default();
        accounts.charge(0, &class, "a", Asks::ForWatch).unwrap();
        accounts.charge(0, &class, "a", Asks::ForWatch).unwrap();
        assert_eq!(accounts.charge(0, &class, "a", Asks::ForWatch).unwrap_err(), Refusal::Watches);
        accounts.end_watch("a");
        accounts.charge(0, &class, "a", Asks::ForWatch).unwrap();
        accounts.refund(0, &class, "a", Asks::ForWatch);
        accounts.charge(0, &class, "a", Asks::ForWatch).unwrap();
    }

    #[test]
    fn accounts_do_not_grow_without_bound() {
        let class = class(&[("requests-per-second", "1")]);
        let mut accounts = Accounts::default();
        for user in 0..3 * MAX_ACCOUNTS {
            let _ = accounts.charge(0, &class, &user.to_string(), Asks::ForOther);
        }
        assert!(accounts.accounts.len() <= MAX_ACCOUNTS + 1);
        // Later they owe nothing and make place.
        accounts.charge(10 * SECOND, &class, "new", Asks::ForOther).unwrap();
        assert_eq!(accounts.accounts.len(), 1);
    }

    #[test]
    fn nothing_per_second_is_nothing() {
        let class = class(&[("requests-per-second", "0")]);
        let mut accounts = Accounts::default();
        accounts.charge(0, &class, "a", Asks::ForOther).unwrap();
        assert_eq!(accounts.charge(0, &class, "a", Asks::ForOther).unwrap_err().retry_after(), 3600);
    }
}
