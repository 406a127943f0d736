use super::*;
use crate::tests::{library, published};
use bytes::Bytes;
use http_body_util::BodyExt;
use kubelith_codec::json;
use kubelith_http::RequestBody;
use kubelith_meta::GroupVersion;

/// Serves the groups `apps` and `batch`.
fn openapi() -> Arc<OpenApi> {
    let openapi = OpenApi::new(library());
    openapi.put(["apps", "batch"].map(subject));
    openapi.put([Subject::Release]);
    openapi
}

fn subject(group: &str) -> Subject {
    let catalog = kubelith_catalog::builtin();
    let descriptors = catalog.descriptors.iter().filter(|d| d.group == group);
    Subject::Version(GroupVersion::new(group, "v1"), descriptors.map(|d| published(d.clone(), 0)).collect())
}

async fn get(openapi: &Arc<OpenApi>, path: &str, headers: &[(HeaderName, &str)]) -> (StatusCode, HeaderMap, Bytes) {
    let mut request = http::Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let response = openapi
        .before(Arc::new(|_: Request| Reply::Ready(respond::not_found())))
        .handle(request.body(RequestBody::Full(None)).unwrap().into())
        .await;
    let (parts, body) = response.into_parts();
    (parts.status, parts.headers, body.collect().await.unwrap().to_bytes())
}

async fn urls(openapi: &Arc<OpenApi>) -> BTreeMap<String, String> {
    let (status, headers, body) = get(openapi, "/openapi/v3", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers[CONTENT_TYPE], "text/plain; charset=utf-8");
    let index = json::parse(&body).unwrap();
    let paths = index.get("paths").and_then(|p| p.as_object()).unwrap().iter();
    paths.map(|(path, entry)| (path.to_owned(), entry.str_at(&["serverRelativeURL"]).to_owned())).collect()
}

#[tokio::test]
async fn the_index_leads_to_documents_that_may_be_kept() {
    let openapi = openapi();
    let urls = urls(&openapi).await;
    assert_eq!(urls.keys().collect::<Vec<_>>(), ["apis/apps/v1", "apis/batch/v1", "version"]);
    for (path, url) in &urls {
        let (status, headers, body) = get(&openapi, url, &[]).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert_eq!(headers[CONTENT_TYPE], "application/json");
        assert_eq!(headers[CACHE_CONTROL], "public, immutable");
        assert!(headers[EXPIRES].to_str().unwrap().ends_with(" UTC"));
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA512, &body);
        let hash: String = hash.as_ref().iter().map(|b| format!("{b:02X}")).collect();
        assert!(url.ends_with(&format!("?hash={hash}")), "{url}");
        assert_eq!(headers[ETAG], format!("\"{hash}\""));
        let (status, headers, _) = get(&openapi, &format!("/openapi/v3/{path}"), &[]).await;
        assert_eq!((status, headers.get(CACHE_CONTROL)), (StatusCode::OK, None));
    }
}

#[tokio::test]
async fn a_wrong_hash_is_sent_to_the_right_one() {
    let openapi = openapi();
    let (status, headers, body) = get(&openapi, "/openapi/v3/version?hash=WRONG", &[]).await;
    assert_eq!((status, body.len()), (StatusCode::MOVED_PERMANENTLY, 0));
    assert_eq!(headers[LOCATION], urls(&openapi).await["version"]);
}

#[tokio::test]
async fn clients_that_have_it_get_nothing() {
    let openapi = openapi();
    for path in ["/openapi/v3/version", "/openapi/v2"] {
        let (_, headers, _) = get(&openapi, path, &[]).await;
        let tag = headers[ETAG].to_str().unwrap();
        let modified = headers[LAST_MODIFIED].to_str().unwrap();
        let cases = [
            (IF_NONE_MATCH, tag.to_owned(), true),
            (IF_NONE_MATCH, format!("W/{tag}"), true),
            (IF_NONE_MATCH, format!("\"other\", {tag}"), true),
            (IF_NONE_MATCH, "*".to_owned(), true),
            (IF_NONE_MATCH, "\"other\"".to_owned(), false),
            (IF_MODIFIED_SINCE, modified.to_owned(), true),
            (IF_MODIFIED_SINCE, "Thu, 01 Jan 1970 00:00:00 GMT".to_owned(), false),
        ];
        for (name, value, has) in cases {
            let (status, headers, body) = get(&openapi, path, &[(name.clone(), &value)]).await;
            assert_eq!(status == StatusCode::NOT_MODIFIED, has, "{name}: {value}");
            assert_eq!(body.is_empty(), has);
            assert_eq!(headers[ETAG], tag);
        }
    }
}

