//! Whether what is asked for fits into the quotas, and what they hold after it.

use super::config::Limited;
use super::evaluator::{Evaluators, Measure};
use super::quota::{Quota, Scope};
use crate::plugins::amounts::{Amounts, add};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::Call;
use kubelith_registry::admission::{Operation, Request};
use std::collections::BTreeSet;

/// What a request asks for. It outlives the request, so that several can be decided at once.
pub struct Demand {
    pub call: Call,
    pub operation: Operation,
    pub measure: Measure,
    pub object: Value,
    pub old: Option<Value>,
}

impl Demand {
    fn forbidden(&self, why: impl std::fmt::Display) -> Status {
        let request = Request::new(&self.call, self.operation);
        request.forbidden(&self.object, why)
    }
}

/// The use of a quota after a request: its place in the list, and the amounts.
pub type Charges = Vec<(usize, Amounts)>;

/// Quotas that the object falls under, with what they count of it.
struct Covering {
    places: Vec<usize>,
    resources: BTreeSet<Str>,
    scopes: Vec<Scope>,
}

/// `quotas` tell how much is used now; the answer is what changes if the request is let in.
pub fn check(
    evaluators: &Evaluators,
    limited: &[Limited],
    quotas: &[Quota],
    demand: &Demand,
) -> Result<Charges, Status> {
    let Demand { measure, object, .. } = demand;
    let mut limited_scopes = Vec::new();
    for rule in limited {
        match evaluators.scopes(measure, object, &rule.scopes) {
            Ok(scopes) => limited_scopes.extend(scopes),
            // The reference lets it in.
            Err(_) => return Ok(Charges::new()),
        }
    }
    let usage = evaluators.usage(measure, object);
    let covering = covering(evaluators, quotas, demand)?;
    let negative: Vec<&str> = usage.iter().filter(|(_, q)| q.signum() < 0).map(|(name, _)| name.as_str()).collect();
    if !negative.is_empty() {
        let names = negative.join(",");
        return Err(demand.forbidden(format!("quota usage is negative for resource(s): {names}")));
    }
    let Some(deltas) = deltas(evaluators, quotas, demand, &usage, &covering.places)? else {
        return Ok(Charges::new());
    };
    let mut uncovered = limited_names(limited, demand, &usage);
    uncovered.retain(|name| !covering.resources.contains(*name));
    if !uncovered.is_empty() {
        let names: Vec<&str> = uncovered.iter().map(|name| name.as_str()).collect();
        return Err(demand.forbidden(format!("insufficient quota to consume: {}", names.join(","))));
    }
    limited_scopes.retain(|scope| !covering.scopes.iter().any(|covered| covered.name == scope.name));
    if !limited_scopes.is_empty() {
        let scopes: Vec<String> = limited_scopes.iter().map(ToString::to_string).collect();
        return Err(Status::unknown(format!("insufficient quota to match these scopes: [{}]", scopes.join(" "))));
    }
    let charged = deltas.into_iter().map(|(place, delta)| Ok((place, charge(&quotas[place], &delta, demand)?)));
    charged.collect()
}

fn covering(evaluators: &Evaluators, quotas: &[Quota], demand: &Demand) -> Result<Covering, Status> {
    let Demand { measure, object, .. } = demand;
    let mut covering = Covering { places: Vec::new(), resources: BTreeSet::new(), scopes: Vec::new() };
    for (place, quota) in quotas.iter().enumerate() {
        let name = quota.name();
        let scopes = evaluators.scopes(measure, object, &quota.scopes);
        covering.scopes.extend(
            scopes.map_err(|why| Status::unknown(format!("error matching scopes of quota {name}, err: {why}")))?,
        );
        if !evaluators.applies(measure, quota, object).map_err(Status::unknown)? {
            continue;
        }
        let restricted = evaluators.matching(measure, quota.hard.keys());
        if let Err(why) = evaluators.constraints(measure, object, &restricted) {
            return Err(demand.forbidden(format!("failed quota: {name}: {why}")));
        }
        if restricted.iter().any(|resource| !quota.used.contains_key(resource)) {
            let resources = restricted.iter().map(Str::as_str).collect::<Vec<_>>().join(",");
            return Err(demand.forbidden(format!("status unknown for quota: {name}, resources: {resources}")));
        }
        covering.places.push(place);
        covering.resources.extend(restricted);
    }
    Ok(covering)
}

