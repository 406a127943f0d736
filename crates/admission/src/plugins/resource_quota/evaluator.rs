//! How the objects of a resource are counted.

use super::others::{self, Devices};
use super::pods::{self, Gates};
use super::quota::{Quota, Scope};
use crate::plugins::amounts::Amounts;
use kubelith_meta::time::{Clock, Time};
use kubelith_meta::{GroupResource, Str, Value};
use kubelith_registry::admission::{Operation, Request};
use kubelith_rules::Features;
use std::sync::Arc;

/// Not stored, or never counted.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("", "events"),
    ("events.k8s.io", "events"),
];

/// Resources that are counted under a second, older name, which is their plural.
const ALIASED: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

/// What kind of counting a resource needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    Pods,
    Services,
    Claims,
    Devices,
    /// The objects only, under these names.
    Count(Vec<Str>),
}

impl Measure {
    /// `None` if quotas never apply.
    pub fn of(resource: &GroupResource, devices: bool) -> Option<Measure> {
        let (group, plural) = (resource.group.as_str(), resource.resource.as_str());
        if IGNORED.contains(&(group, plural)) {
            return None;
        }
        Some(match (group, plural) {
            ("", "pods") => Measure::Pods,
            ("", "services") => Measure::Services,
            ("", "persistentvolumeclaims") => Measure::Claims,
            ("resource.k8s.io", "resourceclaims") if devices => Measure::Devices,
            ("", plural) => {
                let alias = ALIASED.contains(&plural).then(|| plural.into());
                Measure::Count([format!("count/{plural}").into()].into_iter().chain(alias).collect())
            }
            (group, plural) => Measure::Count(vec![format!("count/{plural}.{group}").into()]),
        })
    }

    /// Whether the request can change what is counted.
    pub fn handles(&self, request: Request<'_>, object: &Value) -> bool {
        let (create, update) = (request.operation == Operation::Create, request.operation == Operation::Update);
        match (self, request.call.subresource.as_str()) {
            (Measure::Pods, "") if update => {
                request.old.is_some_and(|old| pods::is_terminating(old) != pods::is_terminating(object))
            }
            (Measure::Pods, "resize") => update,
            (Measure::Services | Measure::Claims | Measure::Devices, "") => create || update,
            (Measure::Claims, "status") => request.old.is_some_and(|old| others::status_counts(old, object)),
            (_, "") => create,
            _ => false,
        }
    }
}

/// Tells what objects count for.
pub struct Evaluators {
    pub gates: Gates,
    pub features: Features,
    pub devices: Devices,
    pub clock: Arc<dyn Clock>,
}

impl Evaluators {
    /// Those of the names that objects are counted under.
    pub fn matching<'a>(&self, measure: &Measure, names: impl Iterator<Item = &'a Str>) -> Vec<Str> {
        let counted = |name: &&Str| match measure {
            Measure::Pods => pods::counts(name),
            Measure::Services => others::SERVICES.contains(&name.as_str()),
            Measure::Claims => others::counts_claims(name),
            Measure::Devices => self.devices.counts(name),
            Measure::Count(own) => own.contains(name),
        };
        names.filter(counted).cloned().collect()
    }

    pub fn usage(&self, measure: &Measure, object: &Value) -> Amounts {
        match measure {
            Measure::Pods => pods::usage(object, self.gates, self.now()),
            Measure::Services => others::of_service(object),
            Measure::Claims => others::of_claim(object),
            Measure::Devices => self.devices.of(object, self.now()),
            Measure::Count(names) => names.iter().map(|name| (name.clone(), pods::one())).collect(),
        }
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    pub fn in_scope(&self, measure: &Measure, object: &Value, scope: &Scope) -> Result<bool, String> {
        match measure {
            Measure::Pods => pods::in_scope(object, scope, &self.features),
            Measure::Claims => others::claim_in_scope(object, scope),
            _ => Ok(false),
        }
    }

    /// Those of the scopes that the object is in.
    pub fn scopes(&self, measure: &Measure, object: &Value, scopes: &[Scope]) -> Result<Vec<Scope>, String> {
        let mut found = Vec::new();
        for scope in scopes {
            let inside = self.in_scope(measure, object, scope);
            if inside.map_err(|why| format!("error on matching scope {scope}: {why}"))? {
                found.push(scope.clone());
            }
        }
        Ok(found)
    }

    /// Whether the quota is for the object.
    pub fn applies(&self, measure: &Measure, quota: &Quota, object: &Value) -> Result<bool, String> {
        let mut inside = true;
        for scope in &quota.scopes {
            inside &= self.in_scope(measure, object, scope)?;
        }
        Ok(inside && !self.matching(measure, quota.hard.keys()).is_empty())
    }

    /// What keeps the object from being counted under these names.
    pub fn constraints(&self, measure: &Measure, object: &Value, restricted: &[Str]) -> Result<(), String> {
        match measure {
            Measure::Pods => pods::lacks(object, restricted, self.gates),
            _ => Ok(()),
        }
    }
}
