//! The subjects of a set of routes: what is served is what is published.

use super::{DeleteAnswer, Detail, Published, Subject};
use crate::api::{Routes, Served};
use kubelith_meta::Str;
use std::collections::BTreeSet;

impl Subject {
    /// The documents of these routes: of each group version, of each group, and those that list them.
    pub fn of_routes(routes: &Routes) -> Vec<Subject> {
        let mut subjects = vec![Subject::Groups, Subject::Release];
        let groups: BTreeSet<&Str> = routes.versions.keys().map(|gv| &gv.group).collect();
        for group in groups {
            subjects.push(if group.is_empty() { Subject::Core } else { Subject::Group(group.clone()) });
        }
        for (gv, resources) in &routes.versions {
            subjects.push(Subject::Version(gv.clone(), resources.values().map(publish).collect()));
        }
        subjects
    }
}

fn publish(served: &Served) -> Published {
    let answers_object = served.endpoint.as_ref().is_some_and(|e| e.resource.strategy.delete_returns_object());
    Published {
        descriptor: served.descriptor.clone(),
        version_index: served.version_index,
        delete_answer: if answers_object { DeleteAnswer::Object } else { DeleteAnswer::Status },
        detail: Detail::Full,
        written: None,
    }
}
