//! Checks recorded pairs of JSON and protobuf against the codec: `cargo run --example pairs -- <folder>`.
//!
//! The folder holds `<group>.<version>.<Kind>.json` and `.pb` files of fully populated objects. Each JSON file must
//! encode to exactly the bytes of its partner, and those must decode to the same JSON.

use kubelith_codec::json::{self, Strictness};
use kubelith_codec::object::object_json;
use kubelith_codec::{proto, typed};
use kubelith_meta::GroupVersionKind;
use kubelith_schema::{Empties, canonicalize};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).expect("usage: pairs <folder>");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder can be read")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".json").map(str::to_owned))
        .collect();
    names.sort();
    let (mut good, mut bad, mut unknown) = (0, 0, 0);
    for name in &names {
        match check(Path::new(&folder), name) {
            None => {
                unknown += 1;
                println!("{name}: not in the catalogue");
            }
            Some(Ok(())) => good += 1,
            Some(Err(e)) => {
                bad += 1;
                println!("{name}: {e}");
            }
        }
    }
    println!("{good} good, {bad} bad, {unknown} not in the catalogue");
    if bad > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn check(folder: &Path, name: &str) -> Option<Result<(), String>> {
    let text = std::fs::read(folder.join(format!("{name}.json"))).ok()?;
    let bytes = std::fs::read(folder.join(format!("{name}.pb"))).ok()?;
    let meta = json::type_meta(&text).ok()?;
    let gvk: GroupVersionKind = if meta.kind.is_empty() {
        // A kind that does not say so (WatchEvent): the file's name does.
        let mut words = name.rsplit('.');
        let (kind, version) = (words.next()?, words.next()?);
        GroupVersionKind::new("", version, kind)
    } else {
        meta.group_version().ok()?.with_kind(meta.kind)
    };
    let schema = kubelith_catalog::builtin().kind_schema(&gvk)?;
    Some((|| {
        let decoded = typed::decode(&text, &schema, Strictness::Report).map_err(|e| e.to_string())?;
        if !decoded.strict.is_empty() {
            return Err(format!("{:?}", decoded.strict));
        }
        let encoded = proto::to_vec(&decoded.value, &schema).map_err(|e| e.to_string())?;
        if encoded != bytes {
            let at = encoded.iter().zip(&bytes).position(|(a, b)| a != b).unwrap_or(encoded.len().min(bytes.len()));
            return Err(format!(
                "protobuf differs at byte {at}: {} != {}",
                String::from_utf8_lossy(&encoded[at.saturating_sub(40)..(at + 40).min(encoded.len())]),
                String::from_utf8_lossy(&bytes[at.saturating_sub(40)..(at + 40).min(bytes.len())])
            ));
        }
        if proto::from_json(&object_json(&decoded.value), &schema) != Some(encoded) {
            return Err("protobuf differs when made of text".to_owned());
        }
        let mut back = proto::from_slice(&bytes, &schema).map_err(|e| e.to_string())?;
        canonicalize(&schema.table, &schema.root, &mut back, Empties::Absent);
        let want = json::parse(&text).map_err(|e| e.to_string())?;
        if json::to_string(&back) != json::to_string(&want) {
            return Err(format!("JSON differs:\n  {}\n  {}", json::to_string(&back), json::to_string(&want)));
        }
        Ok(())
    })())
}
