//! Wants an APIService for each group version that a CustomResourceDefinition serves.

use crate::api_service::{Managed, group_version_of};
use crate::autoregister::{AutoRegister, Knowledge, Local};
use kubelith_codec::json::{self, Select};
use kubelith_meta::{Str, Value};
use kubelith_server::controller::{Change, Next};
use kubelith_store::cache::CachedObject;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

/// Custom resources come after everything built in.
const GROUP_PRIORITY: i32 = 1000;
/// One for all, so that versions are sorted by their names.
const VERSION_PRIORITY: i32 = 100;

pub struct CrdRegistration {
    registrations: Arc<AutoRegister>,
    served: Mutex<Served>,
}

/// Which definitions serve which APIServices: definitions are large and are read once per change.
#[derive(Default)]
struct Served {
    by_definition: HashMap<Str, BTreeSet<Str>>,
    /// How many definitions serve a name.
    counts: HashMap<Str, usize>,
    /// Definitions that are there and cannot be read: nobody knows what they serve.
    unread: BTreeSet<Str>,
}

impl Served {
    /// Takes in what a definition serves, if that can be told. What it served before is kept if not.
    fn change(&mut self, definition: Str, names: Option<BTreeSet<Str>>) -> BTreeSet<Str> {
        match names {
            Some(names) => {
                self.unread.remove(&definition);
                self.replace(definition, names)
            }
            None => {
                self.unread.insert(definition);
                BTreeSet::new()
            }
        }
    }

    /// Names whose count may have changed.
    fn replace(&mut self, definition: Str, names: BTreeSet<Str>) -> BTreeSet<Str> {
        for name in &names {
            *self.counts.entry(name.clone()).or_default() += 1;
        }
        let mut touched = names.clone();
        let old = match names.is_empty() {
            true => self.by_definition.remove(&definition),
            false => self.by_definition.insert(definition, names),
        };
        for name in old.unwrap_or_default() {
            if let Some(count) = self.counts.get_mut(&name) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&name);
                }
            }
            touched.insert(name);
        }
        touched
    }
}

impl CrdRegistration {
    pub fn new(registrations: Arc<AutoRegister>) -> Arc<CrdRegistration> {
        Arc::new(CrdRegistration { registrations, served: Mutex::default() })
    }

    /// Takes note of a change; the names of the APIServices that it concerns.
    pub fn changed(&self, change: &Change) -> Vec<Str> {
        let names = change.new.as_deref().map_or(Some(BTreeSet::new()), served_names);
        let mut served = self.served.lock().expect("no panic under this lock");
        let touched = served.change(change.key(), names).into_iter().collect();
        let all_read = served.unread.is_empty();
        drop(served);
        self.registrations.set_knowledge(if all_read { Knowledge::Complete } else { Knowledge::Partial });
        touched
    }

    pub async fn reconcile(self: Arc<Self>, name: Str) -> Result<Next, String> {
        let is_served = self.served.lock().expect("no panic under this lock").counts.contains_key(&name);
        match is_served {
            true => {
                let gv = group_version_of(&name);
                let local = Local { gv, group_priority: GROUP_PRIORITY, version_priority: VERSION_PRIORITY };
                self.registrations.want(local, Managed::Always);
            }
            false => self.registrations.unwant(&name),
        }
        Ok(Next::Done)
    }
}

/// What is read of a definition: nothing of the schemas, which are almost all of it.
static SERVED: Select = Select::Members(&[(
    "spec",
    Select::Members(&[
        ("group", Select::All),
        ("versions", Select::Each(&Select::Members(&[("name", Select::All), ("served", Select::All)]))),
    ]),
)]);

/// The APIServices of the versions that a definition serves; `None` if it cannot be read.
fn served_names(crd: &CachedObject) -> Option<BTreeSet<Str>> {
    let value = json::parse_selected(&crd.json(), &SERVED).ok()?;
    let group = value.str_at(&["spec", "group"]);
    let versions = value.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or(&[]);
    let served = |v: &&Value| v.get("served").and_then(Value::as_bool).unwrap_or(false);
    Some(versions.iter().filter(served).map(|v| format!("{}.{group}", v.str_at(&["name"])).into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_served_until_its_last_definition_goes() {
        let mut served = Served::default();
        let set = |names: &[&str]| names.iter().map(|n| Str::from(*n)).collect::<BTreeSet<_>>();
        assert_eq!(served.replace("a".into(), set(&["v1.g", "v2.g"])), set(&["v1.g", "v2.g"]));
        assert_eq!(served.replace("b".into(), set(&["v1.g"])), set(&["v1.g"]));
        assert_eq!(served.replace("a".into(), set(&["v2.g"])), set(&["v1.g", "v2.g"]));
        assert!(served.counts.contains_key("v1.g"));
        assert_eq!(served.replace("b".into(), set(&[])), set(&["v1.g"]));
        assert!(!served.counts.contains_key("v1.g"));
        assert_eq!(served.by_definition.len(), 1);
    }

    #[test]
    fn what_cannot_be_read_takes_nothing_away() {
        let mut served = Served::default();
        let set = |names: &[&str]| names.iter().map(|n| Str::from(*n)).collect::<BTreeSet<_>>();
        served.change("a".into(), Some(set(&["v1.g"])));
        assert_eq!(served.change("a".into(), None), set(&[]));
        assert!(served.counts.contains_key("v1.g") && served.unread.contains("a"));
        assert_eq!(served.change("a".into(), Some(set(&[]))), set(&["v1.g"]));
        assert!(served.counts.is_empty() && served.unread.is_empty());
    }
}
