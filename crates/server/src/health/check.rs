//! One named check.

use futures::future::BoxFuture;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::time::Instant;

/// `Err` says why, for the log and for those who may see the single check.
pub type Outcome = Result<(), String>;

#[derive(Clone)]
pub struct Check {
    pub name: Cow<'static, str>,
    /// `?exclude=` of this name leaves out the whole group.
    pub group: Option<Cow<'static, str>>,
    run: Arc<dyn Fn() -> BoxFuture<'static, Outcome> + Send + Sync>,
}

impl Check {
    /// A check that may take time. Dropping its future must do no harm.
    pub fn new<F>(name: impl Into<Cow<'static, str>>, run: impl Fn() -> F + Send + Sync + 'static) -> Check
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        Check { name: name.into(), group: None, run: Arc::new(move || Box::pin(run())) }
    }

    /// A check that answers at once.
    pub fn sync(name: impl Into<Cow<'static, str>>, run: impl Fn() -> Outcome + Send + Sync + 'static) -> Check {
        Check::new(name, move || std::future::ready(run()))
    }

    /// Passes if we can answer at all.
    pub fn passing(name: &'static str) -> Check {
        Check::sync(name, || Ok(()))
    }

    pub fn in_group(mut self, group: impl Into<Cow<'static, str>>) -> Check {
        self.group = Some(group.into());
        self
    }

    pub(super) fn passing_until(self, when: Instant) -> Check {
        let run = self.run.clone();
        let name = self.name.clone();
        let group = self.group.clone();
        let run = Arc::new(move || -> BoxFuture<'static, Outcome> {
            if Instant::now() <= when { Box::pin(std::future::ready(Ok(()))) } else { run() }
        });
        Check { name, group, run }
    }

    pub async fn run(&self) -> Outcome {
        (self.run)().await
    }
}
