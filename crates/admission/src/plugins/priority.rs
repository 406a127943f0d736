//! Priority: pods get the number that their priority class stands for, and one class at most is the default.

use crate::plugin::{Plugin, Verdict};
use arc_swap::ArcSwapOption;
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::{Collection, parse};
use memchr::memmem::Finder;
use std::sync::{Arc, LazyLock};

const GROUP: &str = "scheduling.k8s.io";
const PRIORITY: [&str; 2] = ["spec", "priority"];
const PREEMPTION: [&str; 2] = ["spec", "preemptionPolicy"];
const CLASS_NAME: [&str; 2] = ["spec", "priorityClassName"];

static IS_DEFAULT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#""globalDefault":true"#));

pub struct Priority {
    classes: Collection,
    /// The default as it was when the classes were last looked through.
    default: ArcSwapOption<Known>,
}

struct Known {
    /// What the cache of classes counted before.
    changes: u64,
    default: Option<Rank>,
}

/// What a class means to a pod.
#[derive(Clone)]
struct Rank {
    class: Str,
    priority: i64,
    preemption: Option<Str>,
}

impl Rank {
    fn of(class: &Value) -> Rank {
        Rank {
            class: class.meta().name().into(),
            priority: class.get("value").and_then(Value::as_i64).unwrap_or(0),
            preemption: class.get("preemptionPolicy").and_then(Value::as_str).map(Str::from),
        }
    }
}

impl Priority {
    pub fn new(objects: &Arc<Objects>) -> Priority {
        Priority { classes: objects.of(GROUP, "priorityclasses"), default: ArcSwapOption::empty() }
    }

    /// The default class; if a race made several, the one with the lowest value.
    fn default_rank(&self) -> Option<Rank> {
        let changes = self.classes.changes();
        if let Some(known) = self.default.load().as_ref().filter(|known| known.changes == changes) {
            return known.default.clone();
        }
        let classes = self.classes.list_with("", &IS_DEFAULT);
        let defaults = classes.iter().filter(|c| c.get("globalDefault").and_then(Value::as_bool) == Some(true));
        let default = defaults.map(Rank::of).min_by_key(|rank| rank.priority);
        self.default.store(Some(Arc::new(Known { changes, default: default.clone() })));
        default
    }

    fn rank(&self, request: Request<'_>, pod: &Value) -> Result<Rank, Status> {
        let name = pod.str_at(&CLASS_NAME);
        if name.is_empty() {
            let none = Rank { class: Str::default(), priority: 0, preemption: Some("PreemptLowerPriority".into()) };
            return Ok(self.default_rank().unwrap_or(none));
        }
        let found = self.classes.cached("", name).and_then(|class| parse(&class));
        let Some(class) = found else {
            return Err(request.forbidden(pod, format!("no PriorityClass with name {name} was found")));
        };
        Ok(Rank::of(&class))
    }

    fn create_pod(&self, request: Request<'_>, pod: &mut Value) -> Result<(), Status> {
        let rank = self.rank(request, pod)?;
        if let Some(given) = pod.at(&PRIORITY).and_then(Value::as_i64).filter(|given| *given != rank.priority) {
            let why = format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
                 controller computed {} from the given PriorityClass name",
                rank.priority
            );
            return Err(request.forbidden(pod, why));
        }
        if !rank.class.is_empty() {
            pod.set_at(&CLASS_NAME, Value::String(rank.class));
        }
        pod.set_at(&PRIORITY, Value::Int(rank.priority));
        let Some(policy) = rank.preemption else { return Ok(()) };
        if let Some(given) = pod.at(&PREEMPTION).and_then(Value::as_str).filter(|given| *given != policy) {
            let why = format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
                 controller computed {policy} from the given PriorityClass name"
            );
            return Err(request.forbidden(pod, why));
        }
        pod.set_at(&PREEMPTION, Value::String(policy));
        Ok(())
    }
}

impl Plugin for Priority {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> Verdict<'a> {
        if !request.is_for("", "pods") {
            return Verdict::Idle;
        }
        match (request.operation, request.old) {
            (Operation::Create, _) => return Verdict::Ready(self.create_pod(request, pod)),
            // An update by a client that does not know these fields keeps them.
            (Operation::Update, Some(old)) if !pod.shares("spec", old) => {
                for path in [PRIORITY, PREEMPTION] {
                    if let (None, Some(kept)) = (pod.at(&path), old.at(&path)) {
                        pod.set_at(&path, kept.clone());
                    }
                }
            }
            _ => {}
        }
        Verdict::PASSED
    }

    fn validate<'a>(&'a self, request: Request<'a>, class: &'a Value) -> Verdict<'a> {
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        let claims = class.get("globalDefault").and_then(Value::as_bool) == Some(true);
        if !writes || !claims || !request.is_for(GROUP, "priorityclasses") {
            return Verdict::Idle;
        }
        let other = self
            .default_rank()
            .filter(|default| request.operation == Operation::Create || default.class != class.meta().name());
        Verdict::Ready(match other {
            Some(Rank { class: name, .. }) => {
                let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
                Err(request.forbidden(class, why))
            }
            None => Ok(()),
        })
    }
}
