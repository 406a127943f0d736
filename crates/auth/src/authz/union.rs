//! Several authorizers as one: the first with an opinion decides.

use crate::error::AuthError;
use crate::traits::{Answer, Attributes, Authorizer, Decision, UserRules, Verdict};
use crate::user::User;
use std::borrow::Cow;
use std::sync::Arc;

pub struct AuthorizerUnion {
    members: Vec<Arc<dyn Authorizer>>,
}

impl AuthorizerUnion {
    pub fn new(members: Vec<Arc<dyn Authorizer>>) -> AuthorizerUnion {
        AuthorizerUnion { members }
    }
}

impl Authorizer for AuthorizerUnion {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        let mut so_far = SoFar::default();
        let mut rest = self.members.iter();
        while let Some(member) = rest.next() {
            match member.authorize(attributes) {
                Answer::Ready(decision) => {
                    if let Some(decision) = so_far.add(decision) {
                        return Answer::Ready(decision);
                    }
                }
                Answer::Pending(first) => {
                    return Answer::pending(async move {
                        if let Some(decision) = so_far.add(first.await) {
                            return decision;
                        }
                        for member in rest {
                            if let Some(decision) = so_far.add(member.authorize(attributes).await) {
                                return decision;
                            }
                        }
                        so_far.undecided()
                    });
                }
            }
        }
        Answer::Ready(so_far.undecided())
    }

    fn rules_for(&self, user: &User, namespace: &str) -> UserRules {
        let mut all = UserRules::default();
        let mut errors = Vec::new();
        for member in &self.members {
            let rules = member.rules_for(user, namespace);
            all.resource_rules.extend(rules.resource_rules);
            all.non_resource_rules.extend(rules.non_resource_rules);
            all.incomplete |= rules.incomplete;
            errors.extend(rules.error);
        }
        all.error = AuthError::aggregate(errors);
        all
    }
}

/// What those without an opinion said.
#[derive(Default)]
struct SoFar {
    reasons: Vec<Cow<'static, str>>,
    errors: Vec<AuthError>,
}

impl SoFar {
    fn add(&mut self, decision: Decision) -> Option<Decision> {
        if decision.verdict != Verdict::NoOpinion {
            return Some(decision);
        }
        if !decision.reason.is_empty() {
            self.reasons.push(decision.reason);
        }
        self.errors.extend(decision.error);
        None
    }

    fn undecided(self) -> Decision {
        let reason = match <[_; 1]>::try_from(self.reasons) {
            Ok([one]) => one,
            Err(many) => many.join("\n").into(),
        };
        Decision { verdict: Verdict::NoOpinion, reason, error: AuthError::aggregate(self.errors) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;

    /// Answers what it is told, at once or later.
    struct Fixed(Decision, bool);

    impl Authorizer for Fixed {
        fn authorize<'a>(&'a self, _: &'a Attributes) -> Answer<'a, Decision> {
            match self.1 {
                true => Answer::pending(async { self.0.clone() }),
                false => Answer::Ready(self.0.clone()),
            }
        }

        fn rules_for(&self, _: &User, _: &str) -> UserRules {
            UserRules { incomplete: self.1, error: self.0.error.clone(), ..UserRules::default() }
        }
    }

    fn union(members: &[(Decision, bool)]) -> AuthorizerUnion {
        let members = members.iter().map(|(d, later)| Arc::new(Fixed(d.clone(), *later)) as Arc<dyn Authorizer>);
        AuthorizerUnion::new(members.collect())
    }

    #[test]
    fn first_opinion_decides_and_reasons_add_up() {
        let none = |r: &'static str| Decision::no_opinion(r);
        let allow = Decision::allow("yes");
        let deny = Decision::deny("never");
        let failed = none("").with_error("boom");
        let cases = [
            (vec![], none("")),
            (vec![(none("a"), false), (none(""), false)], none("a")),
            (vec![(none("a"), false), (none("b"), false)], none("a\nb")),
            (vec![(none("a"), false), (allow.clone(), false), (deny.clone(), false)], allow.clone()),
            (vec![(deny.clone(), false), (allow.clone(), false)], deny),
            (vec![(none("a"), true), (failed.clone(), false), (allow.clone(), true)], allow),
            (vec![(failed.clone(), true), (none("b"), false)], none("b").with_error("boom")),
        ];
        for (i, (members, want)) in cases.into_iter().enumerate() {
            assert_eq!(block_on(union(&members).authorize(&Attributes::default())), want, "case {i}");
        }
    }

    #[test]
    fn rules_of_all() {
        let rules = union(&[(Decision::no_opinion("").with_error("x"), false), (Decision::allow(""), true)])
            .rules_for(&User::default(), "");
        assert!(rules.incomplete);
        assert_eq!(rules.error.unwrap().to_string(), "x");
    }
}
