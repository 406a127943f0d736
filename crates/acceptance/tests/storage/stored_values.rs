//! What lies in etcd is, byte for byte, what kube-apiserver stores for the same objects.

use super::support::Site;
use kubelith_store::Store;
use kubelith_store::etcd::server::Cluster;
use kubelith_store::etcd::{EtcdOptions, EtcdStore};
use serde_json::Value;
use std::collections::BTreeSet;

const EXPECTED: &str = include_str!("stored_values.txt");
/// Fields that hold the time of the request.
const TIMES: [&str; 3] = ["creationTimestamp", "time", "startTime"];

/// Values with what differs from run to run replaced: uids, and times in both of their forms.
fn masked(mut value: Vec<u8>, object: &Value) -> Vec<u8> {
    replace(&mut value, object["metadata"]["uid"].as_str().unwrap().as_bytes(), &[b'U'; 36]);
    let mut times = BTreeSet::new();
    find_times(object, &mut times);
    for time in times {
        let seconds = kubelith_meta::time::Time::parse(time).unwrap().unix_seconds();
        let encoded = [vec![8], varint(seconds as u64)].concat();
        replace(&mut value, &encoded, b"\x08TTTTT");
        replace(&mut value, time.as_bytes(), &[b'T'; 20]);
    }
    value
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    for at in 0..=bytes.len().saturating_sub(from.len()) {
        if bytes[at..].starts_with(from) {
            bytes[at..at + from.len()].copy_from_slice(to);
        }
    }
}

fn find_times<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| TIMES.contains(&name.as_str())) {
                    Some(time) => drop(found.insert(time)),
                    None => find_times(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_times(item, found)),
        _ => {}
    }
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 128 {
        out.push(number as u8 & 127 | 128);
        number >>= 7;
    }
    out.push(number as u8);
    out
}

#[test]
fn values_are_those_of_kube_apiserver() {
    let etcd = Cluster::start(1, &[]);
    let site =
        Site::new(&[&format!("--etcd-servers={}", etcd.endpoints()[0]), "--service-cluster-ip-range=10.0.0.0/16"]);
    let server = site.start();
    let mut api = server.client();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(async { EtcdStore::new(EtcdOptions::new(etcd.endpoints())).unwrap() });
    let mut compared = 0;
    for case in EXPECTED.split("\n\n").skip(1) {
        let [path, body, key, value] = case.trim().lines().collect::<Vec<_>>()[..] else { panic!("{case}") };
        let made = api.create(path, &serde_json::from_str(body).unwrap());
        let item = runtime.block_on(store.get(key.to_owned().into(), None)).unwrap().item;
        let stored = masked(item.unwrap_or_else(|| panic!("nothing is stored at {key}")).value.to_vec(), &made);
        let expected = kubelith_codec::base64::decode(value).unwrap();
        assert!(stored == expected, "{key}:\n{}\n{}", stored.escape_ascii(), expected.escape_ascii());
        compared += 1;
    }
    assert!(compared > 20);
    runtime.block_on(store.close());
}
