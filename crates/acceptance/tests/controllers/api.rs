//! Objects in JSON, over one connection or several.

use crate::support::client::{Connection, Protocol};
use crate::support::{LIMIT, Server};
use kubelith_conformance::pauses::Pauses;
use serde_json::{Value, json};
use std::time::Instant;

pub struct Api {
    connection: Connection,
}

impl Api {
    pub async fn of(server: &Server) -> Api {
        Api { connection: Connection::open(server.address(), Protocol::Http2).await.unwrap() }
    }

    pub async fn send(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let body = body.map(|b| b.to_string()).unwrap_or_default();
        let answer = self.connection.send(method, path, &body).await.unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }

    pub async fn text(&mut self, path: &str) -> String {
        let answer = self.connection.send("GET", path, "").await.unwrap();
        String::from_utf8(answer.body.to_vec()).unwrap()
    }

    pub async fn get(&mut self, path: &str) -> Option<Value> {
        let (status, object) = self.send("GET", path, None).await;
        (status == 200).then_some(object)
    }

    pub async fn create(&mut self, path: &str, object: Value) -> Value {
        let (status, answer) = self.send("POST", path, Some(object)).await;
        assert!(status == 201 || status == 200, "POST {path}: {status} {answer}");
        answer
    }

    pub async fn delete(&mut self, path: &str, policy: &str) {
        let options = (!policy.is_empty()).then(|| json!({"propagationPolicy": policy}));
        let (status, answer) = self.send("DELETE", path, options).await;
        assert!(status == 200 || status == 202, "DELETE {path}: {status} {answer}");
    }

    /// Patches with a merge patch by way of GET and PUT, since the connection speaks plain JSON.
    pub async fn change(&mut self, path: &str, change: impl Fn(&mut Value)) {
        loop {
            let mut object = self.get(path).await.unwrap_or_else(|| panic!("{path} is not there"));
            change(&mut object);
            let (status, answer) = self.send("PUT", path, Some(object)).await;
            if status != 409 {
                assert_eq!(status, 200, "PUT {path}: {answer}");
                return;
            }
        }
    }

    pub async fn names(&mut self, path: &str) -> Vec<String> {
        let list = self.get(path).await.unwrap_or_else(|| panic!("no list at {path}"));
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|i| i["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub async fn gone(&mut self, server: &Server, path: &str) {
        self.until(server, path, |object| object.is_none()).await;
    }

    /// Waits until an object, or its absence, is as it should be; answers it.
    pub async fn until(&mut self, server: &Server, path: &str, good: impl Fn(Option<&Value>) -> bool) -> Option<Value> {
        let (end, mut pauses) = (Instant::now() + LIMIT, Pauses::default());
        loop {
            let object = self.get(path).await;
            if good(object.as_ref()) {
                return object;
            }
            assert!(Instant::now() < end, "{path} is {object:#?}; the log:\n{}", server.log());
            tokio::time::sleep(pauses.next_pause()).await;
        }
    }
}

pub fn config_map(name: &str, owners: &[&Value]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": references(owners, false)}})
}

pub fn blocking(name: &str, owners: &[&Value]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": references(owners, true)}})
}

fn references(owners: &[&Value], blocks: bool) -> Vec<Value> {
    let reference = |owner: &&Value| {
        json!({
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        })
    };
    owners.iter().map(reference).collect()
}

/// The condition of a type in an object's status.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    const NONE: &Value = &Value::Null;
    let conditions = object["status"]["conditions"].as_array();
    conditions.and_then(|all| all.iter().find(|c| c["type"] == kind)).unwrap_or(NONE)
}
