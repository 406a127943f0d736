//! Roles and bindings, indexed by who they are for.
//!
//! A decision looks at the bindings of the user and of each of its groups, nothing else, however many
//! bindings there are. Service accounts are users by their full name.

use super::rule::PolicyRule;
use crate::error::AuthError;
use crate::text::push_quoted;
use crate::user::User;
use kubelith_meta::text::quote;
use kubelith_meta::when_asked::WhenAsked;
use kubelith_meta::{GroupResource, Status, Str, Value};
use std::collections::HashMap;
use std::sync::{Arc, RwLock, RwLockReadGuard};

pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RbacKind {
    ClusterRole,
    ClusterRoleBinding,
    Role,
    RoleBinding,
}

impl RbacKind {
    pub fn resource(self) -> &'static str {
        match self {
            RbacKind::ClusterRole => "clusterroles",
            RbacKind::ClusterRoleBinding => "clusterrolebindings",
            RbacKind::Role => "roles",
            RbacKind::RoleBinding => "rolebindings",
        }
    }
}

/// The policy in force, kept up to date with objects as they change. Readers and writers meet only for the
/// moment of a lookup or a change.
#[derive(Default)]
pub struct RbacIndex {
    state: RwLock<IndexState>,
    filling: WhenAsked,
}

#[derive(Default)]
struct IndexState {
    cluster_roles: HashMap<Str, Rules>,
    roles: HashMap<Str, HashMap<Str, Rules>>,
    cluster_bindings: Bindings,
    bindings: HashMap<Str, Bindings>,
}

pub type Rules = Arc<[PolicyRule]>;

/// The bindings of one scope: the cluster or a namespace.
#[derive(Default)]
struct Bindings {
    by_name: HashMap<Str, Arc<Binding>>,
    /// Each list is sorted by the binding's name and has a binding once, with its first fitting subject.
    users: HashMap<Str, Vec<Grant>>,
    groups: HashMap<Str, Vec<Grant>>,
}

#[derive(Clone)]
struct Grant {
    binding: Arc<Binding>,
    subject: usize,
}

/// A RoleBinding or, without a namespace, a ClusterRoleBinding.
#[derive(Debug)]
pub struct Binding {
    name: Str,
    namespace: Str,
    role: RoleRef,
    subjects: Vec<Subject>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRef {
    pub kind: Str,
    pub name: Str,
}

#[derive(Debug, PartialEq, Eq)]
struct Subject {
    kind: Str,
    name: Str,
    namespace: Str,
}

/// Whom a subject stands for.
enum Principal {
    User(Str),
    Group(Str),
}

/// Why a binding's role has no rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleError {
    NotFound(RoleRef),
    UnsupportedKind(Str),
}

impl RoleError {
    /// As reasons print it: the lister's wording, with the singular.
    fn in_reason(&self) -> AuthError {
        AuthError::new(match self {
            RoleError::NotFound(role) => {
                format!("{}.{RBAC_GROUP} {} not found", role.kind.to_ascii_lowercase(), quote(&role.name))
            }
            RoleError::UnsupportedKind(kind) => format!("unsupported role reference kind: {}", quote(kind)),
        })
    }

    /// As a client sees it who binds such a role. The reference names the resource of the request, not the role's.
    pub fn to_status(&self, written: RbacKind) -> Status {
        match self {
            RoleError::NotFound(role) => {
                Status::not_found(&GroupResource::new(RBAC_GROUP, written.resource()), &role.name)
            }
            RoleError::UnsupportedKind(_) => Status::internal_error(self.in_reason()),
        }
    }
}

impl RbacIndex {
    /// Leaves it to the first question to fill the index: administrators and the server itself are allowed everything without one.
    pub fn fill_when_asked(&self, fill: impl FnOnce() + Send + 'static) {
        self.filling.put_off(fill);
    }

