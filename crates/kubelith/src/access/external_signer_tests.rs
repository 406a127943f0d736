use super::*;
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubelith_observe::metrics::Registry;
use prost::Message;
use std::convert::Infallible;
use tokio::net::UnixListener;

#[test]
fn headers() {
    for (header, want) in [
        (r#"{"alg":"ES256","kid":"k","typ":"JWT"}"#, Ok("k")),
        (r#"{"alg":"ES256","kid":"k"}"#, Err("bad type")),
        (r#"{"alg":"ES256","typ":"JWT"}"#, Err("key id missing")),
        (r#"{"alg":"none","kid":"k","typ":"JWT"}"#, Err("bad signing algorithm \"none\"")),
        (r#"{"alg":"ES256","crit":[]}"#, Err("while parsing header JSON: json: unknown field \"crit\"")),
    ] {
        let got = check_header(&URL_SAFE_NO_PAD.encode(header));
        assert_eq!(got.as_deref().map_err(String::as_str), want, "{header}");
    }
    assert!(check_header("?").unwrap_err().starts_with("while unwrapping header"));
}

fn key(id: &str, key: &[u8]) -> messages::Key {
    messages::Key { id: id.to_owned(), key: key.to_vec(), exclude_from_oidc_discovery: false }
}

#[test]
fn keys_that_cannot_be_used_are_refused() {
    let some_time = Some(Timestamp { seconds: 1, nanos: 0 });
    let answer = |keys: Vec<messages::Key>, refresh_hint_seconds| {
        read(KeysResponse { keys, data_timestamp: some_time, refresh_hint_seconds })
    };
    assert_eq!(answer(vec![], 0).unwrap_err(), "found invalid refresh hint (0s)");
    assert_eq!(answer(vec![], 1).unwrap_err(), "found no keys");
    assert_eq!(answer(vec![key("", b"x")], 1).unwrap_err(), "found invalid public key id \"\"");
    assert_eq!(answer(vec![key("k", b"")], 1).unwrap_err(), "found empty public key");
    assert!(answer(vec![key("k", b"x")], 1).unwrap_err().starts_with("while parsing external public keys"));
    let timeless = KeysResponse { keys: vec![key("k", b"x")], data_timestamp: None, refresh_hint_seconds: 1 };
    assert_eq!(read(timeless).unwrap_err(), "invalid data timestamp: invalid nil Timestamp");
}

/// What a signer answers.
struct Answers {
    /// Of the key that signs.
    key_id: &'static str,
    public: Vec<u8>,
    life_seconds: i64,
}

/// A signer on a socket, which knows the keys `now` and `old`, of which the second only verifies.
fn start(answers: Answers) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("signer.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let answers = Arc::new(answers);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answers = answers.clone();
            let service = hyper::service::service_fn(move |request| respond(request, answers.clone()));
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    (folder, socket.display().to_string())
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

async fn respond(request: http::Request<Incoming>, answers: Arc<Answers>) -> Result<http::Response<Body>, Infallible> {
    let method = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let answer = match method.as_str() {
        METADATA => MetadataResponse { max_token_expiration_seconds: answers.life_seconds }.encode_to_vec(),
        FETCH_KEYS => {
            let old = messages::Key { exclude_from_oidc_discovery: true, ..key("old", &answers.public) };
            let data_timestamp = Some(Timestamp { seconds: 7, nanos: 500_000_000 });
            let keys = vec![key("now", &answers.public), old];
            KeysResponse { keys, data_timestamp, refresh_hint_seconds: 600 }.encode_to_vec()
        }
        SIGN => {
            let asked = SignRequest::decode(body.slice(5..)).unwrap();
            assert_eq!(asked.claims, "Y2xhaW1z");
            let header = format!(r#"{{"alg":"ES256","kid":"{}","typ":"JWT"}}"#, answers.key_id);
            SignResponse { header: URL_SAFE_NO_PAD.encode(header), signature: "c2ln".into() }.encode_to_vec()
        }
        other => panic!("unknown method {other}"),
    };
    // A message in gRPC: a byte for compression, four for the length.
    let mut framed = vec![0];
    framed.extend_from_slice(&(answer.len() as u32).to_be_bytes());
    framed.extend_from_slice(&answer);
    let trailers = http::HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
    let frames = [Frame::data(Bytes::from(framed)), Frame::trailers(trailers)].map(Ok::<_, Infallible>);
    let body = BodyExt::boxed(StreamBody::new(futures::stream::iter(frames)));
    Ok(http::Response::builder().header("content-type", "application/grpc").body(body).unwrap())
}

fn public() -> Vec<u8> {
    rcgen::PublicKeyData::subject_public_key_info(&rcgen::KeyPair::generate().unwrap())
}

#[tokio::test]
async fn a_signer_signs_and_tells_its_keys() {
    let (_folder, socket) = start(Answers { key_id: "now", public: public(), life_seconds: 3600 });
    let (keys, registry) = (Arc::<ArcSwap<KeySet>>::default(), Registry::new());
    let (signer, longest) = JwtSigner::connect(&socket, keys.clone(), &SignerMetrics::new(&registry)).await.unwrap();
    assert_eq!(longest, Duration::from_secs(3600));
    assert!(keys.load().has("now") && keys.load().has("old"));
    assert!(!keys.load().jwks_json().contains("old"));
    assert!((590..=600).contains(&signer.keys_max_age().await));
    let token = signer.sign("Y2xhaW1z".into()).await.unwrap();
    assert!(token.ends_with(".Y2xhaW1z.c2ln"), "{token}");
    keys.store(Arc::default());
    signer.refresh_keys().await;
    assert!(keys.load().has("now"));
    let counted =
        kubelith_observe::metrics::prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    for line in [
        "apiserver_externaljwt_fetch_keys_data_timestamp 7.5",
        "apiserver_externaljwt_fetch_keys_request_total{code=\"OK\"} 2",
        "apiserver_externaljwt_sign_request_total{code=\"OK\"} 1",
        "apiserver_externaljwt_request_duration_seconds_count{code=\"OK\",method=\"/v1.ExternalJWTSigner/Sign\"} 1",
    ] {
        assert!(counted.lines().any(|counted| counted == line), "{line} in {counted}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_published_must_not_sign() {
    let (_folder, socket) = start(Answers { key_id: "old", public: public(), life_seconds: 3600 });
    let (signer, _) = JwtSigner::connect(&socket, Arc::default(), &SignerMetrics::new(&Registry::new())).await.unwrap();
    let refused = signer.sign("Y2xhaW1z".into()).await.unwrap_err();
    let want = "while validating header: key used for signing JWT (kid: old) is excluded from OIDC discovery docs";
    assert_eq!(refused, want);
}

#[tokio::test]
async fn a_signer_of_short_lived_tokens_is_refused() {
    let (_folder, socket) = start(Answers { key_id: "now", public: public(), life_seconds: 599 });
    let refused =
        JwtSigner::connect(&socket, Arc::default(), &SignerMetrics::new(&Registry::new())).await.err().unwrap();
    assert_eq!(refused, "max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)");
}
