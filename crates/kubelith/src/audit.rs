//! The audit log put together from the options.

use crate::options::{AuditLogOptions, AuditOptions, AuditWebhookOptions};
use kubelith_observe::audit::{Backends, LogBackend, LogTarget, Policy, RotatingFile, WebhookBackend};
use kubelith_observe::metrics::Metrics;
use kubelith_outbound::client::Kubeconfig;
use kubelith_outbound::egress::Route;
use kubelith_server::filters::audit::Audit;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// One try to reach the webhook.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// `None` if nothing is to be kept, or nowhere. Must be called within the runtime: batches are written by tasks.
pub fn open(options: &AuditOptions, route: &Route, metrics: &Metrics) -> Result<Option<Arc<Audit>>, String> {
    let Some(policy) = &options.policy_file else {
        if options.log.is_some() || options.webhook.is_some() {
            tracing::info!("No audit policy file provided, no events will be recorded");
        }
        return Ok(None);
    };
    let policy = read_policy(policy).map_err(|e| format!("loading audit policy file: {e}"))?;
    let mut backends = Backends::new(&metrics.audit);
    if let Some(log) = &options.log {
        let backend = Arc::new(LogBackend::new(target(log)?, log.format));
        backends.add(backend, log.mode.clone(), log.truncation);
    }
    if let Some(webhook) = &options.webhook {
        let backend =
            Arc::new(connect(webhook, route, metrics).map_err(|e| format!("initializing audit webhook: {e}"))?);
        backends.add(backend, webhook.mode.clone(), webhook.truncation);
    }
    if backends.is_empty() {
        return Ok(None);
    }
    Ok(Some(Arc::new(Audit { policy, backends: Arc::new(backends), metrics: metrics.audit.clone() })))
}

fn read_policy(path: &Path) -> Result<Policy, String> {
    let shown = path.display();
    let quoted = kubelith_meta::text::quote(&shown.to_string());
    let content = std::fs::read(path).map_err(|e| format!("failed to read file path {quoted}: {e}"))?;
    Policy::parse(&content).map_err(|e| format!("{e}: from file {shown}"))
}

fn target(log: &AuditLogOptions) -> Result<LogTarget, String> {
    if log.path == Path::new("-") {
        return Ok(LogTarget::Stdout);
    }
    let file = RotatingFile::open(&log.path, log.rotation).map_err(|e| format!("ensureLogFile: {e}"))?;
    Ok(LogTarget::File(Box::new(file)))
}

fn connect(webhook: &AuditWebhookOptions, route: &Route, metrics: &Metrics) -> Result<WebhookBackend, String> {
    let mut kubeconfig = Kubeconfig::load(&webhook.config_file)?;
    kubeconfig.tls.flaws = Some(metrics.webhooks.clone());
    let client = Arc::new(kubeconfig.client(route, WEBHOOK_TIMEOUT)?);
    Ok(WebhookBackend::new(client, kubeconfig.server, webhook.initial_backoff))
}
