//! Every endpoint there is, asked by somebody without rights: 403, in the reference's words.

use super::{ALICE, bearer, header, raw};
use crate::support::Server;
use kubelith_conformance::http::{Address, Client, Request};

pub fn nobody_gets_anywhere_without_rights(server: &Server) {
    let aggregated = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList";
    // One connection: a thousand handshakes would take longer than a thousand requests.
    let address = Address::parse(&format!("https://127.0.0.1:{}", server.port)).unwrap();
    let mut client = Client::new(address);
    let mut asked = 0;
    for root in ["/api", "/apis"] {
        let headers = [bearer(super::TOKEN), header("accept", aggregated)];
        let groups = raw::send(server.address(), None, "GET", root, &headers, "").json();
        for group in groups["items"].as_array().unwrap() {
            let name = group["metadata"]["name"].as_str().unwrap_or("");
            for version in group["versions"].as_array().unwrap() {
                let prefix = if name.is_empty() { root.to_owned() } else { format!("{root}/{name}") };
                let prefix = format!("{prefix}/{}", version["version"].as_str().unwrap());
                for resource in version["resources"].as_array().unwrap() {
                    asked += walk(&mut client, &prefix, name, resource);
                }
            }
        }
    }
    assert!(asked > 500, "{asked} endpoints are too few");
}

/// Asks for all verbs of a resource and its subresources.
fn walk(client: &mut Client, prefix: &str, group: &str, resource: &serde_json::Value) -> usize {
    let plural = resource["resource"].as_str().unwrap();
    let namespaced = resource["scope"] == "Namespaced";
    let collection = if namespaced { format!("{prefix}/namespaces/ns/{plural}") } else { format!("{prefix}/{plural}") };
    let mut asked = 0;
    for verb in texts(&resource["verbs"]) {
        asked += usize::from(refused(
            client,
            &Endpoint { verb, collection: &collection, group, plural, sub: "", namespaced },
        ));
    }
    for sub in resource["subresources"].as_array().map_or(&[][..], Vec::as_slice) {
        let name = sub["subresource"].as_str().unwrap();
        for verb in texts(&sub["verbs"]) {
            let endpoint = Endpoint { verb, collection: &collection, group, plural, sub: name, namespaced };
            asked += usize::from(refused(client, &endpoint));
        }
    }
    asked
}

fn texts(list: &serde_json::Value) -> impl Iterator<Item = &str> {
    list.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(|v| v.as_str())
}

struct Endpoint<'a> {
    verb: &'a str,
    collection: &'a str,
    group: &'a str,
    plural: &'a str,
    sub: &'a str,
    namespaced: bool,
}

/// Whether there was something to refuse; a wrong answer is a panic.
fn refused(client: &mut Client, endpoint: &Endpoint<'_>) -> bool {
    let Endpoint { verb, collection, group, plural, sub, namespaced } = *endpoint;
    // Everybody may ask about themselves.
    if verb == "create" && plural.starts_with("selfsubject") {
        return false;
    }
    let named = !sub.is_empty() || matches!(verb, "get" | "update" | "patch" | "delete");
    // A namespace is its own namespace.
    let own_namespace = plural == "namespaces" && named;
    let (method, query) = match verb {
        "get" | "list" => ("GET", ""),
        "watch" => ("GET", "?watch=1"),
        "create" => ("POST", ""),
        "update" => ("PUT", ""),
        "patch" => ("PATCH", ""),
        "delete" | "deletecollection" => ("DELETE", ""),
        other => panic!("{other} is a new verb"),
    };
    let mut path = collection.to_owned();
    if named {
        path.push_str("/x");
    }
    if !sub.is_empty() {
        path.push_str(&format!("/{sub}"));
    }
    let request =
        Request { method: method.into(), path: format!("{path}{query}"), headers: vec![bearer(ALICE)], body: None };
    let answer = client.send(&request).unwrap();
    let status: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let message = status["message"].as_str().unwrap_or_default().to_owned();
    let qualified = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let subject = if named { format!("{qualified} \"x\"") } else { qualified };
    let resource = if sub.is_empty() { plural.to_owned() } else { format!("{plural}/{sub}") };
    let scope = match (namespaced, own_namespace) {
        (true, _) => "in the namespace \"ns\"".to_owned(),
        (false, true) => "in the namespace \"x\"".to_owned(),
        (false, false) => "at the cluster scope".to_owned(),
    };
    let want = format!(
        "{subject} is forbidden: User \"alice\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {scope}"
    );
    assert_eq!((answer.status, message), (403, want), "{method} {path}{query}");
    true
}
