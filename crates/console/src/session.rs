//! Sessions of people in browsers. A one-time code, which a link carries, is exchanged for a session: a cookie that scripts cannot
//! read, and a key that only the page has. A request is somebody's only with both, so that neither another site (which cannot set
//! the header) nor another server on this host (which gets the cookie, for cookies know no ports) can use the session.
//!
//! Codes and sessions are kept as digests, in this process alone: they end with it.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::fill;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, COOKIE, HeaderName};
use http::{HeaderMap, HeaderValue};
use kubelith_auth::{Answer, AuthRequest, AuthResponse, Authentication, Authenticator, User};
use kubelith_meta::Clock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Every request of the page has it; those with a session have its key there.
pub const HEADER: HeaderName = HeaderName::from_static("x-kubelith-console");
/// Scripts cannot read it, and no page on plain HTTP or of another name can set it.
const COOKIE_PREFIX: &str = "__Host-kubelith-";

/// Time to open a link.
pub const LINK_SECONDS: i64 = 15 * 60;
/// A session that nobody uses ends after an hour, and any after half a day.
const IDLE_SECONDS: i64 = 3600;
pub const SESSION_SECONDS: i64 = 12 * 3600;
/// Of each; the oldest goes.
const MAX_KEPT: usize = 256;
const SECRET_BYTES: usize = 32;

type Digest = [u8; 32];

pub struct Sessions {
    clock: Arc<dyn Clock>,
    /// Of its own, for cookies know no ports: servers of one host would take each other's.
    cookie: String,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    links: HashMap<Digest, Link>,
    sessions: HashMap<Digest, Session>,
}

struct Link {
    user: Arc<User>,
    ends: i64,
}

struct Session {
    user: Arc<User>,
    key: Digest,
    began: i64,
    last: i64,
}

/// What the browser gets.
pub struct Opened {
    pub cookie: HeaderValue,
    pub key: String,
    pub user: Arc<User>,
}

impl Sessions {
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Sessions> {
        let mut tag = [0; 6];
        random(&mut tag);
        let cookie = format!("{COOKIE_PREFIX}{}", tag.map(|byte| format!("{byte:02x}")).concat());
        Arc::new(Sessions { clock, cookie, kept: Mutex::default() })
    }

    /// A code that signs in as `user`, once.
    pub fn link(&self, user: Arc<User>) -> String {
        let code = secret();
        let now = self.now();
        let mut kept = self.kept();
        kept.links.retain(|_, link| link.ends > now);
        drop_oldest(&mut kept.links, |link| link.ends);
        kept.links.insert(sum(&code), Link { user, ends: now + LINK_SECONDS });
        code
    }

    /// Exchanges a code for a session, whose id is always made here. One that the browser had ends.
    pub fn open(&self, code: &str, headers: &HeaderMap) -> Option<Opened> {
        let now = self.now();
        let before = self.sent(headers).map(sum);
        let mut kept = self.kept();
        let link = kept.links.remove(&sum(code)).filter(|link| link.ends > now)?;
        if let Some(before) = before {
            kept.sessions.remove(&before);
        }
        let (id, key) = (secret(), secret());
        kept.sessions.retain(|_, session| session.lasts(now));
        drop_oldest(&mut kept.sessions, |session| session.last);
        let session = Session { user: link.user.clone(), key: sum(&key), began: now, last: now };
        kept.sessions.insert(sum(&id), session);
        let cookie = format!("{}={id}; Max-Age={SESSION_SECONDS}; {ATTRIBUTES}", self.cookie);
        let cookie = HeaderValue::try_from(cookie).ok()?;
        Some(Opened { cookie, key, user: link.user })
    }

    /// Ends the session of a request, and tells the browser to forget it.
    pub fn close(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        self.user(headers)?;
        let id = self.sent(headers).map(sum)?;
        self.kept().sessions.remove(&id);
        HeaderValue::try_from(format!("{}=; Max-Age=0; {ATTRIBUTES}", self.cookie)).ok()
    }

