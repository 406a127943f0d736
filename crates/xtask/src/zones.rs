//! Packs the tz database into the table of time zones that expressions in CEL use (`crates/cel/src/libraries/zones.bin`;
//! `zones.rs` beside it tells the form).

use crate::run::{command, root, run, target};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Where systems keep the database as text.
const DATABASE: &str = "/usr/share/zoneinfo/tzdata.zi";

/// `zones [tzdata.zi]`: compiles the database with `zic`, without what the last rule of a zone says anyway, and packs it.
pub fn make(arguments: &[String]) -> Result<(), String> {
    let database = arguments.first().map_or_else(|| PathBuf::from(DATABASE), PathBuf::from);
    let folder = target().join("zones");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    run(command("zic").args(["-b", "slim", "-d"]).arg(&folder).arg(&database))?;
    let mut zones = Vec::new();
    collect(&folder, "", &mut zones)?;
    zones.sort();
    let table = pack(&zones)?;
    let path = root().join("crates/cel/src/libraries/zones.bin");
    std::fs::write(&path, &table).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("{}: {} zones, {} bytes", path.display(), zones.len(), table.len());
    Ok(())
}

/// The zones in a folder, with the data of each.
fn collect(folder: &Path, prefix: &str, found: &mut Vec<(String, Vec<u8>)>) -> Result<(), String> {
    let told = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        // No place has this time.
        if name == "Factory" {
            continue;
        }
        if path.is_dir() {
            collect(&path, &name, found)?;
            continue;
        }
        let file = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        found.push((name.clone(), zone(&file).ok_or_else(|| format!("{name}: not a compiled zone"))?));
    }
    Ok(())
}

fn number(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len();
    bytes.iter().fold(0, |n, b| n << 8 | i64::from(*b)) << unused >> unused
}

/// The changes of a compiled zone (RFC 9636): the part with times of 64 bits, and the rule behind it.
fn zone(file: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 44;
    let counts = |at: usize| -> Option<Vec<usize>> {
        let header = file.get(at..at + HEADER).filter(|h| h.starts_with(b"TZif"))?;
        Some(header[20..].chunks(4).map(|n| number(n) as usize).collect())
    };
    let first = counts(0)?;
    let [utc, standard, leaps, times, types, letters] = first[..] else { return None };
    let start = HEADER + times * 5 + types * 6 + letters + leaps * 8 + standard + utc;
    let second = counts(start)?;
    let [utc, standard, leaps, times, types, letters] = second[..] else { return None };
    let at_times = start + HEADER;
    let (at_types, at_infos) = (at_times + times * 8, at_times + times * 9);
    let rule_at = at_infos + types * 6 + letters + leaps * 12 + standard + utc;
    let info = |i: usize| file.get(at_infos + i * 6..at_infos + i * 6 + 6);
    let used = file.get(at_types..at_types + times)?;
    // Before the first change: the first kind of time, unless it is one of those that come later and not standard time.
    let is_free = |i: &usize| !used.contains(&(*i as u8)) || info(*i).is_some_and(|info| info[4] == 0);
    let before = (0..types).find(is_free).unwrap_or(0);
    let mut changes: Vec<(i64, i64)> = Vec::with_capacity(times);
    let mut offset = number(&info(before)?[..4]);
    for (i, kind) in used.iter().enumerate() {
        let second = number(file.get(at_times + i * 8..at_times + i * 8 + 8)?);
        let next = number(&info(usize::from(*kind))?[..4]);
        // Where only the name of the time changes nothing does; the last one stays, for the rule holds from it on.
        if next != offset || i + 1 == times {
            changes.push((second, next));
        }
        offset = next;
    }
    let mut data = info(before)?[..4].to_vec();
    data.extend(u16::try_from(changes.len()).ok()?.to_be_bytes());
    for (second, offset) in changes {
        data.extend(&second.to_be_bytes()[3..]);
        data.extend(&offset.to_be_bytes()[5..]);
    }
    let rule = file.get(rule_at..)?.strip_prefix(b"\n")?.split(|b| *b == b'\n').next()?;
    data.push(u8::try_from(rule.len()).ok()?);
    data.extend(rule);
    Some(data)
}

/// Records, names, data; zones that are the same share theirs.
fn pack(zones: &[(String, Vec<u8>)]) -> Result<Vec<u8>, String> {
    let (mut records, mut names, mut data) = (Vec::new(), Vec::new(), Vec::new());
    let mut known: HashMap<&[u8], u32> = HashMap::new();
    let large = |_| "the table is too large for its form".to_owned();
    for (name, own) in zones {
        let place = *known.entry(own).or_insert_with(|| {
            let place = data.len() as u32;
            data.extend(own);
            place
        });
        records.extend(u16::try_from(names.len()).map_err(large)?.to_be_bytes());
        records.push(u8::try_from(name.len()).map_err(large)?);
        records.extend(place.to_be_bytes());
        names.extend(name.as_bytes());
    }
    let count = u16::try_from(zones.len()).map_err(large)?;
    Ok([&count.to_be_bytes()[..], &records, &names, &data].concat())
}
