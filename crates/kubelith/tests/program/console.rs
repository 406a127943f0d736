//! The console over HTTP: who is shown what, and what a session is good for. Its page in a browser is tested by `tests/console`.

use crate::support::Server;
use kubelith_conformance::http::{Address, Client, Request, Response};
use serde_json::{Value, json};

fn send(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Response {
    let address = Address::parse(&format!("https://127.0.0.1:{}", server.port)).unwrap();
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let request = Request { method: method.into(), path: path.into(), headers, body: body.map(Into::into) };
    Client::new(address).send(&request).unwrap()
}

fn header<'r>(response: &'r Response, name: &str) -> &'r str {
    let found = response.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map_or("", |(_, value)| value.as_str())
}

fn json(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap_or_default()
}

/// A session of the administrator: its cookie and its key.
fn session(server: &Server) -> (String, String) {
    let link = json(&server.post("/kubelith/v1/links", "").unwrap());
    let code = link["path"].as_str().unwrap().split_once("#code=").unwrap().1;
    let body = json!({ "code": code }).to_string();
    let opened = send(server, "POST", "/console/session", &[("X-Kubelith-Console", "1")], Some(&body));
    assert_eq!(opened.status, 201, "{}", String::from_utf8_lossy(&opened.body));
    let cookie = header(&opened, "set-cookie").split(';').next().unwrap().to_owned();
    (cookie, json(&opened)["key"].as_str().unwrap().to_owned())
}

#[test]
fn without_the_flag_nothing_is_there() {
    let server = Server::start(&[]);
    for path in ["/console", "/console/", "/console/app.js", "/kubelith/v1/now"] {
        assert_eq!(server.get(path).unwrap().status, 404, "{path}");
        assert_eq!(send(&server, "GET", path, &[], None).status, 403, "{path}");
    }
}

