//! One mode of impersonation: whom it is for, and the permissions it takes.

use crate::forbidden::forbidden_status;
use crate::service_account::authenticate::EXTRA_NODE_NAME;
use crate::service_account::{self, split_username};
use crate::text::quote_list;
use crate::traits::{Attributes, Authorizer};
use crate::user::{
    ANONYMOUS, GROUP_AUTHENTICATED, GROUP_MASTERS, GROUP_NODES, GROUP_UNAUTHENTICATED, NODE_PREFIX, User,
};
use kubelith_meta::field::Path;
use kubelith_meta::names::{is_dns1123_subdomain, validate_domain_prefixed_path};
use kubelith_meta::text::quote;
use kubelith_meta::{Status, Str};
use std::collections::BTreeMap;
use std::sync::Arc;

const AUTHENTICATION_GROUP: &str = "authentication.k8s.io";

/// From this many groups or extras on, a permission for all of them is asked for first.
const MANY: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A pod's service account as the node it runs on.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    /// The unconstrained `impersonate`.
    Legacy,
}

impl Mode {
    pub const ALL: [Mode; 5] =
        [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];

    fn verb(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "impersonate:associated-node",
            Mode::ArbitraryNode => "impersonate:arbitrary-node",
            Mode::ServiceAccount => "impersonate:serviceaccount",
            Mode::UserInfo => "impersonate:user-info",
            Mode::Legacy => "impersonate",
        }
    }

    pub fn constraint(self) -> &'static str {
        if self == Mode::Legacy { "" } else { self.verb() }
    }

    fn is_constrained(self) -> bool {
        self != Mode::Legacy
    }

    /// Whether this mode is for such a wish at all.
    fn fits(self, wanted: &User, requestor: &User) -> bool {
        let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        match self {
            Mode::AssociatedNode => only_name && is_on_node(requestor, &wanted.name),
            Mode::ArbitraryNode => only_name && node_name(&wanted.name).is_some(),
            Mode::ServiceAccount => only_name && split_username(&wanted.name).is_some(),
            Mode::UserInfo => node_name(&wanted.name).is_none() && split_username(&wanted.name).is_none(),
            Mode::Legacy => true,
        }
    }
}

/// The user that `mode` makes of the wish; `None` if it is not for such wishes.
pub async fn check(
    mode: Mode,
    authorizer: &dyn Authorizer,
    attributes: &Attributes,
    wanted: &User,
) -> Result<Option<User>, Status> {
    if !mode.fits(wanted, &attributes.user) {
        return Ok(None);
    }
    let requestor = if mode == Mode::AssociatedNode { keys_only(&attributes.user) } else { attributes.user.clone() };
    if mode.is_constrained() {
        let kind = mode.verb().trim_start_matches("impersonate:");
        let verb = format!("impersonate-on:{kind}:{}", attributes.verb).into();
        let on = Attributes { verb, user: requestor.clone(), ..attributes.clone() };
        require(authorizer, &on).await?;
    }
    let asking = Asking { mode, authorizer, requestor };
    let mut user = wanted.clone();
    asking.username(wanted, &mut user).await?;
    asking.uid(&wanted.uid).await?;
    asking.groups(&wanted.groups).await?;
    asking.extra(&wanted.extra).await?;

    let group = if user.name == ANONYMOUS {
        Some(GROUP_UNAUTHENTICATED)
    } else {
        (!user.in_group(GROUP_UNAUTHENTICATED)).then_some(GROUP_AUTHENTICATED)
    };
    if let Some(group) = group.filter(|g| !user.in_group(g)) {
        user.groups.push(group.into());
    }
    Ok(Some(user))
}

struct Asking<'a> {
    mode: Mode,
    authorizer: &'a dyn Authorizer,
    requestor: Arc<User>,
}

