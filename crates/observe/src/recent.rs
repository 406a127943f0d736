//! The last requests that were slow, refused or denied, and what webhooks and policies said last: for people who look now. All of it is
//! off the usual way of a request, bounded, and empty unless somebody asked for it to be kept ([`Recent::keep`]).

use kubelith_auth::User;
use kubelith_http::RequestInfo;
use kubelith_http::latency::{Latency, PARTS};
use kubelith_meta::time::wall_time;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Of each sort; a page shows no more.
const MAX_KEPT: usize = 100;
/// A short request that takes this long is slow to who looks. The log has a line for those that take ten times as long.
const SLOW: Duration = Duration::from_millis(100);
/// Of a text that another program sent.
const MAX_TEXT: usize = 1024;

#[derive(Default)]
pub struct Recent {
    kept: AtomicBool,
    lists: Mutex<Lists>,
}

/// Newest last.
#[derive(Clone, Default)]
pub struct Lists {
    pub slow: VecDeque<SlowRequest>,
    pub refused: VecDeque<Refusal>,
    pub denied: VecDeque<Denial>,
    pub failures: VecDeque<Refusing>,
}

/// Who asked for what.
#[derive(Clone)]
pub struct Asked {
    pub user: Arc<User>,
    pub info: Arc<RequestInfo>,
}

#[derive(Clone)]
pub struct SlowRequest {
    pub asked: Asked,
    pub at: SystemTime,
    pub took: Duration,
    pub code: u16,
    /// Where the time went, by the names of [`PARTS`].
    pub parts: Vec<(&'static str, Duration)>,
}

/// A 429.
#[derive(Clone)]
pub struct Refusal {
    pub asked: Asked,
    pub last: SystemTime,
    pub count: u64,
}

/// A 403.
#[derive(Clone)]
pub struct Denial {
    pub asked: Asked,
    pub reason: String,
    pub last: SystemTime,
    pub count: u64,
}

/// What refuses requests, or fails to judge them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    Webhook,
    Policy,
}

#[derive(Clone)]
pub struct Refusing {
    pub speaker: Speaker,
    pub name: String,
    pub why: String,
    pub last: SystemTime,
    pub count: u64,
}

impl Asked {
    /// The same question again, whichever object it is about: who tries in a loop must not drive out the others.
    fn is_like(&self, other: &Asked) -> bool {
        let (a, b) = (&self.info, &other.info);
        let same_path = a.is_resource_request || a.path == b.path;
        self.user.name == other.user.name
            && (&a.verb, &a.group, &a.resource, &a.subresource, &a.namespace)
                == (&b.verb, &b.group, &b.resource, &b.subresource, &b.namespace)
            && same_path
    }
}

impl Recent {
    /// From here on.
    pub fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    pub fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }

    pub fn lists(&self) -> Lists {
        self.lock().clone()
    }

    /// A request was answered. Nearly all are answered in time.
    pub fn answered(&self, user: &Option<Arc<User>>, info: &Arc<RequestInfo>, took: Duration, code: u16, l: &Latency) {
        let Some(user) = user.as_ref().filter(|_| took >= SLOW && !info.is_long_running()) else { return };
        let parts = PARTS.map(|(part, name)| (name, l.of(part)));
        let parts = parts.into_iter().filter(|(_, spent)| !spent.is_zero()).collect();
        let asked = Asked { user: user.clone(), info: info.clone() };
        let slow = SlowRequest { asked, at: wall_time(), took, code, parts };
        push(&mut self.lock().slow, slow);
    }

    pub fn refused(&self, user: Option<&Arc<User>>, info: &Arc<RequestInfo>) {
        if !self.is_kept() {
            return;
        }
        let asked = Asked { user: user.cloned().unwrap_or_default(), info: info.clone() };
        let mut lists = self.lock();
        let count = 1 + take(&mut lists.refused, |r| r.asked.is_like(&asked)).map_or(0, |r| r.count);
        push(&mut lists.refused, Refusal { asked, last: wall_time(), count });
    }

    pub fn denied(&self, user: Option<&Arc<User>>, info: &Arc<RequestInfo>, reason: &str) {
        if !self.is_kept() {
            return;
        }
        let asked = Asked { user: user.cloned().unwrap_or_default(), info: info.clone() };
        let mut lists = self.lock();
        let count = 1 + take(&mut lists.denied, |d| d.asked.is_like(&asked)).map_or(0, |d| d.count);
        push(&mut lists.denied, Denial { asked, reason: cut(reason), last: wall_time(), count });
    }

    /// A webhook or a policy refused something, or could not judge it.
    pub fn said_no(&self, speaker: Speaker, name: &str, why: &str) {
        if !self.is_kept() {
            return;
        }
        let why = cut(why);
        let mut lists = self.lock();
        let same = |known: &Refusing| (known.speaker, known.name.as_str(), &known.why) == (speaker, name, &why);
        let count = 1 + take(&mut lists.failures, same).map_or(0, |known| known.count);
        push(&mut lists.failures, Refusing { speaker, name: name.to_owned(), why, last: wall_time(), count });
    }

    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn push<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() >= MAX_KEPT {
        list.pop_front();
    }
    list.push_back(item);
}

fn take<T>(list: &mut VecDeque<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    let place = list.iter().position(is_it)?;
    list.remove(place)
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(user: &str, resource: &str) -> (Arc<User>, Arc<RequestInfo>) {
        let info = RequestInfo {
            is_resource_request: true,
            verb: "get".into(),
            resource: resource.into(),
            ..RequestInfo::default()
        };
        (Arc::new(User::named(user)), Arc::new(info))
    }

    #[test]
    fn repetitions_are_counted_and_the_oldest_go() {
        let recent = Recent::default();
        let (user, info) = asked("a", "pods");
        recent.denied(Some(&user), &info, "no");
        assert!(recent.lists().denied.is_empty(), "nobody asked for it");
        recent.keep();
        for _ in 0..3 {
            recent.denied(Some(&user), &info, "no");
            recent.refused(Some(&user), &info);
            recent.said_no(Speaker::Webhook, "w", "it is down");
        }
        for n in 0..MAX_KEPT - 1 {
            let (user, info) = asked(&format!("u{n}"), "pods");
            recent.denied(Some(&user), &info, "no");
        }
        recent.denied(Some(&user), &info, "no");
        let lists = recent.lists();
        assert_eq!(lists.denied.len(), MAX_KEPT);
        assert_eq!(lists.denied.back().map(|d| d.count), Some(4));
        assert_eq!((lists.refused.len(), lists.refused[0].count), (1, 3));
        assert_eq!((lists.failures.len(), lists.failures[0].count), (1, 3));
    }

    #[test]
    fn slow_requests_show_where_the_time_went() {
        let recent = Recent::default();
        let (user, info) = asked("a", "pods");
        let latency = Latency::default();
        latency.add(kubelith_http::latency::Part::Storage, Duration::from_millis(120));
        recent.answered(&None, &info, Duration::from_secs(1), 200, &latency);
        recent.answered(&Some(user.clone()), &info, Duration::from_millis(99), 200, &latency);
        recent.answered(&Some(user), &info, Duration::from_millis(150), 200, &latency);
        let slow = recent.lists().slow;
        assert_eq!(slow.len(), 1);
        assert_eq!(slow[0].parts, [("etcd", Duration::from_millis(120))]);
    }

    #[test]
    fn texts_of_others_are_cut() {
        assert_eq!(cut("kurz"), "kurz");
        assert!(cut(&"ä".repeat(MAX_TEXT)).len() <= MAX_TEXT);
    }
}
