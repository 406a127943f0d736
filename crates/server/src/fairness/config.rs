//! The configuration in force, made whole from all stored objects whenever one of them changes, and the
//! division of the server's seats among its levels.

use super::level::{Level, LevelState};
use super::metrics::{FlowMetrics, SchemaMetrics};
use super::{Fairness, Objects};
use http::HeaderValue;
use kubelith_fairness::borrowing::{self, Member};
use kubelith_fairness::limits::Limits;
use kubelith_fairness::matching;
use kubelith_fairness::spec::{CATCH_ALL, Discipline, EXEMPT};
use kubelith_fairness::{Digest, FlowSchema, PriorityLevel};
use kubelith_meta::Str;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

#[derive(Default)]
pub struct Config {
    /// In the order in which they are tried.
    schemas: Vec<Arc<Schema>>,
    /// For requests that none matches.
    catch_all: Option<Arc<Schema>>,
    pub levels: BTreeMap<Str, Entry>,
    pub fair_fraction: f64,
}

#[derive(Clone)]
pub struct Entry {
    pub level: Arc<Level>,
    pub spec: PriorityLevel,
    pub limits: Limits,
}

/// A flow schema with what its requests need.
pub struct Schema {
    pub spec: FlowSchema,
    pub level: Arc<Level>,
    discipline: Discipline,
    /// Who is told of the schema and the level is told of their ids: names may say too much.
    pub uid: HeaderValue,
    pub level_uid: HeaderValue,
    all_metrics: Arc<FlowMetrics>,
    metrics: OnceLock<SchemaMetrics>,
}

impl Schema {
    /// Whether its flows are told apart.
    pub fn has_flows(&self) -> bool {
        matches!(self.discipline, Discipline::Queue(queuing) if queuing.queues > 1)
    }

    pub fn has_queues(&self) -> bool {
        matches!(self.discipline, Discipline::Queue(_))
    }

    pub fn is_exempt(&self) -> bool {
        self.discipline == Discipline::Exempt
    }

    /// Schemas that nobody uses have no series.
    pub fn metrics(&self) -> &SchemaMetrics {
        self.metrics.get_or_init(|| self.all_metrics.of(&self.level.name, &self.spec.name))
    }
}

impl Config {
    pub fn classify(&self, request: &Digest<'_>) -> &Arc<Schema> {
        let matching = self.schemas.iter().find(|schema| schema.spec.matches(request));
        matching.or(self.catch_all.as_ref()).expect("there is always a catch-all schema")
    }
}

impl Fairness {
    /// Takes over all objects there are. A level that has none any more stays until its requests are done.
    pub fn configure(&self, Objects { mut levels, mut schemas }: Objects) {
        let _changing = self.changing.lock().unwrap_or_else(|e| e.into_inner());
        let old = self.config.load_full();
        schemas.retain(|schema| levels.iter().any(|level| level.name == schema.level));
        for mandatory in [PriorityLevel::mandatory_exempt(), PriorityLevel::mandatory_catch_all()] {
            if !levels.iter().any(|level| level.name == mandatory.name) {
                levels.push(mandatory);
            }
        }
        let lingering = old.levels.values().filter(|entry| {
            let is_wanted = levels.iter().any(|level| level.name == entry.spec.name);
            !is_wanted && !entry.level.lock().queues.is_idle()
        });
        let lingering: Vec<PriorityLevel> = lingering.map(|entry| entry.spec.clone()).collect();
        let wanted = levels.len();
        levels.extend(lingering);
        let entries = self.entries(&old, levels, wanted);
        let schemas = complete(schemas).into_iter().filter_map(|spec| self.schema(spec, &entries)).collect::<Vec<_>>();
        let catch_all = schemas.iter().find(|schema| schema.spec.name == CATCH_ALL).cloned();
        let capacity = |entry: &Entry| match entry.spec.discipline {
            Discipline::Queue(queuing) => f64::from(queuing.queues) * f64::from(queuing.length_limit),
            _ => 0.0,
        };
        let seats = entries.values().map(|entry| f64::from(entry.limits.nominal)).sum();
        self.in_flight.set_limits(entries.values().map(capacity).sum(), seats);
        let fair_fraction = self.adjust(&entries);
        self.config.store(Arc::new(Config { schemas, catch_all, levels: entries, fair_fraction }));
    }

