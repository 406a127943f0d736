//! How long plugins and phases take. Every write passes some twenty plugins, most of which have nothing to do: counting one
//! is two additions, and what the series look like is found out by whoever asks for them.

use super::upper;
use kubelith_admission::{Outcome, Phase, Span, Timer};
use kubelith_observe::metrics::Registry;
use kubelith_observe::metrics::prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType, Quantile, Summary};
use kubelith_observe::metrics::pulled::{PulledFamilies, histogram_family};
use kubelith_observe::metrics::register;
use kubelith_registry::admission::Operation;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const STEP: (&str, &str) = (
    "apiserver_admission_step_admission_duration_seconds",
    "Time of a phase of admission, by operation and by whether it was refused.",
);
const STEP_SUMMARY: (&str, &str) =
    ("apiserver_admission_step_admission_duration_seconds_summary", "Time of a phase of admission, as quantiles.");
const PLUGIN: (&str, &str) = (
    "apiserver_admission_controller_admission_duration_seconds",
    "Time of an admission plugin, by phase and operation and by whether it refused.",
);

const BOUNDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// The same, in nanoseconds.
const BOUNDS_NS: [u64; 6] = [5_000_000, 25_000_000, 100_000_000, 500_000_000, 1_000_000_000, 2_500_000_000];

const PHASES: [(Phase, &str); 2] = [(Phase::Admit, "admit"), (Phase::Validate, "validate")];
const OPERATIONS: [Operation; 4] = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];
const OUTCOMES: [(Outcome, &str); 2] = [(Outcome::Passed, "false"), (Outcome::Refused, "true")];

/// Two phases, four operations, two outcomes.
const SERIES: usize = 16;

/// The place of a series among them.
fn number(phase: Phase, operation: Operation, outcome: Outcome) -> usize {
    phase as usize * 8 + operation as usize * 2 + outcome as usize
}

type Labels = Vec<(&'static str, &'static str)>;

/// The labels of all series, by number; in the order of their names.
fn labels() -> impl Iterator<Item = Labels> {
    PHASES.into_iter().flat_map(|(_, phase)| {
        OPERATIONS.into_iter().flat_map(move |operation| {
            OUTCOMES.into_iter().map(move |(_, rejected)| {
                vec![("operation", upper(operation)), ("rejected", rejected), ("type", phase)]
            })
        })
    })
}

