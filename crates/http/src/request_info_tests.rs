use super::*;

fn parse(method: &str, url: &str) -> RequestInfo {
    let uri: http::Uri = url.parse().unwrap();
    let path = query::decode_path(uri.path()).unwrap().into_owned();
    RequestInfo::parse(&Method::from_bytes(method.as_bytes()).unwrap(), &path, &uri).unwrap()
}

/// method, url, verb, prefix, group, version, namespace, resource, subresource, name, parts
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

#[test]
fn resource_requests() {
    let cases: &[Case] = &[
        ("GET", "/api/v1/namespaces", "list", "api", "", "v1", "", "namespaces", "", "", "namespaces"),
        (
            "GET",
            "/api/v1/namespaces/other",
            "get",
            "api",
            "",
            "v1",
            "other",
            "namespaces",
            "",
            "other",
            "namespaces/other",
        ),
        ("GET", "/api/v1/namespaces/other/pods", "list", "api", "", "v1", "other", "pods", "", "", "pods"),
        ("GET", "/api/v1/namespaces/other/pods/foo", "get", "api", "", "v1", "other", "pods", "", "foo", "pods/foo"),
        ("HEAD", "/api/v1/namespaces/other/pods/foo", "get", "api", "", "v1", "other", "pods", "", "foo", "pods/foo"),
        ("GET", "/api/v1/pods", "list", "api", "", "v1", "", "pods", "", "", "pods"),
        ("HEAD", "/api/v1/pods", "list", "api", "", "v1", "", "pods", "", "", "pods"),
        // Special verbs.
        (
            "GET",
            "/api/v1/proxy/namespaces/other/pods/foo",
            "proxy",
            "api",
            "",
            "v1",
            "other",
            "pods",
            "",
            "foo",
            "pods/foo",
        ),
        (
            "GET",
            "/api/v1/proxy/namespaces/other/pods/foo/sub/not/a/sub",
            "proxy",
            "api",
            "",
            "v1",
            "other",
            "pods",
            "",
            "foo",
            "pods/foo/sub/not/a/sub",
        ),
        ("GET", "/api/v1/watch/pods", "watch", "api", "", "v1", "", "pods", "", "", "pods"),
        ("GET", "/api/v1/watch/namespaces/other/pods", "watch", "api", "", "v1", "other", "pods", "", "", "pods"),
        ("GET", "/api/v1/namespaces/other/pods?watch=1", "watch", "api", "", "v1", "other", "pods", "", "", "pods"),
        ("GET", "/api/v1/namespaces/other/pods?watch=0", "list", "api", "", "v1", "other", "pods", "", "", "pods"),
        ("GET", "/api/v1/namespaces/other/pods?watch", "watch", "api", "", "v1", "other", "pods", "", "", "pods"),
        (
            "GET",
            "/api/v1/namespaces/other/pods?watch=False&limit=x",
            "list",
            "api",
            "",
            "v1",
            "other",
            "pods",
            "",
            "",
            "pods",
        ),
        // Subresources.
        (
            "GET",
            "/api/v1/namespaces/other/pods/foo/status",
            "get",
            "api",
            "",
            "v1",
            "other",
            "pods",
            "status",
            "foo",
            "pods/foo/status",
        ),
        (
            "GET",
            "/api/v1/namespaces/other/pods/foo/proxy/and/other/stuff",
            "get",
            "api",
            "",
            "v1",
            "other",
            "pods",
            "proxy",
            "foo",
            "pods/foo/proxy/and/other/stuff",
        ),
        (
            "PUT",
            "/api/v1/namespaces/foo/finalize",
            "update",
            "api",
            "",
            "v1",
            "foo",
            "namespaces",
            "finalize",
            "foo",
            "namespaces/foo/finalize",
        ),
        (
            "PUT",
            "/api/v1/namespaces/foo/status",
            "update",
            "api",
            "",
            "v1",
            "foo",
            "namespaces",
            "status",
            "foo",
            "namespaces/foo/status",
        ),
        // Verbs.
        (
            "PATCH",
            "/api/v1/namespaces/other/pods/foo",
            "patch",
            "api",
            "",
            "v1",
            "other",
            "pods",
            "",
            "foo",
            "pods/foo",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/other/pods/foo",
            "delete",
            "api",
            "",
            "v1",
            "other",
            "pods",
            "",
            "foo",
            "pods/foo",
        ),
        ("POST", "/api/v1/namespaces/other/pods", "create", "api", "", "v1", "other", "pods", "", "", "pods"),
        (
            "DELETE",
            "/api/v1/namespaces/other/pods",
            "deletecollection",
            "api",
            "",
            "v1",
            "other",
            "pods",
            "",
            "",
            "pods",
        ),
        ("OPTIONS", "/api/v1/pods", "", "api", "", "v1", "", "pods", "", "", "pods"),
        // Groups.
        (
            "GET",
            "/apis/extensions/v1/namespaces/other/pods",
            "list",
            "apis",
            "extensions",
            "v1",
            "other",
            "pods",
            "",
            "",
            "pods",
        ),
        (
            "POST",
            "/apis/extensions/v1/namespaces/other/pods",
            "create",
            "apis",
            "extensions",
            "v1",
            "other",
            "pods",
            "",
            "",
            "pods",
        ),
        // Odd slashes and escapes.
        ("GET", "/api/v1/namespaces/other/pods/", "list", "api", "", "v1", "other", "pods", "", "", "pods"),
        ("GET", "/api/v1/namespaces//pods", "list", "api", "", "v1", "", "pods", "", "", "pods"),
        ("GET", "/api/v1/pods%2Ffoo", "get", "api", "", "v1", "", "pods", "", "foo", "pods/foo"),
        // Names from selectors.
        (
            "GET",
            "/api/v1/namespaces/ns/pods?fieldSelector=metadata.name%3Dfoo",
            "list",
            "api",
            "",
            "v1",
            "ns",
            "pods",
            "",
            "foo",
            "pods",
        ),
        (
            "GET",
            "/api/v1/namespaces/ns/pods?watch=1&fieldSelector=a%3Db,metadata.name%3D%3Dfoo",
            "watch",
            "api",
            "",
            "v1",
            "ns",
            "pods",
            "",
            "foo",
            "pods",
        ),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name!%3Dfoo", "list", "api", "", "v1", "", "pods", "", "", "pods"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dfoo/", "list", "api", "", "v1", "", "pods", "", "", "pods"),
        (
            "GET",
            "/api/v1/pods?fieldSelector=metadata.name%3Dfoo&limit=x",
            "list",
            "api",
            "",
            "v1",
            "",
            "pods",
            "",
            "",
            "pods",
        ),
    ];
    for &(method, url, verb, prefix, group, version, namespace, resource, subresource, name, parts) in cases {
        let info = parse(method, url);
        assert!(info.is_resource_request, "{url}");
        let got = (
            info.verb.as_str(),
            info.api_prefix.as_str(),
            info.group.as_str(),
            info.version.as_str(),
            info.namespace.as_str(),
            info.resource.as_str(),
            info.subresource.as_str(),
            info.name.as_str(),
            info.parts.join("/"),
        );
        let want = (verb, prefix, group, version, namespace, resource, subresource, name, parts.to_owned());
        assert_eq!(got, want, "{method} {url}");
    }
}

