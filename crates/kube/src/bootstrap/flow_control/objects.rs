//! The default flow schemas and priority levels, as tables.

use super::AUTO_UPDATE;
use kubelith_meta::Value;

pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
pub const FLOW_SCHEMAS: &str = "flowschemas";
pub const PRIORITY_LEVELS: &str = "prioritylevelconfigurations";

/// Who decides over an object's spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// We do: without it some request would belong nowhere.
    Mandatory,
    /// The operator, if they want to.
    Suggested,
}

pub struct Ensured {
    pub plural: &'static str,
    pub keeping: Keeping,
    pub object: Value,
}

/// Everything, priority levels before the schemas that name them.
pub fn all() -> Vec<Ensured> {
    let levels = LEVELS.iter().map(Level::ensured);
    levels.chain(schemas().into_iter().map(Schema::ensured)).collect()
}

struct Level {
    name: &'static str,
    keeping: Keeping,
    /// Concurrency shares.
    shares: i64,
    /// How much of them others may use, in percent.
    lendable: i64,
    kind: LevelKind,
}

enum LevelKind {
    Exempt,
    Reject,
    /// Queues, and how many of them a flow is dealt.
    Queue(i64, i64),
}

const QUEUE_LENGTH: i64 = 50;

#[rustfmt::skip]
const LEVELS: [Level; 8] = [
    Level { name: "exempt",          keeping: Keeping::Mandatory, shares: 0,   lendable: 0,  kind: LevelKind::Exempt },
    Level { name: "catch-all",       keeping: Keeping::Mandatory, shares: 5,   lendable: 0,  kind: LevelKind::Reject },
    Level { name: "system",          keeping: Keeping::Suggested, shares: 30,  lendable: 33, kind: LevelKind::Queue(64, 6) },
    Level { name: "node-high",       keeping: Keeping::Suggested, shares: 40,  lendable: 25, kind: LevelKind::Queue(64, 6) },
    Level { name: "leader-election", keeping: Keeping::Suggested, shares: 10,  lendable: 0,  kind: LevelKind::Queue(16, 4) },
    Level { name: "workload-high",   keeping: Keeping::Suggested, shares: 40,  lendable: 50, kind: LevelKind::Queue(128, 6) },
    Level { name: "workload-low",    keeping: Keeping::Suggested, shares: 100, lendable: 90, kind: LevelKind::Queue(128, 6) },
    Level { name: "global-default",  keeping: Keeping::Suggested, shares: 20,  lendable: 50, kind: LevelKind::Queue(128, 6) },
];

impl Level {
    fn ensured(&self) -> Ensured {
        let mut share = Value::from([
            ("nominalConcurrencyShares", Value::Int(self.shares)),
            ("lendablePercent", Value::Int(self.lendable)),
        ]);
        let spec = match self.kind {
            LevelKind::Exempt => Value::from([("type", "Exempt".into()), ("exempt", share)]),
            LevelKind::Reject => {
                share.make_object().insert("limitResponse", Value::from([("type", "Reject")]));
                Value::from([("type", "Limited".into()), ("limited", share)])
            }
            LevelKind::Queue(queues, hand_size) => {
                let queuing = Value::from([
                    ("queues", Value::Int(queues)),
                    ("handSize", Value::Int(hand_size)),
                    ("queueLengthLimit", Value::Int(QUEUE_LENGTH)),
                ]);
                let response = Value::from([("type", "Queue".into()), ("queuing", queuing)]);
                share.make_object().insert("limitResponse", response);
                Value::from([("type", "Limited".into()), ("limited", share)])
            }
        };
        Ensured { plural: PRIORITY_LEVELS, keeping: self.keeping, object: object(self.name, spec) }
    }
}

struct Schema {
    name: &'static str,
    keeping: Keeping,
    level: &'static str,
    precedence: i64,
    /// What tells flows apart.
    distinguisher: Option<&'static str>,
    subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    paths: Option<PathRule>,
}