/// What the request adds to each quota that covers it; `None` if it adds nothing at all.
fn deltas(
    evaluators: &Evaluators,
    quotas: &[Quota],
    demand: &Demand,
    usage: &Amounts,
    places: &[usize],
) -> Result<Option<Charges>, Status> {
    // An update of what does not exist is a create: it is charged in full.
    let before = match (demand.operation, &demand.old) {
        (Operation::Update, None) => {
            let why = "unable to get previous usage since prior version of object was not found";
            return Err(demand.forbidden(why));
        }
        (Operation::Update, Some(old)) => Some(old).filter(|old| !old.meta().resource_version().is_empty()),
        _ => None,
    };
    let change = before.map(|old| more_than(usage, &evaluators.usage(&demand.measure, old)));
    if places.is_empty() {
        let change = without_zeros(change.as_ref().unwrap_or(usage));
        return Ok((!change.is_empty()).then(Charges::new));
    }
    let mut deltas = Charges::new();
    for &place in places {
        let mut delta = usage;
        if let (Some(old), Some(change)) = (before, &change) {
            // An object that enters the scope of a quota counts in full.
            if evaluators.applies(&demand.measure, &quotas[place], old).map_err(Status::unknown)? {
                delta = change;
            }
        }
        let delta = without_zeros(delta);
        if !delta.is_empty() {
            deltas.push((place, delta));
        }
    }
    Ok((!deltas.is_empty()).then_some(deltas))
}

/// What `new` is more than `old`, and never less than nothing.
fn more_than(new: &Amounts, old: &Amounts) -> Amounts {
    let difference = |(name, amount): (&Str, &Quantity)| {
        let mut amount = amount.clone();
        if let Some(old) = old.get(name) {
            amount -= old;
        }
        (name.clone(), if amount.signum() > 0 { amount } else { Quantity::default() })
    };
    new.iter().map(difference).collect()
}

fn without_zeros(amounts: &Amounts) -> Amounts {
    amounts
        .iter()
        .filter(|(_, amount)| !amount.is_zero())
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect()
}

/// Names that the request consumes and that must be covered by a quota.
fn limited_names<'a>(limited: &[Limited], demand: &Demand, usage: &'a Amounts) -> BTreeSet<&'a Str> {
    let own = limited.iter().filter(|rule| rule.resource == demand.call.resource);
    let consumed = |rule: &Limited| -> Vec<&'a Str> {
        let named = |name: &str| rule.contains.iter().any(|part| name.contains(part.as_str()));
        usage.iter().filter(|(name, amount)| amount.signum() > 0 && named(name)).map(|(name, _)| name).collect()
    };
    own.flat_map(consumed).collect()
}

/// The use of the quota with the request's, if that is within its limits.
fn charge(quota: &Quota, delta: &Amounts, demand: &Demand) -> Result<Amounts, Status> {
    let requested: Amounts =
        delta.iter().filter(|(name, _)| quota.hard.contains_key(*name)).map(|(n, q)| (n.clone(), q.clone())).collect();
    let mut used = quota.used.clone();
    add(&mut used, &requested);
    if demand.call.subresource != "status" {
        let exceeded: Vec<&Str> = requested.keys().filter(|name| used.get(*name) > quota.hard.get(*name)).collect();
        if !exceeded.is_empty() {
            let shown = |amounts: &Amounts| {
                let texts = exceeded.iter().filter_map(|name| {
                    let amount = amounts.get(*name)?;
                    Some(format!("{name}={}", amount.canonical()))
                });
                texts.collect::<Vec<_>>().join(",")
            };
            return Err(demand.forbidden(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                quota.name(),
                shown(&requested),
                shown(&quota.used),
                shown(&quota.hard)
            )));
        }
    }
    Ok(used)
}