#[tokio::test]
async fn the_first_type_that_is_there_is_sent() {
    let openapi = openapi();
    let v3 = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
    let v2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let json = "application/json";
    let old = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
    let half = format!("{v3};q=0.5, application/json");
    let cases = [
        ("/openapi/v3/version", "", Some(json)),
        ("/openapi/v3/version", "*/*", Some(json)),
        ("/openapi/v3/version", "application/*", Some(json)),
        ("/openapi/v3/version", v3, Some(v3)),
        ("/openapi/v3/version", old, Some(v3)),
        ("/openapi/v3/version", &half, Some(json)),
        ("/openapi/v3/version", v2, None),
        ("/openapi/v3/version", "text/plain", None),
        ("/openapi/v2", v2, Some(v2)),
        ("/openapi/v2", "application/json;g=x", Some(json)),
        ("/openapi/v2", "text/html", None),
    ];
    for (path, accept, expected) in cases {
        let (status, headers, _) = get(&openapi, path, &[(ACCEPT, accept)]).await;
        let sent = (status == StatusCode::OK).then(|| headers[CONTENT_TYPE].to_str().unwrap());
        assert_eq!(sent, expected, "{path} as {accept}");
        assert_eq!(status == StatusCode::NOT_ACCEPTABLE, expected.is_none());
    }
}

#[tokio::test]
async fn compressed_or_not_it_is_the_same() {
    use std::io::Read as _;
    let openapi = openapi();
    let (_, headers, plain) = get(&openapi, "/openapi/v3/apis/apps/v1", &[]).await;
    assert!(headers.get(CONTENT_ENCODING).is_none());
    let (_, headers, packed) = get(&openapi, "/openapi/v3/apis/apps/v1", &[(ACCEPT_ENCODING, "gzip")]).await;
    assert_eq!(headers[CONTENT_ENCODING], "gzip");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == plain && packed.len() * 5 < plain.len(), "{} of {}", packed.len(), plain.len());
}

#[tokio::test]
async fn changes_show_in_the_document_they_are_about_and_in_version_two() {
    let openapi = openapi();
    let tag = async || get(&openapi, "/openapi/v2", &[]).await.1[ETAG].clone();
    let (before, v2) = (urls(&openapi).await, tag().await);
    let Subject::Version(gv, mut resources) = subject("batch") else { unreachable!() };
    resources.pop();
    openapi.put([Subject::Version(gv, resources)]);
    let after = urls(&openapi).await;
    assert_eq!(before["apis/apps/v1"], after["apis/apps/v1"]);
    assert_ne!(before["apis/batch/v1"], after["apis/batch/v1"]);
    assert_ne!(v2, tag().await);
    openapi.remove(["apis/batch/v1"]);
    let (status, _, body) = get(&openapi, "/openapi/v3/apis/batch/v1", &[]).await;
    assert_eq!((status, body.len()), (StatusCode::NOT_FOUND, 0));
    openapi.put([subject("batch")]);
    assert_eq!(before, urls(&openapi).await);
    assert_eq!(v2, tag().await);
}

#[tokio::test]
async fn documents_that_nobody_asks_for_are_dropped_and_made_again() {
    let openapi = openapi();
    let there = |path: &str| openapi.shelf().v3[path].has(Encoding::Json);
    let ask = async |path: &str| get(&openapi, &format!("/openapi/v3/{path}"), &[]).await.1[ETAG].clone();
    let tag = ask("apis/apps/v1").await;
    ask("apis/batch/v1").await;
    get(&openapi, "/openapi/v2", &[]).await;
    openapi.drop_unused();
    assert!(there("apis/apps/v1") && there("apis/batch/v1"), "they were asked for");
    ask("apis/batch/v1").await;
    openapi.drop_unused();
    assert!(!there("apis/apps/v1") && there("apis/batch/v1"));
    assert!(!openapi.shelf().v2.has(Encoding::Json));
    assert_eq!(ask("apis/apps/v1").await, tag);
    assert!(there("apis/apps/v1"));
}

#[tokio::test]
async fn other_paths_are_passed_on() {
    let openapi = openapi();
    for path in ["/openapi", "/openapi/v2/", "/openapi/v3x", "/apis"] {
        let (status, _, body) = get(&openapi, path, &[]).await;
        assert_eq!((status, &body[..]), (StatusCode::NOT_FOUND, &b"404 page not found\n"[..]), "{path}");
    }
    for path in ["/openapi/v3/", "/openapi/v3/nope", "/openapi/v3/version/"] {
        let (status, _, body) = get(&openapi, path, &[]).await;
        assert_eq!((status, body.len()), (StatusCode::NOT_FOUND, 0), "{path}");
    }
}

#[test]
fn dates_are_written_as_http_wants_them() {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_136_214_245);
    assert_eq!(date(time, "GMT"), "Mon, 02 Jan 2006 15:04:05 GMT");
}