/// A plugin's times, by its name.
type Named = (&'static str, Arc<Histograms>);

/// The times of all plugins, and of phases.
pub struct Times {
    plugins: Arc<Mutex<Vec<Named>>>,
    phases: Arc<Phases>,
}

impl Times {
    pub fn new(registry: &Registry) -> Times {
        let (plugins, phases) = (Arc::<Mutex<Vec<Named>>>::default(), Arc::<Phases>::default());
        let times = Times { plugins: plugins.clone(), phases: phases.clone() };
        let read = move || {
            let plugins = locked(&plugins);
            let of_plugin = |(name, histograms): &Named| {
                let name = ("name", *name);
                let named = move |(mut labels, counted): (Labels, Counted)| {
                    labels.insert(0, name);
                    (labels, counted)
                };
                histograms.read().map(named).collect::<Vec<_>>()
            };
            let plugins: Vec<(Labels, Counted)> = plugins.iter().flat_map(of_plugin).collect();
            let steps: Vec<(Labels, Counted)> = phases.histograms.read().collect();
            let mut families =
                vec![histogram_family(PLUGIN, &BOUNDS, &plugins), histogram_family(STEP, &BOUNDS, &steps)];
            families.push(phases.summaries());
            families.retain(|family| !family.get_metric().is_empty());
            families
        };
        registry.later(|registry| register(registry, PulledFamilies::new(&[PLUGIN, STEP, STEP_SUMMARY], read)));
        times
    }

    pub fn of_plugin(&self, name: &'static str) -> Arc<dyn Timer> {
        let mut plugins = locked(&self.plugins);
        if let Some((_, known)) = plugins.iter().find(|(known, _)| *known == name) {
            return known.clone();
        }
        let own = Arc::<Histograms>::default();
        plugins.push((name, own.clone()));
        own
    }

    pub fn of_phases(&self) -> Arc<dyn Timer> {
        self.phases.clone()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Times up to each bound, all times, and their sum in seconds.
type Counted = ([u64; BOUNDS.len()], u64, f64);

/// Times between two bounds, the last ones above all of them, and the sum.
#[derive(Default)]
struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    fn add(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // Nearly all are below the first.
        let bucket = BOUNDS_NS.iter().position(|bound| time <= *bound).unwrap_or(BOUNDS_NS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        if time > 0 {
            self.nanoseconds.fetch_add(time, Ordering::Relaxed);
        }
    }

    /// `None` if nothing was counted.
    fn read(&self) -> Option<Counted> {
        let mut all = 0;
        let upto: [u64; BOUNDS.len() + 1] = std::array::from_fn(|i| {
            all += self.buckets[i].load(Ordering::Relaxed);
            all
        });
        let sum = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        (all > 0).then(|| (std::array::from_fn(|i| upto[i]), all, sum))
    }
}

/// By the numbers of series.
#[derive(Default)]
struct Histograms([Histogram; SERIES]);

impl Histograms {
    fn read(&self) -> impl Iterator<Item = (Labels, Counted)> + '_ {
        labels().zip(&self.0).filter_map(|(labels, histogram)| Some((labels, histogram.read()?)))
    }
}

impl Timer for Histograms {
    fn took(&self, phase: Phase, operation: Operation, outcome: Outcome, span: Span) {
        self.0[number(phase, operation, outcome)].add(span.to - span.from);
    }
}

/// Times of which quantiles are shown: the last ones, up to this age.
const KEPT: usize = 500;
const MAX_AGE: Duration = Duration::from_secs(5 * 3600);
const SHOWN: [f64; 3] = [0.5, 0.9, 0.99];

#[derive(Default)]
struct Phases {
    histograms: Histograms,
    series: Mutex<[Series; SERIES]>,
}

#[derive(Default)]
struct Series {
    count: u64,
    sum: f64,
    recent: VecDeque<(Instant, f64)>,
}

impl Timer for Phases {
    fn took(&self, phase: Phase, operation: Operation, outcome: Outcome, span: Span) {
        self.histograms.took(phase, operation, outcome, span);
        let time = (span.to - span.from).as_secs_f64();
        let series = &mut locked(&self.series)[number(phase, operation, outcome)];
        series.count += 1;
        series.sum += time;
        if series.recent.len() == KEPT {
            series.recent.pop_front();
        }
        series.recent.push_back((span.to, time));
    }
}

impl Phases {
    /// The library has none.
    fn summaries(&self) -> MetricFamily {
        let all = locked(&self.series);
        let counted = labels().zip(all.iter()).filter(|(_, series)| series.count > 0);
        let metrics = counted.map(|(labels, series)| {
            let pairs = labels.into_iter().map(|(name, value)| {
                let mut pair = LabelPair::default();
                pair.set_name(name.to_owned());
                pair.set_value(value.to_owned());
                pair
            });
            let mut metric = Metric::default();
            metric.set_label(pairs.collect());
            metric.set_summary(series.summary());
            metric
        });
        let mut family = MetricFamily::default();
        family.set_name(STEP_SUMMARY.0.to_owned());
        family.set_help(STEP_SUMMARY.1.to_owned());
        family.set_field_type(MetricType::SUMMARY);
        family.set_metric(metrics.collect());
        family
    }
}

impl Series {
    fn summary(&self) -> Summary {
        let fresh = self.recent.iter().filter(|(at, _)| at.elapsed() < MAX_AGE);
        let mut times: Vec<f64> = fresh.map(|(_, time)| *time).collect();
        times.sort_by(f64::total_cmp);
        let mut summary = Summary::default();
        summary.set_sample_count(self.count);
        summary.set_sample_sum(self.sum);
        let quantiles = SHOWN.map(|quantile| {
            let place = ((times.len() as f64 * quantile).ceil() as usize).clamp(1, times.len().max(1)) - 1;
            let mut shown = Quantile::default();
            shown.set_quantile(quantile);
            shown.set_value(times.get(place).copied().unwrap_or(f64::NAN));
            shown
        });
        summary.set_quantile(quantiles.to_vec());
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_last_times() {
        let mut series = Series::default();
        for n in 1..=100u32 {
            series.recent.push_back((Instant::now(), f64::from(n)));
        }
        series.count = 7;
        let summary = series.summary();
        let values: Vec<f64> = summary.get_quantile().iter().map(Quantile::value).collect();
        assert_eq!((values, summary.sample_count()), (vec![50.0, 90.0, 99.0], 7));
        assert!(Series::default().summary().get_quantile()[0].value().is_nan());
    }

    #[test]
    fn times_are_counted_up_to_each_bound() {
        let (histogram, now) = (Histograms::default(), Instant::now());
        let took = |milliseconds| Span { from: now, to: now + Duration::from_millis(milliseconds) };
        for milliseconds in [0, 5, 6, 2500, 3000] {
            histogram.took(Phase::Validate, Operation::Delete, Outcome::Refused, took(milliseconds));
        }
        let all: Vec<(Labels, Counted)> = histogram.read().collect();
        let labels = vec![("operation", "DELETE"), ("rejected", "true"), ("type", "validate")];
        assert_eq!(all, [(labels, ([2, 3, 3, 3, 3, 4], 5, 5.511))]);
        let numbered = PHASES.iter().flat_map(|(phase, _)| {
            OPERATIONS.iter().flat_map(move |o| OUTCOMES.iter().map(move |(outcome, _)| number(*phase, *o, *outcome)))
        });
        assert!(numbered.eq(0..SERIES), "labels stand where their series do");
        assert_eq!(BOUNDS.map(|bound| Duration::from_secs_f64(bound).as_nanos() as u64), BOUNDS_NS);
    }
}