    /// For answers.
    fn filled(&self) -> RwLockReadGuard<'_, IndexState> {
        self.filling.asked();
        self.state.read().expect("no panic while held")
    }

    /// Adds an object or replaces the one of that name.
    pub fn put(&self, kind: RbacKind, object: &Value) {
        let name = Str::from(object.str_at(&["metadata", "name"]));
        let namespace = Str::from(object.str_at(&["metadata", "namespace"]));
        let mut state = self.state.write().expect("no panic while held");
        match kind {
            RbacKind::ClusterRole => {
                state.cluster_roles.insert(name, PolicyRule::list_from(object).into());
            }
            RbacKind::Role => {
                state.roles.entry(namespace).or_default().insert(name, PolicyRule::list_from(object).into());
            }
            RbacKind::ClusterRoleBinding => state.cluster_bindings.put(Binding::from_value(object, Str::default())),
            RbacKind::RoleBinding => {
                let binding = Binding::from_value(object, namespace.clone());
                state.bindings.entry(namespace).or_default().put(binding);
            }
        }
    }

    pub fn delete(&self, kind: RbacKind, namespace: &str, name: &str) {
        let mut state = self.state.write().expect("no panic while held");
        match kind {
            RbacKind::ClusterRole => drop(state.cluster_roles.remove(name)),
            RbacKind::ClusterRoleBinding => state.cluster_bindings.delete(name),
            RbacKind::Role => {
                if let Some(roles) = state.roles.get_mut(namespace) {
                    roles.remove(name);
                    if roles.is_empty() {
                        state.roles.remove(namespace);
                    }
                }
            }
            RbacKind::RoleBinding => {
                if let Some(bindings) = state.bindings.get_mut(namespace) {
                    bindings.delete(name);
                    if bindings.by_name.is_empty() {
                        state.bindings.remove(namespace);
                    }
                }
            }
        }
    }

    /// Namespaces and names of the objects that are known.
    pub fn names(&self, kind: RbacKind) -> Vec<(Str, Str)> {
        fn below<T>(all: &HashMap<Str, T>, names: impl Fn(&T) -> Vec<Str>) -> Vec<(Str, Str)> {
            all.iter().flat_map(|(ns, of)| names(of).into_iter().map(|name| (ns.clone(), name))).collect()
        }
        fn cluster<T>(all: &HashMap<Str, T>) -> Vec<(Str, Str)> {
            all.keys().map(|name| (Str::default(), name.clone())).collect()
        }
        let state = self.state.read().expect("no panic while held");
        match kind {
            RbacKind::ClusterRole => cluster(&state.cluster_roles),
            RbacKind::ClusterRoleBinding => cluster(&state.cluster_bindings.by_name),
            RbacKind::Role => below(&state.roles, |roles| roles.keys().cloned().collect()),
            RbacKind::RoleBinding => below(&state.bindings, |bindings| bindings.by_name.keys().cloned().collect()),
        }
    }

    /// The rules of the role that a binding in `namespace` (empty: a ClusterRoleBinding) refers to.
    pub fn role_rules(&self, role: &RoleRef, namespace: &str) -> Result<Rules, RoleError> {
        self.filled().role_rules(role, namespace).cloned()
    }

    /// All rules that apply to `user` in `namespace`, and what went wrong on the way.
    pub fn rules_of(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Option<AuthError>) {
        let state = self.filled();
        let mut rules = Vec::new();
        let mut errors = Vec::new();
        for (bindings, namespace) in state.scopes(namespace) {
            for grant in bindings.grants_sorted(user) {
                match state.role_rules(&grant.binding.role, namespace) {
                    Ok(found) => rules.extend(found.iter().cloned()),
                    Err(e) => errors.push(e.in_reason()),
                }
            }
        }
        (rules, AuthError::aggregate(errors))
    }

    /// Appends to `reason` the description of a binding that has a rule that `fits`, or returns the errors met
    /// while looking for one.
    pub(super) fn find(
        &self,
        user: &User,
        namespace: &str,
        fits: impl Fn(&PolicyRule) -> bool,
        reason: &mut String,
    ) -> Result<(), Option<AuthError>> {
        let state = self.filled();
        let mut errors = Vec::new();
        for (bindings, namespace) in state.scopes(namespace) {
            for grant in bindings.grants(user) {
                match state.role_rules(&grant.binding.role, namespace) {
                    Ok(rules) if rules.iter().any(&fits) => {
                        bindings.describe(user, &grant.binding, reason);
                        return Ok(());
                    }
                    Ok(_) => {}
                    Err(e) => errors.push(e),
                }
            }
        }
        Err(AuthError::aggregate(errors.iter().map(RoleError::in_reason)))
    }
}

impl IndexState {
    /// The cluster's bindings, then those of the namespace, if there is one.
    fn scopes<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a Bindings, &'a str)> {
        let local = (!namespace.is_empty()).then(|| self.bindings.get(namespace)).flatten();
        [(&self.cluster_bindings, "")].into_iter().chain(local.map(|b| (b, namespace)))
    }

    fn role_rules(&self, role: &RoleRef, namespace: &str) -> Result<&Rules, RoleError> {
        let found = match role.kind.as_str() {
            "ClusterRole" => self.cluster_roles.get(&role.name),
            "Role" => self.roles.get(namespace).and_then(|roles| roles.get(&role.name)),
            _ => return Err(RoleError::UnsupportedKind(role.kind.clone())),
        };
        found.ok_or_else(|| RoleError::NotFound(role.clone()))
    }
}

