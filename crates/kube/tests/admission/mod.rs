//! Admission plugins over the built-in resources, in the process and without sockets: each rule with a request that passes and
//! one that does not. What configures plugins, and the order of all of them, is tried with the real program.

mod nodes;
mod pods;

use crate::support::Server;
use kubelith_admission::Switches;
use kubelith_auth::traits::UserRules;
use kubelith_auth::{Answer, Attributes, Authorizer, Decision};
use kubelith_catalog::RuntimeConfig;
use kubelith_features::FeatureGates;
use kubelith_kube::Install;
use kubelith_meta::user::User;
use kubelith_store::MemoryStore;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Lets through what a function does.
struct May(fn(&Attributes) -> bool);

impl Authorizer for May {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        Answer::Ready(if (self.0)(attributes) { Decision::allow("") } else { Decision::no_opinion("") })
    }

    fn rules_for(&self, _: &User, _: &str) -> UserRules {
        UserRules::default()
    }
}

/// A server with these plugins and no others.
pub struct World {
    server: Server,
}

/// What a server is made of beside its plugins.
pub struct Setting {
    pub plugins: &'static [&'static str],
    /// Feature gates that are turned.
    pub turned: &'static [(&'static str, bool)],
    /// What the authorizer says that plugins ask.
    pub may: fn(&Attributes) -> bool,
}

impl World {
    pub async fn start(setting: Setting) -> World {
        let Setting { plugins, turned, may } = setting;
        let gates = Arc::new(move |gate: &str| {
            let turned = turned.iter().find(|(name, _)| *name == gate);
            turned.map_or_else(|| FeatureGates::default().enabled(gate), |(_, on)| *on)
        });
        let server = Server::with(Arc::new(MemoryStore::default()), |install| {
            let config = crate::support::admitted::config(&install.objects, Arc::new(May(may)), gates.clone());
            let names = plugins.iter().map(|name| (*name).to_owned()).collect();
            let chain = kubelith_admission::build(&config, &Switches::exactly(names)).unwrap();
            let all = BTreeMap::from([("api/all".to_owned(), "true".to_owned())]);
            let runtime_config = RuntimeConfig::parse(install.catalog, &all).unwrap();
            Install { admission: Arc::new(chain), gates, runtime_config, ..install }
        })
        .await;
        World { server }
    }

    /// As an administrator, who must succeed.
    pub async fn make(&self, method: &str, uri: &str, body: &Json) -> Json {
        let (code, answer) = self.ask("admin", method, uri, body).await;
        assert!(code < 300, "{method} {uri} {body}: {answer}");
        answer
    }

    pub async fn ask(&self, user: &str, method: &str, uri: &str, body: &Json) -> (u16, Json) {
        let groups: &[&str] = if user.starts_with("system:node:") { &["system:nodes"] } else { &[] };
        let user = User::named(user).with_groups(groups);
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (code, answer) = self.server.send_by(user, method.parse().unwrap(), uri, kind, &body).await;
        (code, serde_json::from_slice(&answer).unwrap_or_default())
    }

    /// Each request as one user.
    pub async fn check(&self, user: &str, cases: &[Case]) {
        for Case(method, uri, body, wanted) in cases {
            let (code, answer) = self.ask(user, method, uri, body).await;
            let message = answer["message"].as_str().unwrap_or_default();
            let fits = match wanted {
                Want::Passes => code < 300,
                Want::Admitted => code != 403,
                Want::Refused(why) => code == 403 && message.ends_with(why),
                Want::Code(wanted, why) => code == *wanted && message.ends_with(why),
            };
            assert!(fits, "{method} {uri} {body}:\n got {code} {message}\nwant {wanted:?}");
        }
    }
}

/// Method, path, body, and what must come of it.
pub struct Case(pub &'static str, pub String, pub Json, pub Want);

#[derive(Debug)]
pub enum Want {
    Passes,
    /// It may fail later, but not here.
    Admitted,
    /// With a message that ends so.
    Refused(String),
    Code(u16, String),
}

pub fn refused(why: &str) -> Want {
    Want::Refused(why.to_owned())
}

pub const DEFAULT: &str = "/api/v1/namespaces/default";

pub fn pod(name: &str, node: &str) -> Json {
    json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})
}

/// The object with other members.
pub fn merged(mut base: Json, more: &Json) -> Json {
    match (&mut base, more) {
        (Json::Object(base), Json::Object(more)) => {
            for (key, value) in more {
                let old = base.get(key).cloned().unwrap_or_default();
                base.insert(key.clone(), merged(old, value));
            }
        }
        (base, more) => *base = more.clone(),
    }
    base
}
