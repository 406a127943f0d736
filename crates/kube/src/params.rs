//! Who lets a policy be configured by objects must be allowed to read them: a policy tells what it reads by what it refuses.

use futures::future::BoxFuture;
use kubelith_auth::{Attributes, Authorizer};
use kubelith_catalog::builtin;
use kubelith_codec::json;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::user::User;
use kubelith_meta::{GroupVersion, Status, Str, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Admission, Operation, Request};
use std::fmt;
use std::sync::Arc;

const GROUP: &str = "admissionregistration.k8s.io";
/// Its members may do everything.
const MASTERS: &str = "system:masters";

/// What is checked of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// The kind of a policy's parameters.
    Policy,
    /// The parameters of a binding to a policy of this resource.
    Binding(&'static str),
}

/// Stands before everything that validates: the reference has it in its strategies, behind the rules.
pub struct ParamCheck {
    subject: Subject,
    authorizer: Arc<dyn Authorizer>,
    objects: Arc<Objects>,
    inner: Arc<dyn Admission>,
}

/// `inner` with the check, if the resource is one of policies or their bindings.
pub fn guard(
    group: &str,
    plural: &str,
    authorizer: &Arc<dyn Authorizer>,
    objects: &Arc<Objects>,
    inner: Arc<dyn Admission>,
) -> Arc<dyn Admission> {
    let subject = match plural {
        _ if group != GROUP => return inner,
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => Subject::Policy,
        "validatingadmissionpolicybindings" => Subject::Binding("validatingadmissionpolicies"),
        "mutatingadmissionpolicybindings" => Subject::Binding("mutatingadmissionpolicies"),
        _ => return inner,
    };
    Arc::new(ParamCheck { subject, authorizer: authorizer.clone(), objects: objects.clone(), inner })
}

impl ParamCheck {
    /// What is asked for, if it is new.
    fn asked<'a>(&self, request: &Request<'_>, object: &'a Value) -> Option<&'a Value> {
        let key = match self.subject {
            Subject::Policy => "paramKind",
            Subject::Binding(_) => "paramRef",
        };
        let path = ["spec", key];
        let asked = object.at(&path).filter(|asked| !asked.is_null())?;
        let Some(old) = request.old else { return Some(asked) };
        let is_same = match self.subject {
            Subject::Policy => old.at(&path) == Some(asked),
            // Selectors and the like are pointers, which are compared as such: one is never the other.
            Subject::Binding(_) => {
                let policy = ["spec", "policyName"];
                old.at(&path) == Some(asked)
                    && old.at(&policy) == object.at(&policy)
                    && ["selector", "parameterNotFoundAction"].iter().all(|key| asked.get(key).is_none())
            }
        };
        (!is_same).then_some(asked)
    }

    async fn check(&self, user: &Arc<User>, object: &Value, asked: &Value) -> Result<(), String> {
        if user.groups.iter().any(|group| group == MASTERS) {
            return Ok(());
        }
        match self.subject {
            Subject::Policy => self.check_policy(user, asked).await,
            Subject::Binding(policies) => self.check_binding(user, object, asked, policies).await,
        }
    }