enum Subject {
    Group(&'static str),
    User(&'static str),
    /// All service accounts of a namespace.
    ServiceAccountsOf(&'static str),
}

struct ResourceRule {
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
    cluster_scope: bool,
}

struct PathRule {
    verbs: &'static [&'static str],
    paths: &'static [&'static str],
}

const EVERYTHING: ResourceRule = ResourceRule { verbs: &["*"], group: "*", resources: &["*"], cluster_scope: true };
const ALL_PATHS: PathRule = PathRule { verbs: &["*"], paths: &["*"] };
const LEASE_GROUP: &str = "coordination.k8s.io";

fn schemas() -> Vec<Schema> {
    use Keeping::{Mandatory, Suggested};
    use Subject::{Group, ServiceAccountsOf, User};
    let everyone = || vec![Group("system:unauthenticated"), Group("system:authenticated")];
    let nodes = || vec![Group("system:nodes")];
    let by_user = Some("ByUser");
    let by_namespace = Some("ByNamespace");
    let schema = |keeping, name, level, precedence, distinguisher, subjects| Schema {
        name,
        keeping,
        level,
        precedence,
        distinguisher,
        subjects,
        resources: vec![EVERYTHING],
        paths: Some(ALL_PATHS),
    };
    vec![
        schema(Mandatory, "exempt", "exempt", 1, None, vec![Group("system:masters")]),
        schema(Mandatory, "catch-all", "catch-all", 10000, by_user, everyone()),
        schema(Suggested, "system-nodes", "system", 500, by_user, nodes()),
        Schema {
            resources: vec![
                ResourceRule { verbs: &["*"], group: "", resources: &["nodes", "nodes/status"], cluster_scope: true },
                ResourceRule { verbs: &["*"], group: LEASE_GROUP, resources: &["leases"], cluster_scope: false },
            ],
            paths: None,
            ..schema(Suggested, "system-node-high", "node-high", 400, by_user, nodes())
        },
        Schema {
            resources: Vec::new(),
            paths: Some(PathRule { verbs: &["get"], paths: &["/healthz", "/readyz", "/livez"] }),
            ..schema(Suggested, "probes", "exempt", 2, None, everyone())
        },
        Schema {
            resources: vec![ResourceRule {
                verbs: &["get", "create", "update"],
                group: LEASE_GROUP,
                resources: &["leases"],
                cluster_scope: false,
            }],
            paths: None,
            ..schema(
                Suggested,
                "system-leader-election",
                "leader-election",
                100,
                by_user,
                vec![
                    User("system:kube-controller-manager"),
                    User("system:kube-scheduler"),
                    ServiceAccountsOf("kube-system"),
                ],
            )
        },
        schema(
            Suggested,
            "kube-controller-manager",
            "workload-high",
            800,
            by_namespace,
            vec![User("system:kube-controller-manager")],
        ),
        schema(Suggested, "kube-scheduler", "workload-high", 800, by_namespace, vec![User("system:kube-scheduler")]),
        schema(
            Suggested,
            "kube-system-service-accounts",
            "workload-high",
            900,
            by_namespace,
            vec![ServiceAccountsOf("kube-system")],
        ),
        schema(Suggested, "service-accounts", "workload-low", 9000, by_user, vec![Group("system:serviceaccounts")]),
        schema(Suggested, "global-default", "global-default", 9900, by_user, everyone()),
    ]
}

impl Schema {
    fn ensured(self) -> Ensured {
        let mut rule = Value::from([("subjects", self.subjects.iter().map(Subject::value).collect::<Vec<_>>())]);
        let map = rule.make_object();
        if !self.resources.is_empty() {
            map.insert("resourceRules", self.resources.iter().map(ResourceRule::value).collect::<Vec<_>>());
        }
        if let Some(rule) = &self.paths {
            let paths = Value::from([("verbs", list(rule.verbs)), ("nonResourceURLs", list(rule.paths))]);
            map.insert("nonResourceRules", vec![paths]);
        }
        let mut spec = Value::from([
            ("priorityLevelConfiguration", Value::from([("name", self.level)])),
            ("matchingPrecedence", Value::Int(self.precedence)),
            ("rules", vec![rule].into()),
        ]);
        if let Some(method) = self.distinguisher {
            spec.make_object().insert("distinguisherMethod", Value::from([("type", method)]));
        }
        Ensured { plural: FLOW_SCHEMAS, keeping: self.keeping, object: object(self.name, spec) }
    }
}

impl Subject {
    fn value(&self) -> Value {
        match self {
            Subject::Group(name) => Value::from([("kind", "Group".into()), ("group", Value::from([("name", *name)]))]),
            Subject::User(name) => Value::from([("kind", "User".into()), ("user", Value::from([("name", *name)]))]),
            Subject::ServiceAccountsOf(namespace) => Value::from([
                ("kind", "ServiceAccount".into()),
                ("serviceAccount", Value::from([("namespace", *namespace), ("name", "*")])),
            ]),
        }
    }
}

impl ResourceRule {
    fn value(&self) -> Value {
        let mut rule = Value::from([
            ("verbs", list(self.verbs)),
            ("apiGroups", list(&[self.group])),
            ("resources", list(self.resources)),
            ("namespaces", list(&["*"])),
        ]);
        if self.cluster_scope {
            rule.make_object().insert("clusterScope", true);
        }
        rule
    }
}

fn list(names: &[&str]) -> Value {
    Value::from(names.iter().map(|n| Value::from(*n)).collect::<Vec<_>>())
}

fn object(name: &str, spec: Value) -> Value {
    let annotations = Value::from([(AUTO_UPDATE, "true")]);
    let metadata = Value::from([("name", Value::from(name)), ("annotations", annotations)]);
    Value::from([("metadata", metadata), ("spec", spec)])
}
