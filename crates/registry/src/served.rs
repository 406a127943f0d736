//! Built-in kinds where no other program reads the store: kept as readers get them, so that a write renders its object
//! once, and a start reads what it is going to send.
//!
//! ```text
//! "klj\0"  rules u64  labels u32  fields u32  where the resourceVersion goes u32
//! (length u32, text) of each label's key and value, and of each selectable field
//! JSON of the object, its resourceVersion being ""
//! ```
//! Integers are little endian. `rules` tells apart the rules by which an object was completed: its release, its gates. What
//! was written by other rules than today's is read as any JSON is, and completed by today's.

use bytes::Bytes;
use kubelith_meta::Str;
use kubelith_store::cache::Rendered;

/// Neither JSON nor YAML nor protobuf in an envelope begins so.
const PREFIX: &[u8] = b"klj\0";

/// Grows with a change of what is read from the store: of defaults, conversions, or the canonical form.
const FORM: &str = "1";

/// The number of the rules by which objects are completed, given what they depend on besides this program's release.
pub fn rules<'a>(dependencies: impl IntoIterator<Item = &'a str>) -> u64 {
    let release = [env!("CARGO_PKG_VERSION"), FORM];
    // FNV-1a, each part with an end of its own.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in release.into_iter().chain(dependencies) {
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash
}

/// The bytes to store of an object whose resourceVersion is empty; `None` if it has none.
pub(crate) fn write(rules: u64, rendered: &Rendered) -> Option<Bytes> {
    let at = rendered.version.clone()?;
    let texts = || rendered.labels.iter().flat_map(|(key, value)| [key, value]).chain(&rendered.fields);
    let room = PREFIX.len() + 8 + 3 * 4 + texts().map(|text| 4 + text.len()).sum::<usize>() + rendered.json.len();
    // The store keeps these bytes, and so no more than these.
    let mut out = Vec::with_capacity(room);
    out.extend_from_slice(PREFIX);
    out.extend_from_slice(&rules.to_le_bytes());
    for number in [rendered.labels.len(), rendered.fields.len(), at.start] {
        put(&mut out, number)?;
    }
    for text in texts() {
        put(&mut out, text.len())?;
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(rendered.json.get(..at.start)?);
    out.extend_from_slice(rendered.json.get(at.end..)?);
    Some(out.into())
}

fn put(out: &mut Vec<u8>, number: usize) -> Option<()> {
    out.extend_from_slice(&u32::try_from(number).ok()?.to_le_bytes());
    Some(())
}

/// Whether something is stored in this form.
pub fn is_served(stored: &[u8]) -> bool {
    stored.starts_with(PREFIX)
}

/// The JSON of an object that is stored in this form, its resourceVersion being empty.
pub fn json(stored: &[u8]) -> Result<&[u8], String> {
    Parts(stored).read().map(|served| served.json).ok_or_else(malformed)
}

/// What readers get of it at a revision, if it was written by these rules.
pub(crate) fn rendered(stored: &[u8], rules: u64, revision: i64) -> Result<Option<Rendered>, String> {
    let served = Parts(stored).read().ok_or_else(malformed)?;
    if served.rules != rules {
        return Ok(None);
    }
    let (before, behind) = served.json.split_at_checked(served.at).ok_or_else(malformed)?;
    let text = revision.to_string();
    Ok(Some(Rendered {
        json: [before, text.as_bytes(), behind].concat(),
        version: Some(served.at..served.at + text.len()),
        labels: served.labels,
        fields: served.fields,
        is_foreign: false,
    }))
}

fn malformed() -> String {
    "the stored object is cut off or damaged".to_owned()
}

struct Served<'a> {
    rules: u64,
    labels: Vec<(Str, Str)>,
    fields: Vec<Str>,
    /// Where the resourceVersion goes.
    at: usize,
    json: &'a [u8],
}

/// What is left to read.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn read(mut self) -> Option<Served<'a>> {
        self.take(PREFIX.len()).filter(|prefix| *prefix == PREFIX)?;
        let rules = u64::from_le_bytes(self.take(8)?.try_into().ok()?);
        let (labels, fields, at) = (self.number()?, self.number()?, self.number()?);
        // Numbers that are wrong end with the bytes: nothing is reserved for what is not there.
        let labels = (0..labels).map(|_| Some((self.text()?, self.text()?))).collect::<Option<_>>()?;
        let fields = (0..fields).map(|_| self.text()).collect::<Option<_>>()?;
        Some(Served { rules, labels, fields, at, json: self.0 })
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }

    fn text(&mut self) -> Option<Str> {
        let len = self.number()?;
        std::str::from_utf8(self.take(len)?).ok().map(Str::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Rendered {
        let json = br#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":""}}"#.to_vec();
        let at = json.len() - 3;
        Rendered {
            version: Some(at..at),
            json,
            labels: vec![("app".into(), "web".into()), ("empty".into(), "".into())],
            fields: vec!["node-1".into(), "".into()],
            is_foreign: false,
        }
    }

    #[test]
    fn what_is_written_is_read_at_its_revision() {
        let stored = write(7, &pod()).unwrap();
        assert!(is_served(&stored) && !is_served(b"k8s\0") && !is_served(b"{}"));
        assert_eq!(json(&stored).unwrap(), pod().json);
        let read = rendered(&stored, 7, 42).unwrap().unwrap();
        assert_eq!(read.json, br#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"42"}}"#);
        assert_eq!(&read.json[read.version.clone().unwrap()], b"42");
        assert_eq!((read.labels, read.fields), (pod().labels, pod().fields));
    }

    #[test]
    fn an_older_resource_version_is_not_stored() {
        let mut older = pod();
        let at = older.version.clone().unwrap().start;
        older.json.splice(at..at, *b"41");
        older.version = Some(at..at + 2);
        assert_eq!(write(7, &older), write(7, &pod()));
    }

    #[test]
    fn other_rules_have_another_number_and_read_it_anew() {
        assert_eq!(rendered(&write(7, &pod()).unwrap(), 8, 42).unwrap(), None);
        let numbers = [rules([]), rules(["1.36"]), rules(["1.3", "6"]), rules(["1.36", ""])];
        let different: std::collections::BTreeSet<u64> = numbers.into();
        assert_eq!(different.len(), numbers.len());
        assert_eq!(rules(["1.36"]), rules(["1.36"]));
    }

    #[test]
    fn what_is_cut_off_or_damaged_is_an_error() {
        let stored = write(7, &pod()).unwrap();
        let head = stored.len() - pod().json.len();
        for end in PREFIX.len()..head {
            assert!(json(&stored[..end]).is_err(), "{end}");
        }
        let mut damaged = stored.to_vec();
        for place in [12, 16, 20] {
            damaged[place..place + 4].fill(0xff);
            assert!(rendered(&damaged, 7, 1).is_err(), "{place}");
        }
    }
}