impl Bindings {
    fn put(&mut self, binding: Binding) {
        self.delete(&binding.name);
        let binding = Arc::new(binding);
        for (i, subject) in binding.subjects.iter().enumerate() {
            let (map, key) = match subject.principal(&binding.namespace) {
                Some(Principal::User(name)) => (&mut self.users, name),
                Some(Principal::Group(name)) => (&mut self.groups, name),
                None => continue,
            };
            let grants = map.entry(key).or_default();
            if let Err(at) = grants.binary_search_by(|g| g.binding.name.cmp(&binding.name)) {
                grants.insert(at, Grant { binding: binding.clone(), subject: i });
            }
        }
        self.by_name.insert(binding.name.clone(), binding);
    }

    fn delete(&mut self, name: &str) {
        let Some(binding) = self.by_name.remove(name) else { return };
        for subject in &binding.subjects {
            let (map, key) = match subject.principal(&binding.namespace) {
                Some(Principal::User(name)) => (&mut self.users, name),
                Some(Principal::Group(name)) => (&mut self.groups, name),
                None => continue,
            };
            let Some(grants) = map.get_mut(&key) else { continue };
            if let Ok(at) = grants.binary_search_by(|g| g.binding.name.as_str().cmp(name)) {
                grants.remove(at);
            }
            if grants.is_empty() {
                map.remove(&key);
            }
        }
    }

    /// Grants that apply to `user`; a binding comes as often as it has lists that fit.
    fn grants<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Grant> {
        let own = self.users.get(&user.name).into_iter().flatten();
        own.chain(user.groups.iter().filter_map(|g| self.groups.get(g)).flatten())
    }

    /// Each binding once, with its first fitting subject, by name.
    fn grants_sorted<'a>(&'a self, user: &'a User) -> Vec<&'a Grant> {
        let mut grants: Vec<&Grant> = self.grants(user).collect();
        grants.sort_by(|a, b| (&a.binding.name, a.subject).cmp(&(&b.binding.name, b.subject)));
        grants.dedup_by(|b, a| a.binding.name == b.binding.name);
        grants
    }

    fn describe(&self, user: &User, binding: &Arc<Binding>, out: &mut String) {
        let subjects = self.grants(user).filter(|g| Arc::ptr_eq(&g.binding, binding)).map(|g| g.subject);
        let first = subjects.min().expect("the binding was found among the user's");
        binding.describe(&binding.subjects[first], out);
    }
}

impl Binding {
    fn from_value(object: &Value, namespace: Str) -> Binding {
        let text = |v: &Value, key: &str| Str::from(v.str_at(&[key]));
        let subjects = object.get("subjects").and_then(Value::as_array).unwrap_or_default();
        let subjects = subjects
            .iter()
            .map(|s| Subject { kind: text(s, "kind"), name: text(s, "name"), namespace: text(s, "namespace") })
            .collect();
        Binding {
            name: object.str_at(&["metadata", "name"]).into(),
            namespace,
            role: RoleRef::of_binding(object),
            subjects,
        }
    }

    /// Appends who grants what to whom.
    fn describe(&self, subject: &Subject, out: &mut String) {
        if self.namespace.is_empty() {
            out.push_str("ClusterRoleBinding ");
            push_quoted(out, &[&self.name]);
        } else {
            out.push_str("RoleBinding ");
            push_quoted(out, &[&self.name, "/", &self.namespace]);
        }
        out.push_str(" of ");
        out.push_str(&self.role.kind);
        out.push(' ');
        push_quoted(out, &[&self.role.name]);
        out.push_str(" to ");
        out.push_str(&subject.kind);
        out.push(' ');
        if subject.kind == "ServiceAccount" {
            let own = if subject.namespace.is_empty() { &self.namespace } else { &subject.namespace };
            push_quoted(out, &[&subject.name, "/", own]);
        } else {
            push_quoted(out, &[&subject.name]);
        }
    }
}

impl RoleRef {
    /// What a RoleBinding or ClusterRoleBinding refers to.
    pub fn of_binding(object: &Value) -> RoleRef {
        RoleRef { kind: object.str_at(&["roleRef", "kind"]).into(), name: object.str_at(&["roleRef", "name"]).into() }
    }
}

impl Subject {
    fn principal(&self, binding_namespace: &str) -> Option<Principal> {
        match self.kind.as_str() {
            "User" => Some(Principal::User(self.name.clone())),
            "Group" => Some(Principal::Group(self.name.clone())),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { binding_namespace } else { &self.namespace };
                // A ClusterRoleBinding must say which namespace it means.
                let known = !namespace.is_empty();
                known.then(|| Principal::User(crate::service_account::username(namespace, &self.name)))
            }
            _ => None,
        }
    }
}
