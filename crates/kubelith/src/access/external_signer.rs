//! `--service-account-signing-endpoint`: a program that signs service account tokens and says by which keys they are
//! known. It listens on a unix socket and speaks gRPC (`v1.ExternalJWTSigner`).

use super::signer_metrics::{CallError, SignerMetrics};
use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use kubelith_auth::jwt::key::PublicKey;
use kubelith_auth::service_account::{ExternalSigner, KeySet, NamedKey, Publication};
use kubelith_codec::json;
use kubelith_meta::Value;
use kubelith_meta::text::Quoted;
use kubelith_server::lifecycle::Tasks;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tonic::transport::Channel;

/// For one fetch of keys; at the start, for the signer to be there at all.
const FETCH_TIMEOUT: Duration = Duration::from_secs(60);
const METADATA_TIMEOUT: Duration = Duration::from_secs(10);
const SIGN_TIMEOUT: Duration = Duration::from_secs(60);
/// After a fetch that failed.
const RETRY: Duration = Duration::from_secs(10);
/// Between tries to reach a signer that does not answer.
const RECONNECT: Duration = Duration::from_millis(200);
/// Longer ids of keys are refused.
const MAX_KEY_ID: usize = 1024;
/// The shortest life that tokens may have to be limited to.
const MIN_LIFE_SECONDS: i64 = 600;

