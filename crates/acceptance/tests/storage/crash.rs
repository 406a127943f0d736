//! Kills a server under load at random moments: what it acknowledged is there after the next start, in order, and a
//! watch that goes on from where it was cut sees every change once.

use super::support::{Api, Server, Site, config_map, revision};
use kubelith_meta::time::unix_time;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: usize = 4;
/// Few, so that most writes change or delete something.
const NAMES_PER_WRITER: usize = 5;

/// What was acknowledged: by name, the revision and the value, or `None` if it was deleted.
type Acked = BTreeMap<String, (i64, Option<String>)>;

/// All that is known of the history.
#[derive(Default)]
struct Record {
    last: Acked,
    /// Every acknowledged revision, with its name.
    writes: BTreeMap<i64, String>,
}

impl Record {
    fn note(&mut self, name: &str, at: i64, value: Option<String>) {
        self.writes.insert(at, name.to_owned());
        self.last.insert(name.to_owned(), (at, value));
    }
}

/// Writes until the server is gone.
fn write(mut api: Api, writer: usize, seed: usize, record: &Mutex<Record>, count: &AtomicUsize) -> std::io::Result<()> {
    for i in 0.. {
        let name = format!("w{writer}-{}", (seed + i) % NAMES_PER_WRITER);
        let path = format!("{CONFIG_MAPS}/{name}");
        let value = format!("{seed}.{i}.{}", "x".repeat(i * 37 % 2000));
        let (code, found) = api.try_send("GET", &path, None)?;
        let (code, object) = match code {
            404 => api.try_send("POST", CONFIG_MAPS, Some(&config_map(&name, &value)))?,
            200 if i % 7 == 6 => {
                let (code, status) = api.try_send("DELETE", &path, None)?;
                assert_eq!(code, 200, "{status}");
                // The answer does not tell the revision of the deletion; it is later than the object's.
                record.lock().unwrap().last.insert(name, (revision(&found), None));
                count.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            200 => {
                let mut object = found;
                object["data"]["value"] = value.clone().into();
                api.try_send("PUT", &path, Some(&object))?
            }
            _ => panic!("{code} {found}"),
        };
        assert!(matches!(code, 200 | 201), "{code} {object}");
        record.lock().unwrap().note(&name, revision(&object), Some(value));
        count.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// One life of a server: load until `until` writes are acknowledged and a moment more, then the kill. Answers the
/// events of a watch that began after `from`.
fn live(
    server: Server,
    from: i64,
    seed: usize,
    until: usize,
    pause: Duration,
    record: &Arc<Mutex<Record>>,
) -> Vec<Value> {
    let count = Arc::new(AtomicUsize::new(0));
    let watching = {
        let api = server.client();
        std::thread::spawn(move || api.watch_to_end(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}")))
    };
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (api, record, count) = (server.client(), record.clone(), count.clone());
            std::thread::spawn(move || write(api, writer, seed, &record, &count).unwrap_err())
        })
        .collect();
    super::support::wait_until("enough is written", || count.load(Ordering::Relaxed) >= until);
    // Somewhere between two commits, or in one.
    std::thread::sleep(pause);
    server.kill();
    for writer in writers {
        writer.join().unwrap();
    }
    // A kill may come before the watch is answered: then the watch of the next life sees all.
    watching.join().unwrap().unwrap_or_default()
}

fn rounds(rounds: u32) {
    let seed = unix_time().subsec_nanos();
    println!("seed {seed}");
    let mut random = seed | 1;
    let site = Site::new(&[]);
    let record = Arc::new(Mutex::new(Record::default()));
    let mut events: Vec<Value> = Vec::new();
    let server = site.start();
    let mut from = revision(&server.client().get(CONFIG_MAPS).1);
    server.stop();
    for round in 0..rounds {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        let server = site.start();
        let pause = Duration::from_micros(u64::from(random % 5_000));
        let until = (random >> 16) as usize % 60 + 1;
        events.extend(live(server, from, round as usize * 1000, until, pause, &record));
        from = events.last().map_or(from, |event| revision(&event["object"]).max(from));
        let server = site.start();
        // What was written last is what a watch sees last.
        let mut api = server.client();
        let end = api.create(CONFIG_MAPS, &config_map(&format!("end-{round}"), ""));
        let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
        let mut tail = api.watch_until(&path, |event| event["object"]["metadata"] == end["metadata"]);
        tail.pop();
        events.append(&mut tail);
        from = revision(&end);
        verify(&mut api, &record.lock().unwrap(), &events);
        server.stop();
    }
    let (ok, said) = site.store(&["check"]);
    assert!(ok, "{said}");
    println!("{rounds} rounds, {} events", events.len());
}

fn verify(api: &mut Api, record: &Record, events: &[Value]) {
    let revisions: Vec<i64> = events
        .iter()
        .map(|event| {
            assert_ne!(event["type"], "ERROR", "{event}");
            revision(&event["object"])
        })
        .collect();
    assert!(revisions.is_sorted_by(|a, b| a < b), "events are out of order");
    for (at, name) in &record.writes {
        let place = revisions.binary_search(at).unwrap_or_else(|_| panic!("{name} at {at} was never seen"));
        assert_eq!(events[place]["object"]["metadata"]["name"], **name);
    }
    // The events, one after another, lead to what is stored.
    let mut state: BTreeMap<&str, &Value> = BTreeMap::new();
    for event in events {
        let name = event["object"]["metadata"]["name"].as_str().unwrap();
        match event["type"].as_str().unwrap() {
            "DELETED" => drop(state.remove(name).expect("what is deleted was there")),
            "ADDED" => assert!(state.insert(name, &event["object"]).is_none(), "{name} was there already"),
            _ => assert!(state.insert(name, &event["object"]).is_some(), "{name} was not there"),
        }
    }
    let (_, list) = api.get(CONFIG_MAPS);
    let stored: Vec<(&str, i64, &Value)> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| (o["metadata"]["name"].as_str().unwrap(), revision(o), &o["data"]))
        .collect();
    let followed: Vec<(&str, i64, &Value)> = state.iter().map(|(name, o)| (*name, revision(o), &o["data"])).collect();
    let ours: Vec<_> = stored.into_iter().filter(|(name, ..)| name.starts_with('w')).collect();
    assert_eq!(ours, followed);
    for (name, (at, value)) in &record.last {
        // A write under way at the kill may have come after the last one acknowledged, never before it.
        match (state.get(name.as_str()), value) {
            (Some(object), Some(value)) if revision(object) == *at => assert_eq!(object["data"]["value"], **value),
            (Some(object), _) => assert!(revision(object) > *at, "{name} went back from {at}"),
            (None, Some(_)) => assert!(
                events.iter().any(|e| e["type"] == "DELETED"
                    && e["object"]["metadata"]["name"] == **name
                    && revision(&e["object"]) > *at),
                "{name} at {at} is lost"
            ),
            (None, None) => {}
        }
    }
}

#[test]
fn a_killed_server_loses_nothing() {
    rounds(10);
}

#[test]
#[ignore = "takes minutes"]
fn a_server_killed_often_loses_nothing() {
    rounds(200);
}
