//! Role-based access control: an authorizer over roles and bindings, and the rules about changing them.

pub mod aggregate;
pub mod covers;
pub mod escalation;
pub mod index;
pub mod reconcile;
pub mod rule;
#[cfg(test)]
mod testing;

pub use index::{RBAC_GROUP, RbacIndex, RbacKind, RoleError, RoleRef};
pub use rule::PolicyRule;

use crate::traits::{Answer, Attributes, Authorizer, Decision, NonResourceRule, ResourceRule, UserRules};
use crate::user::User;
use std::sync::Arc;

/// Mode `RBAC`.
pub struct RbacAuthorizer {
    index: Arc<RbacIndex>,
}

impl RbacAuthorizer {
    pub fn new(index: Arc<RbacIndex>) -> RbacAuthorizer {
        RbacAuthorizer { index }
    }

    pub fn decide(&self, attributes: &Attributes) -> Decision {
        let mut reason = String::from("RBAC: allowed by ");
        let fits = |rule: &PolicyRule| rule.allows(attributes);
        match self.index.find(&attributes.user, &attributes.namespace, fits, &mut reason) {
            Ok(()) => Decision::allow(reason),
            Err(None) => Decision::no_opinion(""),
            Err(Some(errors)) => Decision::no_opinion(format!("RBAC: {errors}")),
        }
    }
}

impl Authorizer for RbacAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        Answer::Ready(self.decide(attributes))
    }

    fn rules_for(&self, user: &User, namespace: &str) -> UserRules {
        let (rules, error) = self.index.rules_of(user, namespace);
        let mut all = UserRules { error, ..UserRules::default() };
        for rule in rules {
            if !rule.non_resource_urls.is_empty() {
                all.non_resource_rules
                    .push(NonResourceRule { verbs: rule.verbs.clone(), non_resource_urls: rule.non_resource_urls });
            }
            if !rule.resources.is_empty() {
                all.resource_rules.push(ResourceRule {
                    verbs: rule.verbs,
                    api_groups: rule.api_groups,
                    resources: rule.resources,
                    resource_names: rule.resource_names,
                });
            }
        }
        all
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
