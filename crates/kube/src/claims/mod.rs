//! Who writes the status of a claim on devices needs more than the right to do that: to allocate devices, or to reserve them
//! for somebody, the right to bind claims; to speak for a device, the right to speak for its driver, on its node or anywhere.

mod admin;

use kubelith_auth::forbidden::forbidden_status;
use kubelith_auth::service_account::authenticate::EXTRA_NODE_NAME;
use kubelith_auth::{Attributes, Authorizer};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{NameUse, name_is_dns_subdomain};
use kubelith_meta::user::User;
use kubelith_meta::{Str, Value};
use kubelith_registry::{Call, Objects};
use std::collections::BTreeSet;
use std::sync::Arc;

const GATE: &str = "DRAResourceClaimGranularStatusAuthorization";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Whom claims on devices ask.
pub struct Claims {
    /// Where their namespaces are.
    objects: Arc<Objects>,
    /// Who knows the rights of those who write their status, if more than one is needed for it.
    authorizer: Option<Arc<dyn Authorizer>>,
}

impl Claims {
    pub fn new(objects: &Arc<Objects>, authorizer: &Arc<dyn Authorizer>, gates: &dyn Fn(&str) -> bool) -> Claims {
        Claims { objects: objects.clone(), authorizer: gates(GATE).then(|| authorizer.clone()) }
    }

    /// What stands against the access that a new claim or template asks for.
    pub fn check_requested(&self, object: &Value) -> ErrorList {
        admin::check_requested(&self.objects, object)
    }

    /// What stands against who writes this status, whatever is wrong with it otherwise.
    pub async fn check_status(&self, call: &Call, claim: &Value, old: &Value) -> ErrorList {
        let mut errors = admin::check_given(&self.objects, claim, old);
        if let Some(authorizer) = &self.authorizer {
            errors.extend(Rights { authorizer, call }.check(claim, old).await);
        }
        errors
    }
}

/// The rights of who sends a request.
struct Rights<'a> {
    authorizer: &'a Arc<dyn Authorizer>,
    call: &'a Call,
}

impl Rights<'_> {
    async fn check(&self, claim: &Value, old: &Value) -> ErrorList {
        let mut errors = ErrorList::default();
        let status = Path::new("status");
        let changes = |key: &str| !is_same(claim.at(&["status", key]), old.at(&["status", key]));
        if changes("allocation") || changes("reservedFor") {
            let verb = &self.call.verb;
            let attributes = self.attributes("binding", verb.clone(), Str::default(), Str::default());
            if let Err(why) = self.ask(&attributes).await {
                let why = format!(
                    "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
                     verb=\"{verb}\" permission: {why}"
                );
                errors.push(Error::forbidden(&status.child("allocation"), why));
            }
        }
        if claim.at(&["status", "allocation"]).is_some_and(|allocation| !allocation.is_null()) {
            let verbs = verbs(self.call, claim);
            for driver in changed_drivers(claim, old) {
                if let Err(why) = self.ask_for_driver(&verbs, driver).await {
                    let verbs = verbs.join(" ");
                    let why = format!(
                        "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{verbs}]\" \
                         permission: {why}"
                    );
                    errors.push(Error::forbidden(&status.child("devices"), why));
                }
            }
        }
        errors
    }

    /// One of the verbs is enough; the first says why it is not there.
    async fn ask_for_driver(&self, verbs: &[Str], driver: &str) -> Result<(), String> {
        let mut first = None;
        for verb in verbs {
            let namespace = self.call.namespace.clone();
            match self.ask(&self.attributes("driver", verb.clone(), namespace, driver.into())).await {
                Ok(()) => return Ok(()),
                Err(why) => drop(first.get_or_insert(why)),
            }
        }
        Err(first.unwrap_or_default())
    }

    async fn ask(&self, attributes: &Attributes) -> Result<(), String> {
        let decision = self.authorizer.authorize(attributes).await;
        if decision.allowed() {
            return Ok(());
        }
        let why = match (&decision.error, &*decision.reason) {
            (Some(error), "") => error.to_string(),
            (Some(error), reason) => format!("{error}: {reason}"),
            (None, reason) => reason.to_owned(),
        };
        Err(forbidden_status(attributes, &why).message)
    }

    /// What the request is, but for a part of claims that nobody stores.
    fn attributes(&self, part: &str, verb: Str, namespace: Str, name: Str) -> Attributes {
        let call = self.call;
        Attributes {
            user: call.user.clone(),
            verb,
            namespace,
            group: call.resource.group.clone(),
            version: call.version.clone(),
            resource: call.resource.resource.clone(),
            subresource: part.into(),
            name,
            resource_request: true,
            ..Attributes::default()
        }
    }
}