mod messages {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct SignRequest {
        #[prost(string, tag = "1")]
        pub claims: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct SignResponse {
        #[prost(string, tag = "1")]
        pub header: String,
        #[prost(string, tag = "2")]
        pub signature: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Nothing {}

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct KeysResponse {
        #[prost(message, repeated, tag = "1")]
        pub keys: Vec<Key>,
        #[prost(message, optional, tag = "2")]
        pub data_timestamp: Option<Timestamp>,
        #[prost(int64, tag = "3")]
        pub refresh_hint_seconds: i64,
    }

    #[derive(Clone, Copy, PartialEq, prost::Message)]
    pub struct Timestamp {
        #[prost(int64, tag = "1")]
        pub seconds: i64,
        #[prost(int32, tag = "2")]
        pub nanos: i32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Key {
        #[prost(string, tag = "1")]
        pub id: String,
        /// PKIX.
        #[prost(bytes = "vec", tag = "2")]
        pub key: Vec<u8>,
        #[prost(bool, tag = "3")]
        pub exclude_from_oidc_discovery: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct MetadataResponse {
        #[prost(int64, tag = "1")]
        pub max_token_expiration_seconds: i64,
    }
}

use messages::{KeysResponse, MetadataResponse, Nothing, SignRequest, SignResponse, Timestamp};

pub struct JwtSigner {
    channel: Channel,
    /// What the signer's tokens are verified with.
    keys: Arc<ArcSwap<KeySet>>,
    /// When the keys are to be fetched again. Held while they are: whoever comes meanwhile gets what was fetched.
    refresh_at: Mutex<Instant>,
    metrics: SignerMetrics,
}

/// What the signer said of its keys.
#[derive(Debug)]
struct Fetched {
    keys: Vec<NamedKey>,
    refresh_in: Duration,
    /// Seconds of Unix time.
    data_of: f64,
}

impl JwtSigner {
    /// Connects, fetches the keys into `keys`, and asks how long tokens may live.
    pub async fn connect(
        socket: &str,
        keys: Arc<ArcSwap<KeySet>>,
        metrics: &SignerMetrics,
    ) -> Result<(Arc<JwtSigner>, Duration), String> {
        let failed = |why: String| format!("while setting up external-jwt-signer: {why}");
        let channel = channel(socket);
        let signer = JwtSigner { channel, keys, refresh_at: Mutex::new(Instant::now()), metrics: metrics.clone() };
        let filling = async {
            // A signer that is started with us may be there a little later.
            while let Err(status) = signer.call::<_, MetadataResponse>(METADATA, Nothing {}).await {
                if status.code() != tonic::Code::Unavailable {
                    break;
                }
                tokio::time::sleep(RECONNECT).await;
            }
            signer.fetch().await
        };
        let filled = tokio::time::timeout(FETCH_TIMEOUT, filling).await;
        let filled = filled.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        filled.map_err(|why| {
            failed(format!(
                "while initially filling key cache: while performing initial cache fill: while fetching token verification \
                 keys: {why}"
            ))
        })?;
        let metadata = signer.timed::<_, MetadataResponse>(METADATA_TIMEOUT, METADATA, Nothing {}).await;
        let seconds = metadata.map_err(|why| failed(why.text))?.max_token_expiration_seconds;
        if seconds < MIN_LIFE_SECONDS {
            return Err(format!(
                "max token life supported by external-jwt-signer ({seconds}s) is less than acceptable (min \
                 {MIN_LIFE_SECONDS}s)"
            ));
        }
        Ok((Arc::new(signer), Duration::from_secs(seconds.unsigned_abs())))
    }

    /// Fetches the keys as often as the signer wants it.
    pub fn follow(self: &Arc<Self>, tasks: &Tasks) {
        let signer = self.clone();
        tasks.spawn_until_stopped("external-jwt-signer", async move {
            loop {
                let next = *signer.refresh_at.lock().await;
                tokio::time::sleep_until(next.into()).await;
                if let Err(why) = signer.fetch().await {
                    tracing::error!(err = why, "keys of the external signer: those that are known stay");
                }
            }
        });
    }

    /// Seconds for which others may keep the keys.
    pub async fn keys_max_age(&self) -> u64 {
        self.refresh_at.lock().await.saturating_duration_since(Instant::now()).as_secs()
    }

    async fn fetch(&self) -> Result<(), String> {
        let mut refresh_at = self.refresh_at.lock().await;
        let fetched = match self.timed::<_, KeysResponse>(FETCH_TIMEOUT, FETCH_KEYS, Nothing {}).await {
            Ok(response) => read(response).map_err(CallError::unusable),
            Err(why) => Err(why.within("while getting externally supported jwt signing keys")),
        };
        self.metrics.fetched(fetched.as_ref().map(|fetched| fetched.data_of));
        *refresh_at = Instant::now() + fetched.as_ref().map_or(RETRY, |fetched| fetched.refresh_in);
        self.keys.store(Arc::new(KeySet::named(fetched.map_err(|why| why.text)?.keys)));
        Ok(())
    }

    /// Unless somebody else did it while we waited for our turn.
    async fn fetch_once(&self) {
        let before = self.keys.load_full();
        if self.refresh_at.try_lock().is_err() {
            drop(self.refresh_at.lock().await);
            if !Arc::ptr_eq(&before, &self.keys.load()) {
                return;
            }
        }
        if let Err(why) = self.fetch().await {
            tracing::error!(err = why, "keys of the external signer");
        }
    }

    async fn token(&self, claims: String) -> Result<String, String> {
        let signed = self.signed(claims).await;
        self.metrics.signed(&signed);
        signed.map_err(|why| why.text)
    }

    async fn signed(&self, claims: String) -> Result<String, CallError> {
        let request = SignRequest { claims: claims.clone() };
        let signed = self.timed::<_, SignResponse>(SIGN_TIMEOUT, SIGN, request).await;
        let SignResponse { header, signature } = signed.map_err(|why| why.within("while signing jwt"))?;
        let key_id = check_header(&header).map_err(|why| CallError::unusable(why).within("while validating header"))?;
        if !self.keys.load().has(&key_id) {
            self.fetch_once().await;
        }
        if self.keys.load().withholds(&key_id) {
            return Err(CallError::unusable(format!(
                "while validating header: key used for signing JWT (kid: {key_id}) is excluded from OIDC discovery docs"
            )));
        }
        if signature.is_empty() {
            return Err(CallError::unusable("empty signature returned"));
        }
        Ok(format!("{header}.{claims}.{signature}"))
    }

    async fn timed<Q, A>(&self, limit: Duration, method: &'static str, request: Q) -> Result<A, CallError>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        match tokio::time::timeout(limit, self.call(method, request)).await {
            Ok(answer) => answer.map_err(CallError::from),
            Err(_) => Err(tonic::Status::deadline_exceeded("context deadline exceeded").into()),
        }
    }

    async fn call<Q, A>(&self, method: &'static str, request: Q) -> Result<A, tonic::Status>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let begin = Instant::now();
        let outcome = self.answer(method, request).await;
        self.metrics.called(method, &outcome, begin.elapsed());
        outcome
    }

    async fn answer<Q, A>(&self, method: &'static str, request: Q) -> Result<A, tonic::Status>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = tonic::client::Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|why| tonic::Status::unavailable(why.to_string()))?;
        let codec = tonic_prost::ProstCodec::<Q, A>::default();
        let path = http::uri::PathAndQuery::from_static(method);
        Ok(grpc.unary(tonic::Request::new(request), path, codec).await?.into_inner())
    }
}

const SIGN: &str = "/v1.ExternalJWTSigner/Sign";
const FETCH_KEYS: &str = "/v1.ExternalJWTSigner/FetchKeys";
const METADATA: &str = "/v1.ExternalJWTSigner/Metadata";

impl ExternalSigner for JwtSigner {
    fn sign(&self, claims: String) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(self.token(claims))
    }

    fn refresh_keys(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.fetch_once())
    }
}

/// A channel that connects when it is used. A socket that begins with `@` is an abstract one.
fn channel(socket: &str) -> Channel {
    let path = match socket.strip_prefix('@') {
        Some(name) => format!("\0{name}"),
        None => socket.strip_prefix("unix://").unwrap_or(socket).to_owned(),
    };
    kubelith_outbound::grpc::unix(path.into())
}

fn read(response: KeysResponse) -> Result<Fetched, String> {
    let seconds = response.refresh_hint_seconds;
    if seconds <= 0 {
        return Err(format!("found invalid refresh hint ({seconds}s)"));
    }
    if response.keys.is_empty() {
        return Err("found no keys".to_owned());
    }
    let data_of = seconds_of(response.data_timestamp).map_err(|why| format!("invalid data timestamp: {why}"))?;
    let mut keys = Vec::with_capacity(response.keys.len());
    for key in response.keys {
        if key.id.is_empty() || key.id.len() > MAX_KEY_ID {
            return Err(format!("found invalid public key id {}", Quoted(&key.id)));
        }
        if key.key.is_empty() {
            return Err("found empty public key".to_owned());
        }
        let public =
            PublicKey::from_spki(&key.key).ok_or("while parsing external public keys: not a key known here")?;
        let publication = match key.exclude_from_oidc_discovery {
            true => Publication::Withheld,
            false => Publication::Published,
        };
        keys.push(NamedKey { id: key.id, key: public, publication });
    }
    Ok(Fetched { keys, refresh_in: Duration::from_secs(seconds.unsigned_abs()), data_of })
}

/// The years 1 to 9999 in seconds of Unix time: what a timestamp of protobuf may be.
const TIMESTAMPS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

fn seconds_of(timestamp: Option<Timestamp>) -> Result<f64, String> {
    let Some(Timestamp { seconds, nanos }) = timestamp else { return Err("invalid nil Timestamp".to_owned()) };
    let wrong = match () {
        () if seconds < *TIMESTAMPS.start() => "before 0001-01-01",
        () if seconds > *TIMESTAMPS.end() => "after 9999-12-31",
        () if !(0..1_000_000_000).contains(&nanos) => "has out-of-range nanos",
        () => return Ok(seconds as f64 + f64::from(nanos) / 1e9),
    };
    Err(format!("timestamp (seconds:{seconds} nanos:{nanos}) {wrong}"))
}

/// The id of the key, if the header has what it must have and nothing else.
fn check_header(header: &str) -> Result<String, String> {
    let bytes = URL_SAFE_NO_PAD.decode(header).map_err(|why| format!("while unwrapping header: {why}"))?;
    let value = json::parse(&bytes).map_err(|why| format!("while parsing header JSON: {why}"))?;
    let fields = value.as_object().ok_or("while parsing header JSON: not an object")?;
    if let Some(field) = fields.keys().find(|key| !["alg", "kid", "typ"].contains(key)) {
        return Err(format!("while parsing header JSON: json: unknown field {}", Quoted(field)));
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("typ") != "JWT" {
        return Err("bad type".to_owned());
    }
    match text("kid").len() {
        0 => return Err("key id missing".to_owned()),
        1..=MAX_KEY_ID => {}
        _ => return Err("key id longer than 1 kb".to_owned()),
    }
    match text("alg") {
        "RS256" | "ES256" | "ES384" | "ES512" => Ok(text("kid").to_owned()),
        other => Err(format!("bad signing algorithm {}", Quoted(other))),
    }
}

#[cfg(test)]
#[path = "external_signer_tests.rs"]
mod tests;
