//! Levels and requests as they are now, for programs that show them.

use super::Fairness;
use kubelith_auth::User;
use kubelith_fairness::Nanos;
use kubelith_fairness::queue_set::Totals;
use kubelith_http::RequestInfo;
use kubelith_meta::Str;
use std::sync::Arc;
use std::time::Duration;

pub struct LevelNow {
    pub name: Str,
    pub exempt: bool,
    /// Seats that it is entitled to, and that it has now.
    pub nominal: u32,
    pub limit: u32,
    pub totals: Totals,
    pub requests: Vec<RequestNow>,
}

pub struct RequestNow {
    pub schema: Str,
    pub user: Arc<User>,
    pub info: Arc<RequestInfo>,
    pub seats: u32,
    /// Since it came.
    pub age: Duration,
    /// In a queue; `None` once it runs.
    pub queue: Option<usize>,
    pub waited: Duration,
}

impl Fairness {
    /// At most `limit` requests of each level are told one by one.
    pub fn look(&self, limit: usize) -> Vec<LevelNow> {
        let config = self.config();
        let levels = config.levels.iter().map(|(name, entry)| {
            let state = entry.level.lock();
            let now = entry.level.clock().now();
            let since = |then: Nanos| Duration::from_nanos(now.saturating_sub(then));
            let requests = state.queues.requests().take(limit).map(|(queue, _, request)| RequestNow {
                schema: request.about.schema.spec.name.clone(),
                user: request.about.user.clone(),
                info: request.about.info.clone(),
                seats: request.work.initial_seats,
                age: since(request.arrived),
                queue: queue.filter(|_| request.started.is_none()),
                waited: match request.started {
                    Some(started) => Duration::from_nanos(started.saturating_sub(request.arrived)),
                    None => since(request.arrived),
                },
            });
            LevelNow {
                name: name.clone(),
                exempt: entry.spec.discipline == kubelith_fairness::spec::Discipline::Exempt,
                nominal: entry.limits.nominal,
                limit: state.queues.limit(),
                totals: state.queues.totals(),
                requests: requests.collect(),
            }
        });
        levels.collect()
    }
}