impl Asking<'_> {
    fn attributes(&self, group: &str, resource: &str, name: &str) -> Attributes {
        Attributes {
            user: self.requestor.clone(),
            verb: self.mode.verb().into(),
            group: group.into(),
            version: "v1".into(),
            resource: resource.into(),
            name: name.into(),
            resource_request: true,
            ..Attributes::default()
        }
    }

    /// Users and groups are in the core group for the old verb.
    fn name_group(&self) -> &'static str {
        if self.mode.is_constrained() { AUTHENTICATION_GROUP } else { "" }
    }

    async fn username(&self, wanted: &User, user: &mut User) -> Result<(), Status> {
        let mut attributes = self.attributes(self.name_group(), "users", &wanted.name);
        let refuse_groups = |attributes: &Attributes, what: &str| {
            let groups = quote_list(&wanted.groups);
            forbidden_status(attributes, &format!("when impersonating a {what}, cannot impersonate groups {groups}"))
        };
        if let Some(node) = node_name(&wanted.name).filter(|_| self.mode.is_constrained()) {
            attributes.resource = "nodes".into();
            // Whoever may be its own node may be so on every node.
            attributes.name = if self.mode == Mode::AssociatedNode { "*".into() } else { node.into() };
            if !wanted.groups.is_empty() {
                return Err(refuse_groups(&attributes, "node"));
            }
            user.groups = vec![GROUP_NODES.into()];
        }
        if let Some((namespace, name)) = split_username(&wanted.name) {
            attributes.resource = "serviceaccounts".into();
            attributes.namespace = namespace.into();
            attributes.name = name.into();
            if !wanted.groups.is_empty() && self.mode.is_constrained() {
                return Err(refuse_groups(&attributes, "service account"));
            }
            if wanted.groups.is_empty() {
                user.groups = service_account::groups(namespace);
            }
        }
        require(self.authorizer, &attributes).await
    }

    async fn uid(&self, uid: &str) -> Result<(), Status> {
        if uid.is_empty() {
            return Ok(());
        }
        require(self.authorizer, &self.attributes(AUTHENTICATION_GROUP, "uids", uid)).await
    }

    async fn groups(&self, groups: &[Str]) -> Result<(), Status> {
        let mut attributes = self.attributes(self.name_group(), "groups", "");
        if self.mode.is_constrained() {
            if groups.iter().any(|g| g.is_empty()) {
                return Err(forbidden_status(&attributes, "impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|g| g == GROUP_MASTERS) {
                attributes.name = GROUP_MASTERS.into();
                return Err(forbidden_status(&attributes, "impersonating the system:masters group is not allowed"));
            }
            attributes.name = "*".into();
            if groups.len() >= MANY && require(self.authorizer, &attributes).await.is_ok() {
                return Ok(());
            }
        }
        for group in groups {
            attributes.name = group.clone();
            require(self.authorizer, &attributes).await?;
        }
        Ok(())
    }

    async fn extra(&self, extra: &BTreeMap<Str, Vec<Str>>) -> Result<(), Status> {
        let mut attributes = self.attributes(AUTHENTICATION_GROUP, "userextras", "");
        if self.mode.is_constrained() && !extra.is_empty() {
            validate_extra(extra).map_err(|e| forbidden_status(&attributes, &e))?;
            let many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            let all = Attributes { subresource: "*".into(), name: "*".into(), ..attributes.clone() };
            if many && require(self.authorizer, &all).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            attributes.subresource = key.clone();
            for value in values {
                attributes.name = value.clone();
                require(self.authorizer, &attributes).await?;
            }
        }
        Ok(())
    }
}

async fn require(authorizer: &dyn Authorizer, attributes: &Attributes) -> Result<(), Status> {
    let decision = authorizer.authorize(attributes).await;
    if decision.allowed() {
        return Ok(());
    }
    let why = match &decision.error {
        None => decision.reason.to_string(),
        Some(e) if decision.reason.is_empty() => e.to_string(),
        Some(e) => format!("{e}: {}", decision.reason),
    };
    Err(forbidden_status(attributes, &why))
}

fn validate_extra(extra: &BTreeMap<Str, Vec<Str>>) -> Result<(), String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Err("impersonating the empty string key in extra is not allowed".into());
        }
        validate_domain_prefixed_path(key, &Path::of(&["extra", "key"]))
            .into_result()
            .map_err(|e| format!("impersonating an invalid key in extra is not allowed: {e}"))?;
        if key.to_lowercase() != key.as_str() {
            return Err(format!("impersonating a non-lowercase key in extra is not allowed: {}", quote(key)));
        }
        if values.is_empty() {
            return Err("impersonating empty values in extra is not allowed".into());
        }
        if values.iter().any(|v| v.is_empty()) {
            return Err("impersonating the empty string value in extra is not allowed".into());
        }
    }
    Ok(())
}

fn node_name(username: &str) -> Option<&str> {
    username.strip_prefix(NODE_PREFIX).filter(|name| is_dns1123_subdomain(name).is_empty())
}

/// Whether `requestor` is the service account of a pod that runs on the node that `username` is.
fn is_on_node(requestor: &User, username: &str) -> bool {
    let own = requestor.extra.get(EXTRA_NODE_NAME).map_or(&[][..], Vec::as_slice);
    split_username(&requestor.name).is_some() && node_name(username).is_some_and(|node| own == [node])
}

/// The requestor without the values of its extras: the permission holds for whichever pod it is.
fn keys_only(requestor: &User) -> Arc<User> {
    let keys: Vec<Str> = requestor.extra.keys().cloned().collect();
    let mut user = requestor.clone();
    user.extra = BTreeMap::from([("authentication.kubernetes.io/associated-node-keys".into(), keys)]);
    Arc::new(user)
}
