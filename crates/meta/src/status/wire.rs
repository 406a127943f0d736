//! A Status as JSON, with the fields that the reference shows: `metadata` always, the rest when not empty.

use super::{Cause, Details, Outcome, Reason, Status};
use crate::text::push_json_string;
use crate::{Map, Str, Value};

impl Status {
    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue", &**token);
        }
        let mut m = Map::new();
        m.insert("apiVersion", "v1");
        if self.code != 0 {
            m.insert("code", i64::from(self.code));
        }
        if let Some(details) = &self.details {
            m.insert("details", details.to_value());
        }
        m.insert("kind", "Status");
        insert_text(&mut m, "message", &self.message);
        m.insert("metadata", metadata);
        insert_text(&mut m, "reason", self.reason.as_str());
        m.insert("status", self.outcome_name());
        Value::Object(m)
    }

    /// Reads a Status that another server or a webhook sent; fields of a wrong type count as absent.
    pub fn from_value(value: &Value) -> Status {
        let text = |key| value.str_at(&[key]);
        let number = |v: &Value| v.as_i64().unwrap_or(0);
        let token = value.str_at(&["metadata", "continue"]);
        Status {
            outcome: match text("status") {
                "Success" => Outcome::Success,
                "" | "Failure" => Outcome::Failure,
                other => Outcome::Other(other.into()),
            },
            code: value.get("code").map_or(0, number).try_into().unwrap_or(0),
            reason: Reason::from(text("reason")),
            message: text("message").to_owned(),
            details: value.get("details").filter(|d| !d.is_null()).map(|d| Box::new(Details::from_value(d))),
            continue_token: (!token.is_empty()).then(|| token.into()),
        }
    }

    /// The JSON text in the order in which the reference writes it.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(256 + self.message.len());
        out.push_str(r#"{"kind":"Status","apiVersion":"v1","metadata":{"#);
        if let Some(token) = &self.continue_token {
            push_member(&mut out, "continue", token);
        }
        out.push('}');
        push_member(&mut out, "status", self.outcome_name());
        push_member(&mut out, "message", &self.message);
        push_member(&mut out, "reason", self.reason.as_str());
        if let Some(details) = &self.details {
            out.push_str(r#","details":{"#);
            details.push_members(&mut out);
            out.push('}');
        }
        push_number(&mut out, "code", self.code.into());
        out.push('}');
        out
    }

    fn outcome_name(&self) -> &str {
        match &self.outcome {
            Outcome::Success => "Success",
            Outcome::Failure => "Failure",
            Outcome::Other(said) => said,
        }
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut m = Map::new();
        if !self.causes.is_empty() {
            m.insert("causes", self.causes.iter().map(Cause::to_value).collect::<Vec<_>>());
        }
        insert_text(&mut m, "group", &self.group);
        insert_text(&mut m, "kind", &self.kind);
        insert_text(&mut m, "name", &self.name);
        if self.retry_after_seconds != 0 {
            m.insert("retryAfterSeconds", self.retry_after_seconds);
        }
        insert_text(&mut m, "uid", &self.uid);
        Value::Object(m)
    }

    fn from_value(value: &Value) -> Details {
        let text = |key| Str::from(value.str_at(&[key]));
        let causes = value.get("causes").and_then(Value::as_array).unwrap_or(&[]);
        let retry_after = value.get("retryAfterSeconds").and_then(Value::as_i64).unwrap_or(0);
        Details {
            name: text("name"),
            group: text("group"),
            kind: text("kind"),
            uid: text("uid"),
            causes: causes.iter().map(Cause::from_value).collect(),
            retry_after_seconds: retry_after.try_into().unwrap_or(0),
        }
    }

    fn push_members(&self, out: &mut String) {
        push_member(out, "name", &self.name);
        push_member(out, "group", &self.group);
        push_member(out, "kind", &self.kind);
        push_member(out, "uid", &self.uid);
        if !self.causes.is_empty() {
            push_key(out, "causes");
            out.push('[');
            for (i, cause) in self.causes.iter().enumerate() {
                out.push_str(if i == 0 { "{" } else { ",{" });
                push_member(out, "reason", &cause.reason);
                push_member(out, "message", &cause.message);
                push_member(out, "field", &cause.field);
                out.push('}');
            }
            out.push(']');
        }
        push_number(out, "retryAfterSeconds", self.retry_after_seconds.into());
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut m = Map::new();
        insert_text(&mut m, "field", &self.field);
        insert_text(&mut m, "message", &self.message);
        insert_text(&mut m, "reason", &self.reason);
        Value::Object(m)
    }

    fn from_value(value: &Value) -> Cause {
        Cause::new(value.str_at(&["reason"]), value.str_at(&["message"]), value.str_at(&["field"]))
    }
}

fn insert_text(m: &mut Map, key: &'static str, text: &str) {
    if !text.is_empty() {
        m.insert(key, text);
    }
}

fn push_key(out: &mut String, key: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    push_json_string(out, key);
    out.push(':');
}

fn push_member(out: &mut String, key: &str, text: &str) {
    if !text.is_empty() {
        push_key(out, key);
        push_json_string(out, text);
    }
}

fn push_number(out: &mut String, key: &str, number: i64) {
    if number != 0 {
        push_key(out, key);
        out.push_str(&number.to_string());
    }
}
