//! The two questions asked of every request: who is it (`Authenticator`), and may they (`Authorizer`).
//!
//! Both answer at once where they can: an [`Answer`] holds a future only if a remote party must be asked. Nothing is
//! begun before that future is polled, so that it may be dropped and the question asked again.

use crate::error::AuthError;
use crate::user::User;
use aws_lc_rs::digest;
use futures::future::{BoxFuture, Either, Ready, ready};
use http::HeaderMap;
use kubelith_meta::selector::{self, FieldOperator, FieldTerm};
use kubelith_meta::{FieldSelector, LabelSelector, Str};
use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A result that is here already, or comes later. `.await` works on both; `Ready` costs nothing.
pub enum Answer<'a, T> {
    Ready(T),
    Pending(BoxFuture<'a, T>),
}

impl<'a, T: Send + 'a> Answer<'a, T> {
    pub fn pending(future: impl Future<Output = T> + Send + 'a) -> Answer<'a, T> {
        Answer::Pending(Box::pin(future))
    }

    /// Begins the future, since many need no more. One that has to wait tells whoever awaits the answer.
    pub fn begin(future: impl Future<Output = T> + Send + 'a) -> Answer<'a, T> {
        let mut future = Box::pin(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(t) => Answer::Ready(t),
            Poll::Pending => Answer::Pending(future),
        }
    }

    /// What is here already.
    pub fn ready(self) -> Option<T> {
        match self {
            Answer::Ready(t) => Some(t),
            Answer::Pending(_) => None,
        }
    }

    pub fn map<U: Send + 'a>(self, f: impl FnOnce(T) -> U + Send + 'a) -> Answer<'a, U> {
        match self {
            Answer::Ready(t) => Answer::Ready(f(t)),
            Answer::Pending(p) => Answer::pending(async move { f(p.await) }),
        }
    }
}

impl<'a, T> IntoFuture for Answer<'a, T> {
    type Output = T;
    type IntoFuture = Either<Ready<T>, BoxFuture<'a, T>>;

    fn into_future(self) -> Self::IntoFuture {
        match self {
            Answer::Ready(t) => Either::Left(ready(t)),
            Answer::Pending(p) => Either::Right(p),
        }
    }
}

/// What authenticators look at.
#[derive(Debug, Clone, Copy)]
pub struct AuthRequest<'a> {
    pub headers: &'a HeaderMap,
    pub peer_certificates: Option<&'a PeerCertificates>,
    /// The decoded URL path.
    pub path: &'a str,
    /// Audiences of which the credential must be meant for one. Empty: the credential is not checked for any.
    pub audiences: &'a [Str],
}

pub use rustls_pki_types::CertificateDer;

/// The certificate chain that a client sent in the TLS handshake, leaf first, not verified there: never empty, and the same for
/// every request of its connection.
#[derive(Debug, Clone)]
pub struct PeerCertificates {
    chain: Arc<[CertificateDer<'static>]>,
    /// What the chain is remembered by once it is verified. Taken once for a connection: of a read it would be a third.
    hash: [u8; 32],
}

impl PeerCertificates {
    /// None of an empty chain.
    pub fn new(chain: impl IntoIterator<Item = CertificateDer<'static>>) -> Option<PeerCertificates> {
        let chain: Arc<[CertificateDer<'static>]> = chain.into_iter().collect();
        if chain.is_empty() {
            return None;
        }
        let mut context = digest::Context::new(&digest::SHA256);
        for certificate in chain.iter() {
            context.update(&(certificate.len() as u64).to_be_bytes());
            context.update(certificate);
        }
        let hash = context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes");
        Some(PeerCertificates { chain, hash })
    }

    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct AuthResponse {
    pub user: Arc<User>,
    /// Audiences the credential is good for; empty if the authenticator does not know of audiences.
    pub audiences: Vec<Str>,
    pub notes: Notes,
}

/// What an authenticator has to say besides who the user is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Notes {
    /// For the client, in `Warning` headers.
    pub warnings: Vec<String>,
    /// Annotations of the request's audit event.
    pub annotations: Vec<(&'static str, String)>,
}

impl AuthResponse {
    pub fn user(user: impl Into<Arc<User>>) -> AuthResponse {
        AuthResponse { user: user.into(), audiences: Vec::new(), notes: Notes::default() }
    }
}

/// `Ok(None)`: this authenticator finds no credential of its kind. `Err`: it found one and refuses it.
pub type Authentication = Result<Option<AuthResponse>, AuthError>;

/// Finds the user behind a request.
pub trait Authenticator: Send + Sync {
    fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> Answer<'a, Authentication>;
}

/// Finds the user behind a bearer token, wherever it came from (a header, a TokenReview).
pub trait TokenAuthenticator: Send + Sync {
    /// `audiences` as in [`AuthRequest`].
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [Str]) -> Answer<'a, Authentication>;
}

/// What a request wants to do, and who wants it.
#[derive(Debug, Clone, Default)]
pub struct Attributes {
    pub user: Arc<User>,
    /// A resource verb (get, list, …, deletecollection, proxy), or the lower-cased method for other paths.
    pub verb: Str,
    pub namespace: Str,
    pub group: Str,
    pub version: Str,
    pub resource: Str,
    pub subresource: Str,
    pub name: Str,
    pub path: Str,
    /// False for paths such as /healthz, for which only `user`, `verb` and `path` are set.
    pub resource_request: bool,
    pub field_selector: Selector,
    pub label_selector: Selector,
}

/// A selector as authorizers see it: what the request narrows itself to. Without requirements it is everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selector {
    /// Those that were understood; to ignore one is to allow less, never more.
    pub requirements: Arc<[Requirement]>,
    /// Why some or all of it was not understood.
    pub error: Option<Arc<str>>,
}

/// One condition of a selector; all must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    pub key: Str,
    pub operator: Operator,
    pub values: Vec<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Also `=` and `==`, which have one value.
    In,
    /// Also `!=`, which has one value.
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

impl Selector {
    /// Reads the query parameter `fieldSelector`.
    pub fn parse_fields(text: &str) -> Selector {
        if text.is_empty() {
            return Selector::default();
        }
        match FieldSelector::parse(text) {
            Ok(selector) => Selector::from_fields(&selector),
            Err(e) => Selector::unreadable(&e),
        }
    }

