//! The garbage collector against a model: trees of owners are made and deleted at random, by several clients at once and
//! over restarts. In the end exactly what the model keeps is there; and nothing that has a live owner is ever missing.

use super::api::{Api, config_map};
use crate::support::Server;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const FLAGS: [&str; 2] = ["--storage-backend=embedded", "--controllers=garbage-collector-controller"];
/// Trees that change at once.
const CLIENTS: usize = 4;
/// Between two restarts.
const STEPS: usize = 25;
const LIVES: usize = 3;

/// Numbers that look like chance and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// Who should be there, and whom each is owned by.
#[derive(Default)]
struct Model {
    owners: BTreeMap<String, BTreeSet<String>>,
}

impl Model {
    fn create(&mut self, name: &str, owners: BTreeSet<String>) {
        self.owners.insert(name.to_owned(), owners);
    }

    /// Dependents that lose their last owner follow; with `orphan` those of this one stay, without a reference to it.
    fn delete(&mut self, name: &str, orphan: bool) {
        self.owners.remove(name);
        let dependents: Vec<String> =
            self.owners.iter().filter(|(_, owners)| owners.contains(name)).map(|(name, _)| name.clone()).collect();
        for dependent in dependents {
            let Some(owners) = self.owners.get_mut(&dependent) else { continue };
            owners.remove(name);
            if owners.is_empty() && !orphan {
                self.delete(&dependent, false);
            }
        }
    }
}

struct Player {
    id: usize,
    dice: Dice,
    model: Model,
    made: usize,
}

impl Player {
    fn namespace(&self) -> String {
        format!("n{}", self.id)
    }

    fn maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace())
    }

    async fn play(&mut self, server: &Server) {
        let mut api = Api::of(server).await;
        for _ in 0..STEPS {
            let names: Vec<String> = self.model.owners.keys().cloned().collect();
            if names.len() < 4 || self.dice.roll(4) > 0 {
                self.create(&mut api, &names).await;
            } else {
                let name = names[self.dice.roll(names.len())].clone();
                let policy = ["Background", "Foreground", "Orphan"][self.dice.roll(3)];
                let path = format!("{}/{name}", self.maps());
                api.delete(&path, policy).await;
                // Who is made to forget an owner must have done so before it loses another.
                if policy != "Background" {
                    api.gone(server, &path).await;
                }
                self.model.delete(&name, policy == "Orphan");
            }
            self.nothing_is_missing(&mut api).await;
        }
    }

    async fn create(&mut self, api: &mut Api, names: &[String]) {
        let name = format!("m{}", self.made);
        self.made += 1;
        let mut owners = BTreeMap::new();
        for _ in 0..self.dice.roll(3).min(names.len()) {
            let owner = &names[self.dice.roll(names.len())];
            // Whoever reads an owner that is there may refer to it.
            let object = api.get(&format!("{}/{owner}", self.maps())).await;
            let object = object.unwrap_or_else(|| panic!("{owner} has a live owner, or none, and is gone"));
            owners.insert(owner.clone(), object);
        }
        let references: Vec<&Value> = owners.values().collect();
        let object = match self.dice.roll(2) {
            0 => config_map(&name, &references),
            _ => super::api::blocking(&name, &references),
        };
        api.create(&self.maps(), object).await;
        self.model.create(&name, owners.into_keys().collect());
    }

    async fn nothing_is_missing(&self, api: &mut Api) {
        let there: BTreeSet<String> = api.names(&self.maps()).await.into_iter().collect();
        let missing: Vec<&String> = self.model.owners.keys().filter(|name| !there.contains(*name)).collect();
        assert!(missing.is_empty(), "{missing:?} were deleted");
    }

    async fn agrees(&self, server: &Server) {
        let mut api = Api::of(server).await;
        let want: BTreeSet<&str> = self.model.owners.keys().map(String::as_str).collect();
        let same = |list: Option<&Value>| {
            let items = list.and_then(|l| l["items"].as_array()).cloned().unwrap_or_default();
            let names: BTreeSet<String> =
                items.iter().map(|i| i["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect();
            names.iter().map(String::as_str).collect::<BTreeSet<_>>() == want
        };
        api.until(server, &self.maps(), same).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_with_a_live_owner_goes_and_everything_else_does() {
    let mut server = Server::start(&FLAGS);
    let mut players: Vec<Player> = (0..CLIENTS)
        .map(|id| Player { id, dice: Dice(0x9e37_79b9_7f4a_7c15 ^ (id as u64 + 1)), model: Model::default(), made: 0 })
        .collect();
    for player in &players {
        let mut api = Api::of(&server).await;
        api.create("/api/v1/namespaces", serde_json::json!({"metadata": {"name": player.namespace()}})).await;
    }
    for life in 0..LIVES {
        let playing = players.iter_mut().map(|player| player.play(&server));
        futures::future::join_all(playing).await;
        // Some restarts come while there is work left, one comes without a warning.
        server.signal(if life == 1 { "KILL" } else { "TERM" });
        server.restart(&FLAGS);
    }
    for player in &players {
        player.agrees(&server).await;
    }
}