/// What a driver may do on the node that it runs on, where that is known, or anywhere.
fn verbs(call: &Call, claim: &Value) -> Vec<Str> {
    let verb = &call.verb;
    let anywhere = Str::from(format!("arbitrary-node:{verb}"));
    match is_on_node(&call.user, node_of(claim)) {
        true => vec![Str::from(format!("associated-node:{verb}")), anywhere],
        false => vec![anywhere],
    }
}

/// The one node that the allocation is for.
fn node_of(claim: &Value) -> Option<&str> {
    let terms = claim.at(&["status", "allocation", "nodeSelector", "nodeSelectorTerms"])?.as_array()?;
    let [term] = terms else { return None };
    let list = |key: &str| term.get(key).and_then(Value::as_array).unwrap_or(&[]);
    let ([], [field]) = (list("matchExpressions"), list("matchFields")) else { return None };
    let [value] = field.get("values").and_then(Value::as_array).unwrap_or(&[]) else { return None };
    let is_by_name = field.str_at(&["key"]) == "metadata.name" && field.str_at(&["operator"]) == "In";
    value.as_str().filter(|name| is_by_name && !name.is_empty())
}

fn is_on_node(user: &User, node: Option<&str>) -> bool {
    let is_account = user.name.strip_prefix(SERVICE_ACCOUNT).is_some_and(|rest| rest.split(':').count() == 2);
    let own = user.extra.iter().find(|(key, _)| key.as_str() == EXTRA_NODE_NAME).map_or(&[][..], |(_, names)| names);
    match (own, node) {
        ([own], Some(node)) => {
            is_account && own.as_str() == node && name_is_dns_subdomain(own, NameUse::Full).is_empty()
        }
        _ => false,
    }
}

/// Drivers whose devices are new, gone, or told of otherwise.
fn changed_drivers<'a>(claim: &'a Value, old: &'a Value) -> BTreeSet<&'a str> {
    fn devices(claim: &Value) -> &[Value] {
        claim.at(&["status", "devices"]).and_then(Value::as_array).unwrap_or(&[])
    }
    let key = |device: &'a Value| ["driver", "pool", "device", "shareID"].map(|part| device.str_at(&[part]));
    let differs = |device: &&'a Value, others: &'a [Value]| {
        !others.iter().any(|other| key(other) == key(device) && other == *device)
    };
    let (new, old) = (devices(claim), devices(old));
    let changed = new.iter().filter(|device| differs(device, old));
    let gone = old.iter().filter(|device| differs(device, new));
    changed.chain(gone).map(|device| device.str_at(&["driver"])).collect()
}

/// What is empty is as good as absent.
fn is_same(one: Option<&Value>, other: Option<&Value>) -> bool {
    let some = |value: &&Value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
    one.filter(some) == other.filter(some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        kubelith_codec::json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn drivers_whose_devices_changed() {
        let claim = |devices: &str| value(&format!(r#"{{"status":{{"devices":[{devices}]}}}}"#));
        let a = r#"{"driver":"a","pool":"p","device":"d"}"#;
        let told = r#"{"driver":"a","pool":"p","device":"d","data":{"x":1}}"#;
        let b = r#"{"driver":"b","pool":"p","device":"d"}"#;
        for (new, old, want) in [
            (a, a, &[][..]),
            (a, "", &["a"]),
            ("", a, &["a"]),
            (told, a, &["a"]),
            (&format!("{b},{told}"), a, &["a", "b"]),
            (&format!("{b},{a}"), &format!("{a},{b}"), &[]),
        ] {
            let changed: Vec<&str> =
                Vec::from_iter(changed_drivers(&claim(new), &claim(old)).into_iter().map(|d| match d {
                    "a" => "a",
                    "b" => "b",
                    _ => "?",
                }));
            assert_eq!(changed, want, "{new} {old}");
        }
    }

    #[test]
    fn drivers_are_on_their_node() {
        let on = |node: &str| {
            value(&format!(
                r#"{{"status":{{"allocation":{{"nodeSelector":{{"nodeSelectorTerms":[{{"matchFields":[{{"key":"metadata.name","operator":"In","values":["{node}"]}}]}}]}}}}}}}}"#
            ))
        };
        let mut user = User::named("system:serviceaccount:ns:driver");
        assert!(!is_on_node(&user, node_of(&on("n1"))), "it has no node");
        user.extra.insert(EXTRA_NODE_NAME.into(), vec!["n1".into()]);
        assert!(is_on_node(&user, node_of(&on("n1"))));
        assert!(!is_on_node(&user, node_of(&on("n2"))));
        assert!(!is_on_node(&user, node_of(&value("{}"))));
        user.name = "alice".into();
        assert!(!is_on_node(&user, node_of(&on("n1"))), "only service accounts are on nodes");
    }
}
