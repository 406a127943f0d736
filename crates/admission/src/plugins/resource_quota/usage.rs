//! What a namespace uses, counted anew from all that is in it: for the controller that keeps the status of quotas.

use super::evaluator::{Evaluators, Measure};
use super::evaluators;
use super::quota::Quota;
use crate::plugins::amounts::{Amounts, add, amounts};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::time::Clock;
use kubelith_meta::{GroupResource, Map, Str, Value};
use kubelith_registry::Objects;
use std::sync::Arc;

pub struct QuotaUsage {
    evaluators: Evaluators,
    devices: bool,
}

impl QuotaUsage {
    pub fn new(objects: &Arc<Objects>, clock: Arc<dyn Clock>, gates: &dyn Fn(&str) -> bool) -> QuotaUsage {
        let (evaluators, devices) = evaluators(objects, clock, gates);
        QuotaUsage { evaluators, devices }
    }

    /// The names of a quota under which objects of the resource are counted.
    fn names(&self, resource: &GroupResource, hard: &Amounts) -> Option<(Measure, Vec<Str>)> {
        let measure = Measure::of(resource, self.devices)?;
        let names = self.evaluators.matching(&measure, hard.keys());
        (!names.is_empty()).then_some((measure, names))
    }

    /// Whether a quota counts objects of the resource.
    pub fn concerns(&self, resource: &GroupResource, quota: &Value) -> bool {
        self.names(resource, &amounts(quota.at(&["spec", "hard"]))).is_some()
    }

    /// What objects of one resource add to a quota's use.
    pub fn count<'a>(
        &self,
        resource: &GroupResource,
        quota: &Value,
        objects: impl Iterator<Item = &'a Value>,
    ) -> Result<Amounts, String> {
        let hard = amounts(quota.at(&["spec", "hard"]));
        let Some((measure, names)) = self.names(resource, &hard) else { return Ok(Amounts::new()) };
        let scopes = Quota::of(quota.clone()).scopes;
        let mut total: Amounts = names.iter().map(|name| (name.clone(), Quantity::default())).collect();
        for object in objects {
            let mut inside = true;
            for scope in &scopes {
                inside &= self.evaluators.in_scope(&measure, object, scope)?;
            }
            if inside {
                let mut usage = self.evaluators.usage(&measure, object);
                usage.retain(|name, _| names.contains(name));
                add(&mut total, &usage);
            }
        }
        Ok(total)
    }

    /// The quota with this use in its status; `None` if its status says so already.
    pub fn with_status(&self, quota: &Value, counted: &Amounts) -> Option<Value> {
        let hard = amounts(quota.at(&["spec", "hard"]));
        let (said, told) = (amounts(quota.at(&["status", "hard"])), amounts(quota.at(&["status", "used"])));
        let mut used = told.clone();
        used.extend(counted.iter().map(|(name, amount)| (name.clone(), amount.clone())));
        used.retain(|name, _| hard.contains_key(name));
        let missing = ["hard", "used"].iter().any(|part| quota.at(&["status", part]).is_none_or(Value::is_null));
        if !missing && said == hard && told == used {
            return None;
        }
        let mut object = quota.clone();
        let as_value = |amounts: &Amounts| {
            let mut map = Map::new();
            for (name, amount) in amounts {
                map.insert(name.as_str(), Value::from(amount.canonical()));
            }
            Value::Object(map)
        };
        object.set_at(&["status", "hard"], as_value(&hard));
        object.set_at(&["status", "used"], as_value(&used));
        Some(object)
    }
}
