//! Events sent to a webhook: an EventList, POSTed, and again if that fails.

use super::backend::{Backend, Written};
use super::event::Event;
use kubelith_auth::remote::{FetchRequest, HttpFetch};
use std::sync::Arc;
use std::time::Duration;

/// Tries of one batch.
const TRIES: u32 = 5;

pub struct WebhookBackend {
    client: Arc<dyn HttpFetch>,
    url: String,
    initial_backoff: Duration,
}

impl WebhookBackend {
    pub fn new(client: Arc<dyn HttpFetch>, url: String, initial_backoff: Duration) -> WebhookBackend {
        WebhookBackend { client, url, initial_backoff }
    }

    async fn send(&self, body: String) -> Result<(), String> {
        let mut pause = self.initial_backoff;
        for attempt in 1.. {
            let request = FetchRequest { json_body: Some(body.clone()), ..FetchRequest::get(self.url.clone()) };
            let why = match self.client.fetch(request).await {
                Ok(response) if (200..300).contains(&response.status) => return Ok(()),
                Ok(response) => format!("the audit webhook answered {}", response.status),
                Err(why) => why.to_string(),
            };
            if attempt == TRIES {
                return Err(why);
            }
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(1.5);
        }
        Ok(())
    }
}

fn list(events: &[Arc<Event>]) -> String {
    let mut out = Vec::with_capacity(1024 * events.len() + 64);
    out.extend_from_slice(br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#);
    for (i, event) in events.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        event.write_json(&mut out);
    }
    out.extend_from_slice(b"]}");
    String::from_utf8(out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

impl Backend for WebhookBackend {
    fn name(&self) -> &'static str {
        "webhook"
    }

    fn write(&self, events: Vec<Arc<Event>>) -> Written<'_> {
        let body = list(&events);
        Written::Later(Box::pin(self.send(body)))
    }
}