    /// Lends seats anew, after what levels needed since the last time.
    pub fn adjust_limits(&self) {
        self.reading.asked();
        let _changing = self.changing.lock().unwrap_or_else(|e| e.into_inner());
        let config = self.config.load_full();
        let fair_fraction = self.adjust(&config.levels);
        self.config.store(Arc::new(Config {
            schemas: config.schemas.clone(),
            catch_all: config.catch_all.clone(),
            levels: config.levels.clone(),
            fair_fraction,
        }));
    }

    /// The levels with their limits; those after the first `wanted` are on their way out.
    fn entries(&self, old: &Config, levels: Vec<PriorityLevel>, wanted: usize) -> BTreeMap<Str, Entry> {
        let shares: f64 = levels.iter().map(|level| f64::from(level.shares)).sum();
        let entry = |(place, spec): (usize, PriorityLevel)| {
            let limits = Limits::of(&spec, self.concurrency, shares);
            let level = old.levels.get(&spec.name).map_or_else(
                || {
                    let (name, idle) = (spec.name.clone(), self.idle.clone());
                    Arc::new(Level::new(name, self.clock, spec.discipline, limits.initial(), idle))
                },
                |entry| entry.level.clone(),
            );
            level.max_request_seats.store(limits.max_request_seats(spec.discipline), Ordering::Relaxed);
            level.quiescing.store(place >= wanted, Ordering::Relaxed);
            (spec.name.clone(), Entry { level, spec, limits })
        };
        levels.into_iter().enumerate().map(entry).collect()
    }

    fn schema(&self, spec: FlowSchema, entries: &BTreeMap<Str, Entry>) -> Option<Arc<Schema>> {
        let entry = entries.get(&spec.level)?;
        let header = |uid: &str| HeaderValue::from_str(uid).unwrap_or(HeaderValue::from_static(""));
        Some(Arc::new(Schema {
            uid: header(&spec.uid),
            level_uid: header(&entry.spec.uid),
            spec,
            level: entry.level.clone(),
            discipline: entry.spec.discipline,
            all_metrics: self.metrics.clone(),
            metrics: OnceLock::new(),
        }))
    }

    fn adjust(&self, entries: &BTreeMap<Str, Entry>) -> f64 {
        let members: Vec<Member> = entries
            .values()
            .map(|entry| {
                entry.level.with(|state, now| {
                    let period = state.queues.end_period(now);
                    state.demand.update(period);
                    Member {
                        limits: entry.limits,
                        exempt: entry.spec.discipline == Discipline::Exempt,
                        demand: state.demand,
                        current: state.queues.limit(),
                    }
                })
            })
            .collect();
        let adjusted = borrowing::adjust(&members);
        for ((entry, limit), target) in entries.values().zip(&adjusted.current).zip(&adjusted.targets) {
            // Something to measure against for levels that have no seats of their own.
            let denominator = if *limit > 0 { *limit } else { (self.concurrency / 10).max(1) };
            entry.level.with(|state: &mut LevelState, now| {
                state.target = *target;
                state.queues.configure(now, entry.spec.discipline, *limit, denominator);
            });
        }
        adjusted.fair_fraction
    }
}

/// In order, with the mandatory ones if they are missing: first and last.
fn complete(mut schemas: Vec<FlowSchema>) -> Vec<FlowSchema> {
    matching::sort(&mut schemas);
    if !schemas.iter().any(|schema| schema.name == EXEMPT) {
        schemas.insert(0, FlowSchema::mandatory_exempt());
    }
    if !schemas.iter().any(|schema| schema.name == CATCH_ALL) {
        schemas.push(FlowSchema::mandatory_catch_all());
    }
    schemas
}