#[test]
fn other_requests() {
    for (url, prefix) in [
        ("/", ""),
        ("/api", ""),
        ("/apis", ""),
        ("/api/v1", ""),
        ("/apis/group", ""),
        ("/apis/group/version", "apis"),
        ("/healthz", ""),
        ("/a/b/c/d", ""),
        ("/debug/pprof/heap", ""),
    ] {
        let info = parse("POST", url);
        assert!(!info.is_resource_request, "{url}");
        assert_eq!((info.verb.as_str(), info.api_prefix.as_str(), info.path.as_str()), ("post", prefix, url));
    }
}

#[test]
fn a_special_verb_needs_something_to_apply_to() {
    for url in ["/api/v1/watch", "/apis/apps/v1/proxy/"] {
        let uri: http::Uri = url.parse().unwrap();
        let error = RequestInfo::parse(&Method::GET, url, &uri).unwrap_err();
        assert_eq!(error.to_string(), format!("unable to determine kind and namespace from url, {url}"));
    }
}

#[test]
fn selectors_are_kept_for_collections_only() {
    let query = "?fieldSelector=spec.nodeName%3Dn&labelSelector=a%3Db";
    for (method, path, want) in [
        ("GET", "/api/v1/pods", ("spec.nodeName=n", "a=b")),
        ("DELETE", "/api/v1/namespaces/x/pods", ("spec.nodeName=n", "a=b")),
        ("GET", "/api/v1/watch/pods", ("", "")),
        ("GET", "/api/v1/namespaces/x/pods/p", ("", "")),
        ("POST", "/api/v1/namespaces/x/pods", ("", "")),
    ] {
        let info = parse(method, &format!("{path}{query}"));
        assert_eq!((info.field_selector.as_str(), info.label_selector.as_str()), want, "{method} {path}");
    }
}

#[test]
fn long_running() {
    for (url, want) in [
        ("/api/v1/pods?watch=1", true),
        ("/api/v1/namespaces/n/pods/p/log", true),
        ("/api/v1/namespaces/n/pods/p/exec", true),
        ("/api/v1/namespaces/n/pods/p/status", false),
        ("/api/v1/pods", false),
        ("/debug/pprof/profile", true),
        ("/healthz", false),
    ] {
        assert_eq!(parse("GET", url).is_long_running(), want, "{url}");
    }
}