    async fn check_policy(&self, user: &Arc<User>, kind: &Value) -> Result<(), String> {
        let needed = self.resolve(kind);
        let attributes = Attributes { verb: "get".into(), name: "*".into(), namespace: "*".into(), ..needed.of(user) };
        if self.authorizer.authorize(&attributes).await.allowed() {
            return Ok(());
        }
        let (name, version) = (kind.str_at(&["kind"]), kind.str_at(&["apiVersion"]));
        Err(format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={name}, \
             apiVersion={version})",
            Shown(user)
        ))
    }

    async fn check_binding(
        &self,
        user: &Arc<User>,
        binding: &Value,
        reference: &Value,
        policies: &str,
    ) -> Result<(), String> {
        let name = binding.str_at(&["spec", "policyName"]);
        let policy = self.objects.live(GROUP, policies, "", name).await.ok().flatten();
        let policy = policy.and_then(|policy| json::parse(&policy.json()).ok());
        let kind = policy.as_ref().and_then(|policy| policy.at(&["spec", "paramKind"])).cloned();
        let needed = kind.as_ref().map_or(Needed::default(), |kind| self.resolve(kind));
        let verb = if reference.str_at(&["name"]).is_empty() { "list" } else { "get" };
        let attributes = Attributes {
            verb: verb.into(),
            name: Str::from(reference.str_at(&["name"])),
            namespace: Str::from(reference.str_at(&["namespace"])),
            ..needed.of(user)
        };
        if self.authorizer.authorize(&attributes).await.allowed() {
            return Ok(());
        }
        let user = Shown(user);
        let lacks = format!(
            "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, \
             versions and resources"
        );
        let shown_kind = || {
            let kind = kind.as_ref().unwrap_or(&Value::Null);
            format!("&{{{} {}}}", kind.str_at(&["apiVersion"]), kind.str_at(&["kind"]))
        };
        Err(match (policy, needed.known) {
            (None, _) => format!("unable to get policy {name} {lacks}"),
            (_, Known::Nothing) if kind.is_some() => format!("unable to parse paramKind {} {lacks}", shown_kind()),
            (_, Known::Version) => format!("unable to resolve paramKind {} {lacks}", shown_kind()),
            // The reference puts the two the wrong way round.
            _ if policies == "mutatingadmissionpolicies" => {
                format!("user {verb} does not have \"{user}\" permission on the object referenced by paramRef")
            }
            _ => format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef"),
        })
    }

    /// The resource of a kind, as far as it is known.
    fn resolve(&self, kind: &Value) -> Needed {
        let Some(version) = GroupVersion::parse(kind.str_at(&["apiVersion"])) else { return Needed::default() };
        let resource = self.plural_of(&version, kind.str_at(&["kind"]));
        Needed {
            known: if resource.is_some() { Known::Resource } else { Known::Version },
            resource: resource.unwrap_or_else(|| "*".into()),
            group: version.group,
            version: version.version,
        }
    }

    fn plural_of(&self, version: &GroupVersion, kind: &str) -> Option<Str> {
        let served = builtin().descriptor_of_kind(&version.group, kind).filter(|descriptor| {
            let resource = self.objects.resource(&descriptor.group, &descriptor.plural);
            resource.is_some_and(|resource| resource.served.contains(&version.version))
        });
        if let Some(descriptor) = served {
            return Some(descriptor.plural.clone());
        }
        let definitions = self.objects.list("apiextensions.k8s.io", "customresourcedefinitions", "");
        let is_it = |definition: &&Value| {
            let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
            let is_served = |v: &Value| v.get("served").and_then(Value::as_bool) == Some(true);
            definition.str_at(&["spec", "group"]) == version.group
                && definition.str_at(&["status", "acceptedNames", "kind"]) == kind
                && versions.iter().any(|v| v.str_at(&["name"]) == version.version && is_served(v))
        };
        definitions.iter().find(is_it).map(|d| Str::from(d.str_at(&["status", "acceptedNames", "plural"])))
    }
}

/// How much of a kind is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Version,
    Resource,
}

/// What must be readable: everything, where it is not known.
#[derive(Debug, Clone)]
struct Needed {
    known: Known,
    group: Str,
    version: Str,
    resource: Str,
}

impl Default for Needed {
    fn default() -> Needed {
        Needed { known: Known::Nothing, group: "*".into(), version: "*".into(), resource: "*".into() }
    }
}

impl Needed {
    fn of(&self, user: &Arc<User>) -> Attributes {
        Attributes {
            user: user.clone(),
            group: self.group.clone(),
            version: self.version.clone(),
            resource: self.resource.clone(),
            resource_request: true,
            ..Attributes::default()
        }
    }
}

/// A user as Go prints one.
struct Shown<'a>(&'a User);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let User { name, uid, groups, extra } = self.0;
        let extra: Vec<String> = extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
        write!(f, "&{{{name} {uid} [{}] map[{}]}}", groups.join(" "), extra.join(" "))
    }
}

impl Admission for ParamCheck {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        self.inner.admit(request, object)
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let is_write = matches!(request.operation, Operation::Create | Operation::Update);
            if is_write
                && request.call.subresource.is_empty()
                && let Some(asked) = self.asked(&request, object)
                && let Err(why) = self.check(&request.call.user, object, asked).await
            {
                let key = if self.subject == Subject::Policy { "paramKind" } else { "paramRef" };
                let errors = ErrorList::from(Error::forbidden(&Path::of(&["spec", key]), why));
                return Err(Status::invalid(&request.call.group_kind(), object.meta().name(), &errors));
            }
            self.inner.validate(request, object).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_as_go_prints_them() {
        let mut user = User::named("alice").with_groups(&["devs", "system:authenticated"]);
        assert_eq!(Shown(&user).to_string(), "&{alice  [devs system:authenticated] map[]}");
        user.uid = "u".into();
        user.extra.insert("k".into(), vec!["v".into(), "w".into()]);
        assert_eq!(Shown(&user).to_string(), "&{alice u [devs system:authenticated] map[k:[v w]]}");
    }
}
