//! Jobs that are finished go when their time is over: `ttlSecondsAfterFinished`.

use crate::metrics::ControllerMetrics;
use crate::{Context, caches};
use kubelith_meta::time::{Clock, Duration as Span, Time};
use kubelith_meta::{GroupVersionResource, Str, Value};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::ResourceCache;
use std::sync::Arc;
use std::time::Duration;

const WORKERS: usize = 5;

struct Expiry {
    client: LoopbackClient,
    jobs: Arc<ResourceCache>,
    clock: Arc<dyn Clock>,
    metrics: Arc<ControllerMetrics>,
}

pub fn start(context: &Context) {
    let Some(jobs) = context.world.cache("batch", "jobs") else { return };
    let this = Arc::new(Expiry {
        client: context.client("ttl-after-finished-controller"),
        jobs: jobs.clone(),
        clock: context.clock.clone(),
        metrics: context.figures.clone(),
    });
    Controller::new("ttl_jobs_to_delete", move |key: Str| {
        let this = this.clone();
        async move { this.reconcile(&key).await }
    })
    .watches(&jobs, |change| match &change.new {
        Some(new) if caches::mentions(new, "\"ttlSecondsAfterFinished\":") => vec![change.key()],
        _ => Vec::new(),
    })
    .workers(WORKERS)
    .metrics(&context.metrics)
    .by(&context.clock)
    .start(&context.tasks);
}

impl Expiry {
    async fn reconcile(&self, key: &str) -> Result<Next, String> {
        let Some(job) = self.jobs.get(key).and_then(|j| caches::value(&j)) else { return Ok(Next::Done) };
        if let Some(next) = self.wait(&job)? {
            return Ok(next);
        }
        // Others may have given it a longer life.
        let resource = GroupVersionResource::new("batch", "v1", "jobs");
        let meta = job.meta();
        let target = ResourceRef::new(&resource).namespace(meta.namespace()).name(meta.name());
        let fresh = match self.client.get(&target).await {
            Err(status) if status.is_not_found() => return Ok(Next::Done),
            fresh => fresh.map_err(|status| status.message)?,
        };
        if let Some(next) = self.wait(&fresh)? {
            return Ok(next);
        }
        let options = Value::from([
            ("kind", Value::from("DeleteOptions")),
            ("apiVersion", "v1".into()),
            ("propagationPolicy", "Foreground".into()),
            ("preconditions", Value::from([("uid", fresh.meta().uid())])),
        ]);
        self.client.delete_unseen(&target, &options).await.map_err(|status| status.message)?;
        if let Ok(Some(expiry)) = expiry(&fresh) {
            let late = self.clock.now().since(expiry);
            self.metrics.expired_jobs.observe(late.as_nanos() as f64 / 1e9);
        }
        Ok(Next::Done)
    }

    /// What there is to do if its time is not over.
    fn wait(&self, job: &Value) -> Result<Option<Next>, String> {
        if job.meta().is_being_deleted() {
            return Ok(Some(Next::Done));
        }
        let Some(expiry) = expiry(job)? else { return Ok(Some(Next::Done)) };
        let left = expiry.since(self.clock.now());
        Ok((left > Span::ZERO).then(|| Next::After(Duration::from(left))))
    }
}

/// When a job's time is over; `None` if it is not finished, or may stay.
fn expiry(job: &Value) -> Result<Option<Time>, String> {
    let Some(seconds) = job.at(&["spec", "ttlSecondsAfterFinished"]).and_then(Value::as_i64) else { return Ok(None) };
    let conditions = job.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let is_end = |c: &&Value| matches!(c.str_at(&["type"]), "Complete" | "Failed") && c.str_at(&["status"]) == "True";
    let Some(end) = conditions.iter().find(is_end) else { return Ok(None) };
    let time = Time::parse(end.str_at(&["lastTransitionTime"])).ok().filter(|time| !time.is_zero());
    let meta = job.meta();
    let time = time
        .ok_or_else(|| format!("unable to find the time when the Job {}/{} finished", meta.namespace(), meta.name()))?;
    Ok(Some(time + Span::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_a_job_expires() {
        let job = |ttl: Option<i64>, kind: &str, time: &str| {
            let mut job = Value::object();
            job.meta_mut().set_name("j").set_namespace("n");
            if let Some(ttl) = ttl {
                job.set_at(&["spec", "ttlSecondsAfterFinished"], ttl.into());
            }
            let condition = Value::from([("type", kind), ("status", "True"), ("lastTransitionTime", time)]);
            job.set_at(&["status", "conditions"], vec![condition].into());
            job
        };
        let at = "1970-01-01T00:01:40Z";
        assert_eq!(expiry(&job(Some(5), "Complete", at)), Ok(Some(Time::from_unix(105))));
        assert_eq!(expiry(&job(Some(0), "Failed", at)), Ok(Some(Time::from_unix(100))));
        assert_eq!(expiry(&job(None, "Failed", at)), Ok(None));
        assert_eq!(expiry(&job(Some(5), "Suspended", at)), Ok(None));
        let unknown = "unable to find the time when the Job n/j finished";
        assert_eq!(expiry(&job(Some(5), "Failed", "")), Err(unknown.to_owned()));
    }
}
