//! What services, claims of volumes and claims of devices count for.

use super::pods::{self, DEVICE_CLASS, Gates, one};
use super::quota::Scope;
use crate::plugins::amounts::{Amounts, add, amounts};
use crate::plugins::{list, storage_class};
use kubelith_meta::quantity::{Format, Quantity};
use kubelith_meta::time::Time;
use kubelith_meta::{Str, Value};
use kubelith_registry::objects::{Collection, parse};
use std::collections::BTreeSet;

pub const SERVICES: [&str; 4] = ["count/services", "services", "services.nodeports", "services.loadbalancers"];

fn number(n: usize) -> Quantity {
    Quantity::new(i64::try_from(n).unwrap_or(i64::MAX), Format::DecimalSi)
}

pub fn of_service(service: &Value) -> Amounts {
    let ports = list(service, &["spec", "ports"]);
    let (node_ports, balancers) = match service.str_at(&["spec", "type"]) {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" => {
            // Ports are not taken yet: what counts is what the service means to take.
            let allocates = service.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool);
            let fixed = |port: &&Value| port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() != 0;
            let taken = if allocates == Some(false) { ports.iter().filter(fixed).count() } else { ports.len() };
            (taken, 1)
        }
        _ => (0, 0),
    };
    let all = SERVICES.into_iter().zip([1, 1, node_ports, balancers]);
    all.map(|(name, n)| (Str::from(name), number(n))).collect()
}

pub const CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
pub const CLAIM_COUNT: &str = "count/persistentvolumeclaims";
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

pub fn counts_claims(resource: &str) -> bool {
    let by_class = |name: &&str| resource.strip_suffix(*name).is_some_and(|rest| rest.ends_with(STORAGE_CLASS));
    resource == CLAIM_COUNT || CLAIMS.contains(&resource) || CLAIMS.iter().any(by_class)
}

pub fn of_claim(claim: &Value) -> Amounts {
    let mut total = Amounts::from([(CLAIMS[0].into(), one()), (CLAIM_COUNT.into(), one())]);
    let class = storage_class(claim);
    let mut charge = |name: &str, amount: &Quantity| {
        total.insert(name.into(), amount.clone());
        if !class.is_empty() {
            total.insert(format!("{class}{STORAGE_CLASS}{name}").into(), amount.clone());
        }
    };
    charge(CLAIMS[0], &one());
    if let Some(storage) = storage_of(claim) {
        charge(CLAIMS[1], &storage);
    }
    total
}

/// Whole bytes: of what is asked for and what is being given, the larger.
fn storage_of(claim: &Value) -> Option<Quantity> {
    let read = |list: Option<&Value>| Quantity::from_value(list?.get("storage")?).ok();
    let mut wanted = read(claim.at(&["spec", "resources", "requests"]))?;
    wanted.round_up(0);
    if let Some(mut given) = read(claim.at(&["status", "allocatedResources"])).filter(|given| *given > wanted) {
        given.round_up(0);
        wanted = given;
    }
    Some(wanted)
}

/// Whether a change of status may change what the claim counts for.
pub fn status_counts(old: &Value, new: &Value) -> bool {
    let storage = |claim: &Value| amounts(claim.at(&["status", "allocatedResources"])).remove("storage");
    storage(old) != storage(new) || attribute_classes(old) != attribute_classes(new)
}

pub fn claim_in_scope(claim: &Value, scope: &Scope) -> Result<bool, String> {
    if scope.name != "VolumeAttributesClass" {
        return Ok(false);
    }
    let classes: Vec<&str> = attribute_classes(claim).into_iter().collect();
    scope.selects(&classes)
}

/// The classes that the claim has, wants, or is on its way to.
fn attribute_classes(claim: &Value) -> BTreeSet<&str> {
    let named: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    named.into_iter().map(|path| claim.str_at(path)).filter(|name| !name.is_empty()).collect()
}

pub const DEVICE_COUNT: &str = "count/resourceclaims.resource.k8s.io";
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";
/// As many as one request for all devices may get.
const MOST_DEVICES: i64 = 32;
const EXTENDED_CLAIM: &str = "resource.kubernetes.io/extended-resource-claim";

/// Claims of devices: their classes may have names as extended resources, and pods may have asked for them by those.
pub struct Devices {
    pub classes: Collection,
    pub claims: Collection,
    pub pods: Collection,
    /// Whether extended resources may be served by devices.
    pub extended: bool,
    pub gates: Gates,
}

