//! Values of Kubernetes' libraries, which expressions see through functions only.

use super::{EvalError, Val};
use crate::libraries::named_format::NamedFormat;
use crate::libraries::semver::Version;
use crate::libraries::{
    AUTHORIZER, CIDR, DECISION, GROUP_CHECK, IP, NAMED_FORMAT, PATH_CHECK, QUANTITY, RESOURCE_CHECK, SEMVER, URL,
};
use kubelith_meta::Quantity;
use kubelith_meta::url::Url;
use kubelith_meta::user::User;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

#[derive(Debug)]
pub enum Opaque {
    Quantity {
        amount: Quantity,
        /// Sums are of another Go type, and equal nothing that they stand behind.
        computed: bool,
    },
    Ip(IpAddr),
    Cidr(CidrRange),
    Url(Url),
    Semver(Version),
    Format(NamedFormat),
    Authorizer(AuthorizerHandle),
    PathCheck(AuthorizerHandle, String),
    GroupCheck(AuthorizerHandle, String),
    ResourceCheck(ResourceCheck),
    Decision(DecisionVal),
}

/// An address and how many bits of it count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CidrRange {
    pub address: IpAddr,
    pub bits: u8,
}

/// Who is asked, about whom.
#[derive(Debug, Clone)]
pub struct AuthorizerHandle {
    pub authorizer: Arc<dyn Authorizer>,
    pub user: Arc<User>,
}

#[derive(Debug, Clone)]
pub struct ResourceCheck {
    pub of: AuthorizerHandle,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub field_selector: String,
    pub label_selector: String,
}

/// What an expression asks an authorizer.
#[derive(Debug, Clone, Copy)]
pub enum AuthzRequest<'r> {
    Path { path: &'r str, verb: &'r str },
    Resource { check: &'r ResourceCheck, verb: &'r str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Deny,
    NoOpinion,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionVal {
    pub decision: Decision,
    pub reason: String,
    pub error: Option<String>,
}

/// The seam to the server's authorizers. Answers that have to be waited for are asked for before an evaluation, or in a
/// place where waiting is right.
pub trait Authorizer: fmt::Debug + Send + Sync {
    fn authorize(&self, user: &User, request: AuthzRequest<'_>) -> DecisionVal;
}

impl Opaque {
    pub fn type_name(&self) -> &'static str {
        match self {
            Opaque::Quantity { .. } => QUANTITY,
            Opaque::Ip(_) => IP,
            Opaque::Cidr(_) => CIDR,
            Opaque::Url(_) => URL,
            Opaque::Semver(_) => SEMVER,
            Opaque::Format(_) => NAMED_FORMAT,
            Opaque::Authorizer(_) => AUTHORIZER,
            Opaque::PathCheck(..) => PATH_CHECK,
            Opaque::GroupCheck(..) => GROUP_CHECK,
            Opaque::ResourceCheck(_) => RESOURCE_CHECK,
            Opaque::Decision(_) => DECISION,
        }
    }

    pub fn go_type(&self) -> &'static str {
        match self {
            Opaque::Quantity { computed: true, .. } => "*cel.Quantity",
            Opaque::Quantity { .. } => "cel.Quantity",
            Opaque::Ip(_) => "cel.IP",
            Opaque::Cidr(_) => "cel.CIDR",
            Opaque::Url(_) => "cel.URL",
            Opaque::Semver(_) => "cel.Semver",
            Opaque::Format(_) => "cel.Format",
            Opaque::Authorizer(_) => "library.authorizerVal",
            Opaque::PathCheck(..) => "library.pathCheckVal",
            Opaque::GroupCheck(..) => "library.groupCheckVal",
            Opaque::ResourceCheck(_) => "library.resourceCheckVal",
            Opaque::Decision(_) => "library.decisionVal",
        }
    }

    pub fn cost_size(&self) -> u64 {
        match self {
            Opaque::Ip(IpAddr::V4(_)) => 4,
            Opaque::Ip(IpAddr::V6(_)) => 16,
            Opaque::Cidr(range) => u64::from(range.bits).div_ceil(8),
            _ => 1,
        }
    }

    /// Whether Go can make it a key of a map.
    pub fn is_hashable(&self) -> bool {
        !matches!(self, Opaque::Semver(_) | Opaque::Format(_))
    }

    /// What it is as a key; `None`: it equals no other.
    pub fn key(&self) -> Option<Arc<str>> {
        match self {
            Opaque::Ip(_) | Opaque::Cidr(_) => Some(format!("{} {self}", self.type_name()).into()),
            _ => None,
        }
    }

    pub fn equal(&self, other: &Opaque) -> Result<bool, EvalError> {
        match (self, other) {
            (Opaque::Quantity { amount: a, .. }, Opaque::Quantity { amount: b, computed: false }) => Ok(a == b),
            (Opaque::Ip(a), Opaque::Ip(b)) => Ok(a == b),
            (Opaque::Cidr(a), Opaque::Cidr(b)) => Ok(a == b),
            (Opaque::Url(a), Opaque::Url(b)) => Ok(a.text == b.text),
            (Opaque::Semver(a), Opaque::Semver(b)) => Ok(a.compare(b).is_eq()),
            (Opaque::Format(a), Opaque::Format(b)) => Ok(a == b),
            _ => Err(EvalError::no_overload()),
        }
    }
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opaque::Quantity { amount, .. } => f.write_str(&amount.to_string()),
            Opaque::Ip(address) => write!(f, "{address}"),
            Opaque::Cidr(range) => write!(f, "{}/{}", range.address, range.bits),
            Opaque::Url(url) => f.write_str(&url.text),
            Opaque::Semver(version) => write!(f, "{version}"),
            Opaque::Format(format) => f.write_str(format.title()),
            other => f.write_str(other.type_name()),
        }
    }
}

/// An object that a mutation makes.
#[derive(Debug, Clone)]
pub struct ObjectVal<'a> {
    pub type_name: Arc<str>,
    /// Sorted by name.
    pub fields: Vec<(Arc<str>, Val<'a>)>,
    pub depth: u32,
}

impl<'a> ObjectVal<'a> {
    pub fn field(&self, name: &str) -> Option<&Val<'a>> {
        self.fields.iter().find(|(field, _)| **field == *name).map(|(_, v)| v)
    }

    pub fn same_fields(&self, other: &ObjectVal<'a>) -> bool {
        self.fields.len() == other.fields.len()
            && self.fields.iter().all(|(name, v)| other.field(name).is_some_and(|o| matches!(v.equals(o), Ok(true))))
    }
}

/// One operation of a JSON patch.
#[derive(Debug, Clone, Default)]
pub struct PatchVal<'a> {
    pub op: Arc<str>,
    pub path: Arc<str>,
    pub from: Arc<str>,
    pub value: Option<Val<'a>>,
}

impl<'a> PatchVal<'a> {
    pub fn equal(&self, other: &PatchVal<'a>) -> Result<bool, EvalError> {
        if self.op != other.op || self.from != other.from || self.path != other.path {
            return Ok(false);
        }
        match (&self.value, &other.value) {
            (None, None) => Ok(true),
            (Some(a), Some(b)) => a.equal(b),
            _ => Ok(false),
        }
    }
}

impl ResourceCheck {
    pub fn new(of: AuthorizerHandle, group: &str, resource: &str) -> ResourceCheck {
        ResourceCheck {
            of,
            group: group.into(),
            resource: resource.into(),
            subresource: String::new(),
            namespace: String::new(),
            name: String::new(),
            field_selector: String::new(),
            label_selector: String::new(),
        }
    }
}
