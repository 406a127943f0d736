//! Conditions in the status of objects.

use kubelith_meta::Value;
use kubelith_meta::time::Time;

/// What a condition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

impl Condition {
    pub fn new(
        kind: &'static str,
        status: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Condition {
        Condition { kind, status, reason, message: message.into() }
    }

    /// Puts it among the conditions of an object's status; false if it is there already. The time of its transition is
    /// that of the last change of its status.
    pub fn set(&self, object: &mut Value, now: Time) -> bool {
        if object.at(&["status", "conditions"]).and_then(Value::as_array).is_none() {
            object.set_at(&["status", "conditions"], Value::from(Vec::<Value>::new()));
        }
        let Some(conditions) = object.at_mut(&["status", "conditions"]).and_then(Value::as_array_mut) else {
            return false;
        };
        let mut new = Value::from([
            ("type", Value::from(self.kind)),
            ("status", self.status.into()),
            ("reason", self.reason.into()),
            ("message", Value::from(self.message.as_str())),
            ("lastTransitionTime", Value::from(now.rfc3339())),
        ]);
        let Some(old) = conditions.iter_mut().find(|c| c.str_at(&["type"]) == self.kind) else {
            conditions.push(new);
            return true;
        };
        let same = |field: &str| old.str_at(&[field]) == new.str_at(&[field]);
        if same("status") && same("reason") && same("message") {
            return false;
        }
        if same("status") {
            new.copy_at(&["lastTransitionTime"], old);
        }
        *old = new;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_that_of_the_last_change_of_the_status() {
        let (first, later) = (Time::from_unix(1_000), Time::from_unix(2_000));
        let mut object = Value::object();
        assert!(Condition::new("Ready", "True", "Good", "").set(&mut object, first));
        assert!(!Condition::new("Ready", "True", "Good", "").set(&mut object, later));
        assert!(Condition::new("Ready", "True", "Better", "").set(&mut object, later));
        let time = |object: &Value| {
            let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap();
            assert_eq!(conditions.len(), 1);
            conditions[0].str_at(&["lastTransitionTime"]).to_owned()
        };
        assert_eq!(time(&object), first.rfc3339());
        assert!(Condition::new("Ready", "False", "Bad", "").set(&mut object, later));
        assert_eq!(time(&object), later.rfc3339());
    }
}