#[test]
fn the_page_is_for_everybody_and_nothing_else_is() {
    let server = Server::start(&["--enable-console"]);
    let page = send(&server, "GET", "/console/", &[], None);
    assert_eq!((page.status, header(&page, "content-type")), (200, "text/html; charset=utf-8"));
    for (name, value) in [
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        assert_eq!(header(&page, name), value);
    }
    let policy = header(&page, "content-security-policy");
    for words in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"] {
        assert!(policy.contains(words), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let etag = header(&page, "etag");
    assert_eq!(send(&server, "GET", "/console/", &[("If-None-Match", etag)], None).status, 304);
    let moved = send(&server, "GET", "/console", &[], None);
    assert_eq!((moved.status, header(&moved, "location")), (308, "/console/"));
    for path in ["/console/nothing.js", "/console/../api", "/console/%2e%2e/api"] {
        assert_eq!(send(&server, "GET", path, &[], None).status, 404, "{path}");
    }
    assert_eq!(send(&server, "POST", "/console/", &[], Some("x")).status, 405);
    for path in ["now", "extensions", "denials", "store", "history?resource=secrets", "dependents?uid=x", "backup"] {
        let path = format!("/kubelith/v1/{path}");
        assert_eq!(send(&server, "GET", &path, &[], None).status, 403, "{path}");
    }
    assert_eq!(send(&server, "POST", "/kubelith/v1/links", &[], None).status, 403);
    assert!(
        !String::from_utf8(server.get("/").unwrap().body).unwrap().contains("console"),
        "the index is kube-apiserver's"
    );
}

#[test]
fn a_session_needs_its_cookie_and_its_key() {
    let server = Server::start(&["--enable-console"]);
    let (cookie, key) = session(&server);
    let get = |headers: &[(&str, &str)]| send(&server, "GET", "/api/v1/secrets", headers, None).status;
    assert_eq!(get(&[("Cookie", &cookie), ("X-Kubelith-Console", &key)]), 200);
    assert_eq!(get(&[("Cookie", &cookie)]), 403, "another site can send it");
    assert_eq!(get(&[("Cookie", &cookie), ("X-Kubelith-Console", "1")]), 403);
    assert_eq!(get(&[("X-Kubelith-Console", &key)]), 403);
    let site = ("Sec-Fetch-Site", "cross-site");
    assert_eq!(get(&[("Cookie", &cookie), ("X-Kubelith-Console", &key), site]), 403);
    // Writes, too, and as who the session belongs to.
    let both =
        [("Cookie", cookie.as_str()), ("X-Kubelith-Console", key.as_str()), ("Content-Type", "application/json")];
    let review = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let me = json(&send(&server, "POST", path, &both, Some(review)));
    assert_eq!(me["status"]["userInfo"]["username"], "admin");
    // Signing in needs the header that no form can send.
    assert_eq!(send(&server, "POST", "/console/session", &[], Some(r#"{"code":"x"}"#)).status, 400);
    let one = [("X-Kubelith-Console", "1")];
    assert_eq!(send(&server, "POST", "/console/session", &one, Some(r#"{"code":"x"}"#)).status, 401);
    assert_eq!(send(&server, "POST", "/console/session", &one, Some("no JSON")).status, 400);
    let cross = [("X-Kubelith-Console", "1"), ("Sec-Fetch-Site", "same-site")];
    assert_eq!(send(&server, "POST", "/console/session", &cross, Some(r#"{"code":"x"}"#)).status, 400);
    assert_eq!(send(&server, "DELETE", "/console/session", &both, None).status, 200);
    assert_eq!(get(&both), 403, "it has ended");
}

#[test]
fn the_paths_tell_what_they_are_for() {
    let server = Server::start(&["--enable-console"]);
    let map = |name: &str, value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}}).to_string()
    };
    let path = "/api/v1/namespaces/default/configmaps";
    let parent = json(&server.post(path, &map("parent", "one")).unwrap());
    let uid = parent["metadata"]["uid"].as_str().unwrap();
    let mut child: Value = serde_json::from_str(&map("child", "x")).unwrap();
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": uid}]);
    assert_eq!(server.post(path, &child.to_string()).unwrap().status, 201);
    assert_eq!(server.put(&format!("{path}/parent"), &map("parent", "two")).unwrap().status, 200);

    let get = |path: &str| json(&server.get(&format!("/kubelith/v1/{path}")).unwrap());
    let found = get(&format!("dependents?uid={uid}"));
    assert_eq!((found["items"][0]["name"].as_str(), found["items"].as_array().unwrap().len()), (Some("child"), 1));
    let past = get("history?resource=configmaps&namespace=default&name=parent");
    let told: Vec<_> =
        past["items"].as_array().unwrap().iter().map(|v| (&v["type"], &v["object"]["data"]["a"])).collect();
    assert_eq!(told, [(&json!("MODIFIED"), &json!("two")), (&json!("ADDED"), &json!("one"))]);
    server.delete(&format!("{path}/parent")).unwrap();
    let gone = get("history?resource=configmaps&namespace=default");
    assert_eq!(gone["items"][0]["name"], "parent");
    assert_eq!(gone["items"][0].get("object"), None, "a list of what went shows no contents");

    let stored = get("store");
    let maps = stored["resources"].as_array().unwrap().iter().find(|r| r["resource"] == "configmaps").unwrap();
    assert!(maps["objects"].as_u64() >= Some(1) && maps["bytes"].as_u64() > Some(100), "{maps}");
    assert!(stored["largest"].as_array().unwrap().len() > 5);
    let now = get("now");
    let mine =
        now["running"].as_array().unwrap().iter().any(|r| r["path"] == "/kubelith/v1/now" && r["user"] == "admin");
    assert!(mine, "who asks is being served: {}", now["running"]);
    assert!(now["requests"].as_array().unwrap().iter().any(|r| r["resource"] == "configmaps" && r["verb"] == "PUT"));
    assert_eq!(server.get("/kubelith/v1/backup").unwrap().status, 400, "nothing is on disk");
    assert_eq!(server.post("/kubelith/v1/now", "").unwrap().status, 405);

    send(&server, "GET", "/api/v1/nodes", &[], None);
    let denied = get("denials");
    let first = &denied["items"][0];
    assert_eq!(
        (&first["user"], &first["resource"], &first["count"]),
        (&json!("system:anonymous"), &json!("nodes"), &json!(1))
    );
}

#[test]
fn the_past_of_an_object_is_for_those_who_may_read_it() {
    let server = Server::start(&["--enable-console"]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "console"},
        "rules": [{"nonResourceURLs": ["/kubelith/v1/*"], "verbs": ["get"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "console"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "console"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]});
    for (path, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{path}");
        assert_eq!(server.post(&path, &object.to_string()).unwrap().status, 201);
    }
    let bob = [("Authorization", "Bearer admintoken"), ("Impersonate-User", "bob")];
    assert_eq!(send(&server, "GET", "/kubelith/v1/store", &bob, None).status, 200);
    let path = "/kubelith/v1/history?resource=secrets&namespace=default&name=x";
    assert_eq!(send(&server, "GET", path, &bob, None).status, 403);
    let root = json(&server.get("/api/v1/namespaces/default").unwrap());
    let uid = root["metadata"]["uid"].as_str().unwrap();
    assert_eq!(send(&server, "GET", &format!("/kubelith/v1/dependents?uid={uid}"), &bob, None).status, 200);
}