    /// Reads the query parameter `labelSelector`.
    pub fn parse_labels(text: &str) -> Selector {
        if text.is_empty() {
            return Selector::default();
        }
        match LabelSelector::parse(text) {
            Ok(selector) => Selector::from_labels(&selector),
            Err(e) => Selector::unreadable(&e),
        }
    }

    pub fn from_fields(selector: &FieldSelector) -> Selector {
        let requirement = |term: &FieldTerm| Requirement {
            key: term.field.clone(),
            operator: match term.operator {
                FieldOperator::Equals => Operator::In,
                FieldOperator::NotEquals => Operator::NotIn,
            },
            values: vec![term.value.clone()],
        };
        Selector { requirements: selector.terms().iter().map(requirement).collect(), error: None }
    }

    pub fn from_labels(selector: &LabelSelector) -> Selector {
        Selector { requirements: selector.requirements().iter().map(Requirement::from_label).collect(), error: None }
    }

    fn unreadable(error: &dyn std::fmt::Display) -> Selector {
        Selector { requirements: Arc::default(), error: Some(error.to_string().into()) }
    }
}

impl Requirement {
    pub fn from_label(requirement: &selector::Requirement) -> Requirement {
        let operator = match requirement.operator() {
            selector::Operator::In | selector::Operator::Equals | selector::Operator::DoubleEquals => Operator::In,
            selector::Operator::NotIn | selector::Operator::NotEquals => Operator::NotIn,
            selector::Operator::Exists => Operator::Exists,
            selector::Operator::DoesNotExist => Operator::DoesNotExist,
            selector::Operator::GreaterThan => Operator::GreaterThan,
            selector::Operator::LessThan => Operator::LessThan,
        };
        Requirement { key: requirement.key().into(), operator, values: requirement.values().to_vec() }
    }
}

impl Attributes {
    /// Resource and subresource as rules write them: `pods`, `pods/log`.
    pub fn combined_resource(&self) -> Cow<'_, str> {
        if self.subresource.is_empty() {
            Cow::Borrowed(self.resource.as_str())
        } else {
            Cow::Owned(format!("{}/{}", self.resource, self.subresource))
        }
    }

    pub fn is_read_only(&self) -> bool {
        matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny,
    /// Others may still allow it; if none does, it is forbidden.
    NoOpinion,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub verdict: Verdict,
    /// Shown to the client when forbidden, kept in the audit log when allowed.
    pub reason: Cow<'static, str>,
    /// Evaluation errors. They do not undo an `Allow`; without one they make the answer a 500.
    pub error: Option<AuthError>,
}

impl Decision {
    pub fn allow(reason: impl Into<Cow<'static, str>>) -> Decision {
        Decision { verdict: Verdict::Allow, reason: reason.into(), error: None }
    }

    pub fn deny(reason: impl Into<Cow<'static, str>>) -> Decision {
        Decision { verdict: Verdict::Deny, reason: reason.into(), error: None }
    }

    pub fn no_opinion(reason: impl Into<Cow<'static, str>>) -> Decision {
        Decision { verdict: Verdict::NoOpinion, reason: reason.into(), error: None }
    }

    pub fn with_error(mut self, error: impl Into<AuthError>) -> Decision {
        self.error = Some(error.into());
        self
    }

    pub fn allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}

/// Decides whether a request may go on.
pub trait Authorizer: Send + Sync {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision>;

    /// What `user` may do in `namespace`, as far as this authorizer can list it.
    fn rules_for(&self, user: &User, namespace: &str) -> UserRules;
}

/// The answer to SelfSubjectRulesReview.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserRules {
    pub resource_rules: Vec<ResourceRule>,
    pub non_resource_rules: Vec<NonResourceRule>,
    /// True if there may be more than is listed.
    pub incomplete: bool,
    pub error: Option<AuthError>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceRule {
    pub verbs: Vec<Str>,
    pub api_groups: Vec<Str>,
    pub resources: Vec<Str>,
    pub resource_names: Vec<Str>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    pub verbs: Vec<Str>,
    pub non_resource_urls: Vec<Str>,
}