    /// Whose session a request belongs to: it has the cookie, the key, and no other credential.
    pub fn user(&self, headers: &HeaderMap) -> Option<Arc<User>> {
        let key = headers.get(HEADER)?.to_str().ok()?;
        if headers.contains_key(AUTHORIZATION) || !is_same_origin(headers) {
            return None;
        }
        let id = sum(self.sent(headers)?);
        let now = self.now();
        let mut kept = self.kept();
        let session = kept.sessions.get_mut(&id).filter(|session| session.lasts(now))?;
        if session.key != sum(key) {
            return None;
        }
        session.last = now;
        Some(session.user.clone())
    }

    /// The id in the cookie of ours, if there is exactly one: a second one was put there by somebody else.
    fn sent<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let mut found = cookies(headers).filter(|(name, _)| *name == self.cookie).map(|(_, value)| value);
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    fn now(&self) -> i64 {
        self.clock.now().unix_seconds()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Strict";

impl Session {
    fn lasts(&self, now: i64) -> bool {
        now < self.last + IDLE_SECONDS && now < self.began + SESSION_SECONDS
    }
}

/// Browsers say from where a request comes; other clients need not.
pub fn is_same_origin(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin")
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let texts = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// Takes our cookies and the key out of a request: whoever it is passed on to must not have them. Others stay.
pub fn remove_cookie(headers: &mut HeaderMap) {
    headers.remove(HEADER);
    let ours = cookies(headers).any(|(name, _)| name.starts_with(COOKIE_PREFIX));
    if !ours {
        return;
    }
    let others: Vec<String> = cookies(headers)
        .filter(|(name, _)| !name.starts_with(COOKIE_PREFIX))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    headers.remove(COOKIE);
    if let Ok(value) = HeaderValue::try_from(others.join("; "))
        && !others.is_empty()
    {
        headers.insert(COOKIE, value);
    }
}

/// Knows who has a session, and asks `next` about all others.
pub struct SessionAuthenticator {
    pub sessions: Arc<Sessions>,
    pub next: Arc<dyn Authenticator>,
}

impl Authenticator for SessionAuthenticator {
    fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> Answer<'a, Authentication> {
        match self.sessions.user(request.headers) {
            Some(user) => Answer::Ready(Ok(Some(AuthResponse::user(user)))),
            None => self.next.authenticate(request),
        }
    }
}

fn secret() -> String {
    let mut bytes = [0; SECRET_BYTES];
    random(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

fn random(bytes: &mut [u8]) {
    fill(bytes).expect("the system has random numbers");
}

fn sum(secret: &str) -> Digest {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    sum
}

fn drop_oldest<T>(map: &mut HashMap<Digest, T>, age: impl Fn(&T) -> i64) {
    while map.len() >= MAX_KEPT {
        let Some(oldest) = map.iter().min_by_key(|(_, item)| age(item)).map(|(key, _)| *key) else { return };
        map.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_meta::time::{Duration, TestClock, Time};

    fn start() -> (Arc<TestClock>, Arc<Sessions>, Arc<User>) {
        let clock = Arc::new(TestClock::new(Time::parse("2026-11-17T12:00:00Z").unwrap()));
        (clock.clone(), Sessions::new(clock), Arc::new(User::named("jane")))
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::try_from(*value).unwrap()))
            .collect()
    }

    fn pair(opened: &Opened) -> String {
        opened.cookie.to_str().unwrap().split(';').next().unwrap().to_owned()
    }

    #[test]
    fn a_link_opens_one_session() {
        let (_, sessions, jane) = start();
        let code = sessions.link(jane.clone());
        let none = HeaderMap::new();
        assert!(sessions.open("guessed", &none).is_none());
        let opened = sessions.open(&code, &none).unwrap();
        assert!(sessions.open(&code, &none).is_none(), "a code is good once");
        let cookie = opened.cookie.to_str().unwrap();
        for attribute in ["__Host-kubelith-", "Path=/", "Secure", "HttpOnly", "SameSite=Strict", "Max-Age=43200"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        let (cookie, key) = (pair(&opened), opened.key.as_str());
        let good = headers(&[("cookie", &format!("a=b; {cookie}")), ("x-kubelith-console", key)]);
        assert_eq!(sessions.user(&good), Some(jane));
        let twice = format!("{cookie}; {cookie}");
        for bad in [
            headers(&[("cookie", &cookie)]),
            headers(&[("x-kubelith-console", key)]),
            headers(&[("cookie", &cookie), ("x-kubelith-console", "1")]),
            headers(&[("cookie", &twice), ("x-kubelith-console", key)]),
            headers(&[("cookie", &cookie), ("x-kubelith-console", key), ("sec-fetch-site", "same-site")]),
            headers(&[("cookie", &cookie), ("x-kubelith-console", key), ("sec-fetch-site", "cross-site")]),
            headers(&[("cookie", &cookie), ("x-kubelith-console", key), ("authorization", "Bearer x")]),
        ] {
            assert_eq!(sessions.user(&bad), None, "{bad:?}");
        }
        assert!(sessions.close(&headers(&[("cookie", &cookie)])).is_none(), "the cookie alone ends nothing");
        assert!(sessions.close(&good).is_some());
        assert_eq!(sessions.user(&good), None);
    }

    #[test]
    fn nobody_chooses_the_id_of_a_session() {
        let (_, sessions, jane) = start();
        let fixed = headers(&[("cookie", &format!("{}=chosen", sessions.cookie)), ("x-kubelith-console", "k")]);
        let opened = sessions.open(&sessions.link(jane.clone()), &fixed).unwrap();
        assert!(!pair(&opened).contains("chosen"));
        assert_eq!(sessions.user(&fixed), None);
        let first = headers(&[("cookie", &pair(&opened)), ("x-kubelith-console", &opened.key)]);
        let second = sessions.open(&sessions.link(jane), &first).unwrap();
        assert_ne!(pair(&opened), pair(&second));
        assert_eq!(sessions.user(&first), None, "the session before it is gone");
    }

    #[test]
    fn links_and_sessions_end() {
        let (clock, sessions, jane) = start();
        let none = HeaderMap::new();
        let late = sessions.link(jane.clone());
        clock.advance(Duration::from_nanos(LINK_SECONDS * 1_000_000_000));
        assert!(sessions.open(&late, &none).is_none());
        let opened = sessions.open(&sessions.link(jane), &none).unwrap();
        let good = headers(&[("cookie", &pair(&opened)), ("x-kubelith-console", &opened.key)]);
        let half = Duration::from_nanos(IDLE_SECONDS / 2 * 1_000_000_000);
        for _ in 0..23 {
            clock.advance(half);
            assert!(sessions.user(&good).is_some(), "it is in use");
        }
        clock.advance(half);
        assert!(sessions.user(&good).is_none(), "but not for ever");
    }

    #[test]
    fn there_is_a_bound() {
        let (_, sessions, jane) = start();
        for _ in 0..MAX_KEPT + 10 {
            let code = sessions.link(jane.clone());
            sessions.open(&code, &HeaderMap::new());
            sessions.link(jane.clone());
        }
        let kept = sessions.kept();
        assert!(kept.links.len() <= MAX_KEPT && kept.sessions.len() <= MAX_KEPT);
    }

    #[test]
    fn what_is_passed_on_has_no_session() {
        let mut sent = headers(&[("cookie", "a=b; __Host-kubelith-ab=secret; c=d"), ("x-kubelith-console", "key")]);
        remove_cookie(&mut sent);
        assert_eq!(sent.get(COOKIE).unwrap(), "a=b; c=d");
        assert!(!sent.contains_key(HEADER));
        let mut alone = headers(&[("cookie", "__Host-kubelith-ab=secret")]);
        remove_cookie(&mut alone);
        assert!(alone.is_empty());
        let mut others = headers(&[("cookie", "a=b;c=d")]);
        remove_cookie(&mut others);
        assert_eq!(others.get(COOKIE).unwrap(), "a=b;c=d", "nobody else's is touched");
    }
}
