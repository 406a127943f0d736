//! An object on its way into the store, and how far it has come.
//!
//! A write leads an object through decoding, defaults, canonical form, ownership of fields, admission, the strategy, rules and
//! encoding. Most steps find most of the object as they would leave it. Two marks say so, and there are no others: the
//! [`Form`] of the whole object, which this type keeps, and the [seals](kubelith_meta::Map) of its parts.

use kubelith_meta::Value;
use kubelith_schema::TypedSchema;
use kubelith_schema::canonical::{Empties, Form, canonicalize};

#[derive(Debug, Clone)]
pub struct Working {
    pub value: Value,
    form: Form,
}

impl Working {
    /// An object of which the form is known: it was just decoded.
    pub fn new(value: Value, form: Form) -> Working {
        Working { value, form }
    }

    /// An object that somebody may have changed since its form was known.
    pub fn changed(value: Value) -> Working {
        Working { value, form: Form::Sent }
    }

    pub fn form(&self) -> Form {
        self.form
    }

    /// Brings the object into canonical form, in which empty lists and maps stay as `empties` says.
    pub fn canonicalize(&mut self, schema: &TypedSchema, empties: Empties) {
        if self.form == Form::Sent {
            self.form = canonicalize(&schema.table, &schema.root, &mut self.value, empties);
        }
    }

    /// Brings the object, which is canonical, into the form in which it is stored, if that is another: the store may not tell
    /// what is empty from what is absent.
    pub fn settle(&mut self, schema: &TypedSchema, empties: Empties) {
        if self.form == Form::Given {
            canonicalize(&schema.table, &schema.root, &mut self.value, empties);
            self.form = Form::Canonical;
        }
    }

    /// Seals what no later step has to see to, as long as nobody changes it. The object has its defaults.
    pub fn seal(&mut self) {
        match self.form {
            Form::Sent => {}
            Form::Given => self.value.seal_full(),
            Form::Canonical => self.value.seal(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_catalog::builtin;
    use kubelith_meta::GroupVersionKind;

    fn schema() -> TypedSchema {
        builtin().kind_schema(&GroupVersionKind::new("", "v1", "Pod")).expect("pods are known")
    }

    fn pod(text: &str) -> Value {
        kubelith_codec::json::parse(text.as_bytes()).expect("JSON")
    }

    #[test]
    fn each_step_does_what_is_left() {
        let schema = schema();
        let given =
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[],"hostAliases":[]}}"#;
        let mut working = Working::changed(pod(given));
        working.canonicalize(&schema, Empties::Given);
        assert_eq!(working.form(), Form::Given);
        assert!(working.value.at(&["spec", "hostAliases"]).is_some(), "rules see what was given");
        working.settle(&schema, Empties::Absent);
        assert_eq!(working.form(), Form::Canonical);
        assert!(working.value.at(&["spec", "hostAliases"]).is_none(), "the store does not");

        // What is canonical is taken at its word.
        let mut trusted = Working::new(pod(r#"{"unknown":1}"#), Form::Canonical);
        trusted.canonicalize(&schema, Empties::Given);
        trusted.settle(&schema, Empties::Absent);
        assert_eq!(trusted.value, pod(r#"{"unknown":1}"#));
    }

    #[test]
    fn what_is_not_canonical_gets_no_seal() {
        let many = (0..9).map(|i| format!(r#""k{i}":"v""#)).collect::<Vec<_>>().join(",");
        let text = format!(r#"{{"full":{{{many}}},"partly":{{"none":{{}},{many}}}}}"#);
        let sealed = |form| {
            let mut working = Working::new(pod(&text), form);
            working.seal();
            ["full", "partly"]
                .map(|key| working.value.get(key).and_then(Value::as_object).is_some_and(|m| m.is_sealed()))
        };
        assert_eq!(sealed(Form::Sent), [false, false]);
        assert_eq!(sealed(Form::Given), [true, false]);
        assert_eq!(sealed(Form::Canonical), [true, true]);
    }
}