impl Devices {
    pub fn counts(&self, resource: &str) -> bool {
        if resource == DEVICE_COUNT || resource.ends_with(DEVICES) {
            return true;
        }
        if !self.extended || !pods::is_extended_in_quota(resource) {
            return false;
        }
        let name = resource.strip_prefix("requests.").unwrap_or_default();
        match name.strip_prefix(DEVICE_CLASS) {
            Some(class) => self.classes.cached("", class).is_some(),
            None => self.classes.list("").iter().any(|class| extended_name(class) == name),
        }
    }

    pub fn of(&self, claim: &Value, now: Time) -> Amounts {
        let mut total = Amounts::from([(DEVICE_COUNT.into(), one())]);
        for request in list(claim, &["spec", "devices", "requests"]) {
            let choices = list(request, &["firstAvailable"]);
            let mut worst = Amounts::new();
            for choice in choices {
                charge_class(&mut worst, choice);
            }
            if let Some(exactly) = request.get("exactly").filter(|e| choices.is_empty() && !e.is_null()) {
                charge_class(&mut worst, exactly);
            }
            add(&mut total, &worst);
        }
        if self.extended {
            self.add_extended(&mut total, claim, now);
        }
        total
    }

    /// Devices count under the extended names of their classes, too, unless the pod that the claim was made for has
    /// been charged for them.
    fn add_extended(&self, total: &mut Amounts, claim: &Value, now: Time) {
        let mut extended = Amounts::new();
        for (name, amount) in total.iter() {
            let Some(class) = name.strip_suffix(DEVICES).filter(|class| !class.is_empty()) else { continue };
            extended.insert(format!("requests.{DEVICE_CLASS}{class}").into(), amount.clone());
            let known = self.classes.cached("", class).and_then(|class| parse(&class));
            let other = known.as_ref().map(extended_name).unwrap_or_default();
            if !other.is_empty() {
                extended.insert(format!("requests.{other}").into(), amount.clone());
            }
        }
        if extended.is_empty() {
            return;
        }
        let charged = self.charged_pod(claim).map(|pod| pods::usage(&pod, self.gates, now)).unwrap_or_default();
        for (name, mut amount) in extended {
            if let Some(already) = charged.get(&name) {
                amount -= already;
            }
            if amount.signum() > 0 {
                total.insert(name, amount);
            }
        }
    }

    /// The pod whose extended resources the claim stands for.
    fn charged_pod(&self, claim: &Value) -> Option<Value> {
        let meta = claim.meta();
        let owner = owning_pod(claim)?;
        let pod = parse(&*self.pods.cached(meta.namespace(), owner.0)?)?;
        if pod.meta().uid() != owner.1 {
            return None;
        }
        match pod.at(&["status", "extendedResourceClaimStatus"]).filter(|status| !status.is_null()) {
            Some(status) => (status.str_at(&["resourceClaimName"]) == meta.name()).then_some(pod),
            None => {
                // The first claim that was made for the pod is the one.
                let others = self.claims.list(meta.namespace());
                let age = |claim: &Value| (claim.meta().creation_timestamp(), claim.meta().name().to_owned());
                let earlier = |other: &Value| owning_pod(other) == Some(owner) && age(other) < age(claim);
                (!others.iter().any(earlier)).then_some(pod)
            }
        }
    }
}

/// Name and uid of the pod that a claim for extended resources belongs to.
fn owning_pod(claim: &Value) -> Option<(&str, &str)> {
    if claim.meta().annotation(EXTENDED_CLAIM) != Some("true") {
        return None;
    }
    let owner = claim.meta().controller().filter(|owner| owner.kind() == "Pod" && owner.api_version() == "v1")?;
    Some((owner.name(), owner.uid()))
}

fn extended_name(class: &Value) -> &str {
    class.str_at(&["spec", "extendedResourceName"])
}

/// The most that one choice of a request may take of a class.
fn charge_class(worst: &mut Amounts, request: &Value) {
    let devices = match request.str_at(&["allocationMode"]) {
        "ExactCount" => request.get("count").and_then(Value::as_i64).unwrap_or_default(),
        "All" => MOST_DEVICES,
        // A mode of a later release.
        _ => 0,
    };
    let name = format!("{}{DEVICES}", request.str_at(&["deviceClassName"]));
    let held = worst.entry(name.into()).or_default();
    *held = Quantity::new(devices, Format::DecimalSi).max(held.clone());
}
