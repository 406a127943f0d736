//! What the conditions of a namespace say about its end.

use super::content::Remaining;
use crate::condition::Condition;
use kubelith_meta::time::Time;
use kubelith_meta::{GroupVersionResource, Value};
use std::collections::BTreeMap;

/// What was found while the content was deleted.
#[derive(Debug, Default)]
pub struct Findings {
    /// Why not all resources are known.
    pub discovery: Option<String>,
    /// Why something could not be deleted.
    pub content: Vec<String>,
    resources: Vec<String>,
    finalizers: BTreeMap<String, usize>,
}

impl Findings {
    pub fn remains(&mut self, resource: &GroupVersionResource, remaining: &Remaining) {
        if remaining.count == 0 {
            return;
        }
        let (plural, group) = (&resource.resource, &resource.group);
        self.resources.push(format!("{plural}.{group} has {} resource instances", remaining.count));
        for (finalizer, count) in &remaining.finalizers {
            *self.finalizers.entry(finalizer.clone()).or_default() += count;
        }
    }

    /// False if the namespace says all that already.
    pub fn write(&mut self, namespace: &mut Value, now: Time) -> bool {
        let mut changed = false;
        for condition in self.conditions() {
            changed |= condition.set(namespace, now);
        }
        changed
    }

    fn conditions(&mut self) -> [Condition; 5] {
        self.content.sort();
        self.resources.sort();
        let finalizers: Vec<String> =
            self.finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances")).collect();
        let content = (!self.content.is_empty()).then(|| {
            let (count, all) = (self.content.len(), self.content.join(", "));
            format!("Failed to delete all resource types, {count} remaining: {all}")
        });
        let resources = (!self.resources.is_empty())
            .then(|| format!("Some resources are remaining: {}", self.resources.join(", ")));
        let finalizers = (!finalizers.is_empty())
            .then(|| format!("Some content in the namespace has finalizers remaining: {}", finalizers.join(", ")));
        let condition = |kind, bad: Option<String>, reason, good_reason, good: &str| match bad {
            Some(message) => Condition::new(kind, "True", reason, message),
            None => Condition::new(kind, "False", good_reason, good),
        };
        [
            condition(
                "NamespaceDeletionDiscoveryFailure",
                self.discovery.clone(),
                "DiscoveryFailed",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            // A version that cannot be parsed cannot come out of discovery here.
            condition(
                "NamespaceDeletionGroupVersionParsingFailure",
                None,
                "GroupVersionParsingFailed",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            condition(
                "NamespaceDeletionContentFailure",
                content,
                "ContentDeletionFailed",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            condition(
                "NamespaceContentRemaining",
                resources,
                "SomeResourcesRemain",
                "ContentRemoved",
                "All content successfully removed",
            ),
            condition(
                "NamespaceFinalizersRemaining",
                finalizers,
                "SomeFinalizersRemain",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wording() {
        let mut findings = Findings {
            discovery: Some("Discovery failed".to_owned()),
            content: vec!["b".to_owned(), "a".to_owned()],
            ..Findings::default()
        };
        let remaining = |n| Remaining { count: n, finalizers: [("x/y".to_owned(), n)].into(), estimate: 15 };
        findings.remains(&GroupVersionResource::new("", "v1", "secrets"), &remaining(2));
        findings.remains(&GroupVersionResource::new("apps", "v1", "deployments"), &remaining(1));
        findings.remains(&GroupVersionResource::new("apps", "v1", "daemonsets"), &Remaining::default());
        let told: Vec<_> =
            findings.conditions().map(|c| format!("{}={} {}: {}", c.kind, c.status, c.reason, c.message)).into();
        assert_eq!(
            told,
            [
                "NamespaceDeletionDiscoveryFailure=True DiscoveryFailed: Discovery failed",
                "NamespaceDeletionGroupVersionParsingFailure=False ParsedGroupVersions: All legacy kube types \
                 successfully parsed",
                "NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 2 \
                 remaining: a, b",
                "NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: deployments.apps \
                 has 1 resource instances, secrets. has 2 resource instances",
                "NamespaceFinalizersRemaining=True SomeFinalizersRemain: Some content in the namespace has finalizers \
                 remaining: x/y in 3 resource instances",
            ]
        );
        let mut namespace = Value::object();
        assert!(findings.write(&mut namespace, Time::from_unix(0)));
        assert!(!findings.write(&mut namespace, Time::from_unix(9)));
    }
}
