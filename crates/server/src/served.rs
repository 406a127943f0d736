//! What follows from what is served: the subjects that OpenAPI publishes, and what metrics count.

use kubelith_handlers::api::{Routes, Served};
use kubelith_meta::GroupVersion;
use kubelith_observe::metrics::requests::{Lasting, RequestMetrics};
use kubelith_openapi::discovery::{Discovery, Source};
use kubelith_openapi::{DeleteAnswer, Detail, Published, Renamed, Subject};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The documents of these routes: of each group version, of each group, and those that list them.
pub fn subjects(routes: &Routes) -> Vec<Subject> {
    let mut subjects = vec![Subject::Groups, Subject::Release];
    let groups: BTreeSet<&str> = routes.versions.keys().map(|gv| gv.group.as_str()).collect();
    for group in groups {
        subjects.push(if group.is_empty() { Subject::Core } else { Subject::Group(group.into()) });
    }
    for (gv, resources) in &routes.versions {
        subjects.push(Subject::Version(gv.clone(), resources.values().map(publish).collect()));
    }
    subjects
}

/// Counts only what discovery knows, from now on.
pub fn count_what_is_served(metrics: &RequestMetrics, discovery: Arc<Discovery>) {
    metrics.count_what_is_served(move |info| {
        let version = GroupVersion::new(info.group.clone(), info.version.clone());
        let server = discovery.server_of(&version, &info.resource, &info.subresource)?;
        Some(if server == Source::BuiltIn { Lasting::Always } else { Lasting::UntilRemoved })
    });
}

fn publish(served: &Served) -> Published {
    let answers_object = served.endpoint.as_ref().is_some_and(|e| e.resource.strategy.delete_returns_object());
    // A namespace is answered with as long as it is being finalized; published is what comes when it is not.
    let finalized = served.descriptor.versions[served.version_index].subresources.iter().any(|s| s.name == "finalize");
    Published {
        descriptor: served.descriptor.clone(),
        version_index: served.version_index,
        delete_answer: if answers_object && !finalized { DeleteAnswer::Object } else { DeleteAnswer::Status },
        detail: Detail::Full,
        written: None,
        renamed: Renamed::default(),
    }
}
