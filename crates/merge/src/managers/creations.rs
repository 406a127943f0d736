//! What creators own, of objects that are like others that came a moment ago.

use crate::fieldset::Mask;
use crate::typed::{Form, Type, fields_of_new};
use kubelith_meta::Value;
use kubelith_meta::quick_hash::QuickHash;
use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

/// How many forms are kept: some 80 KiB for pods, and at most 512 KiB.
const KEPT: usize = 16;
/// Larger objects are looked at anew each time: the most that a form and its fields take together.
const MAX_SIZE: usize = 32 << 10;

/// Forms of the new objects of one type, with what their creators own. An object of another form costs a few comparisons, which end early, and only where
/// its fields came before among the last ones is its form worth keeping. So objects that have nothing in common are not kept, nor are those of more
/// templates than there is room for.
#[derive(Debug, Default)]
pub struct Creations(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    /// The one that was met last is the first.
    known: VecDeque<Arc<Known>>,
    /// Hashes of the fields of objects that were of no known form.
    others: VecDeque<u64>,
}

#[derive(Debug)]
struct Known {
    form: Form,
    fields: Option<Arc<str>>,
}

impl Creations {
    /// As [`fields_of_new`], whose type and mask are always the same here.
    pub(crate) fn fields_of_new(&self, ty: Type<'_>, object: &Value, mask: Mask<'_>) -> Result<Option<Arc<str>>, ()> {
        if let Some(fields) = self.find(object) {
            return Ok(fields);
        }
        let fields = fields_of_new(ty, object, mask)?.map(Arc::<str>::from);
        if self.is_known_otherwise(&fields)
            && let Some(form) = Form::of(ty, object)
            && form.len() + fields.as_ref().map_or(0, |text| text.len()) <= MAX_SIZE
        {
            self.keep(Known { form, fields: fields.clone() });
        }
        Ok(fields)
    }

    fn find(&self, object: &Value) -> Option<Option<Arc<str>>> {
        for i in 0..KEPT {
            // Objects are compared without the lock.
            let known = self.0.lock().expect("no panic under this lock").known.get(i)?.clone();
            if known.form.is_of(object) {
                if i > 0 {
                    self.prefer(&known);
                }
                return Some(known.fields.clone());
            }
        }
        None
    }

    fn prefer(&self, preferred: &Arc<Known>) {
        let known = &mut self.0.lock().expect("no panic under this lock").known;
        if let Some(at) = known.iter().position(|one| Arc::ptr_eq(one, preferred)) {
            let one = known.remove(at).expect("it was just found");
            known.push_front(one);
        }
    }

    /// Whether an object of no known form had the same fields lately. It is noted that this one does.
    fn is_known_otherwise(&self, fields: &Option<Arc<str>>) -> bool {
        let hash = QuickHash::default().hash_one(fields.as_deref().unwrap_or_default().as_bytes());
        let others = &mut self.0.lock().expect("no panic under this lock").others;
        let there = others.iter().position(|other| *other == hash);
        match there {
            Some(at) => drop(others.remove(at)),
            None => {
                others.truncate(KEPT - 1);
                others.push_front(hash);
            }
        }
        there.is_some()
    }

    fn keep(&self, new: Known) {
        let known = &mut self.0.lock().expect("no panic under this lock").known;
        known.truncate(KEPT - 1);
        known.push_front(Arc::new(new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::tests::v;
    use crate::testing::types;

    #[test]
    fn what_creators_own_is_known_from_the_third_object_on() {
        let schema = types(
            "type T
               l []I map=name
               m map<string>
             type I
               name string
               x string",
        );
        let (ty, creations) = (Type::of(&schema), Creations::default());
        let fields = |object: &str| creations.fields_of_new(ty, &v(object), Mask::default()).unwrap();
        let known = || creations.0.lock().unwrap().known.len();
        let element = |name: &str, x: usize| format!(r#"{{"l":[{{"name":"{name}","x":"{x}"}}]}}"#);

        let texts: Vec<_> = (0..4).map(|x| fields(&element("a", x)).unwrap()).collect();
        let want = r#"{"f:l":{".":{},"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:x":{}}}}"#;
        assert!(texts.iter().all(|text| &**text == want), "{texts:?}");
        assert!(!Arc::ptr_eq(&texts[0], &texts[1]) && Arc::ptr_eq(&texts[1], &texts[3]));
        assert!(fields(&element("b", 0)).unwrap().contains("\\\"b\\\""));
        assert_eq!(known(), 1);

        // An empty object has no fields, however often it comes.
        for _ in 0..3 {
            assert_eq!(fields("{}"), None);
        }
        assert_eq!(known(), 2);

        // Templates that come in turn, more than there is room for.
        for _ in 0..3 {
            for i in 0..2 * KEPT {
                assert!(fields(&element(&format!("c{i}"), 0)).unwrap().contains(&format!("c{i}\\")));
            }
        }
        assert_eq!(known(), 2);
        assert!(Arc::ptr_eq(&fields(&element("a", 9)).unwrap(), &texts[1]));
        for i in 0..2 * KEPT {
            let twice = [fields(&element(&format!("c{i}"), 0)), fields(&element(&format!("c{i}"), 1))];
            assert_eq!(twice[0], twice[1]);
        }
        assert_eq!(known(), KEPT);

        let large = |i: usize| format!(r#"{{"m":{{"k{}":"{i}"}}}}"#, "x".repeat(MAX_SIZE / 2));
        for i in 0..3 {
            assert!(fields(&large(i)).is_some());
        }
        assert!(!creations.0.lock().unwrap().known[0].form.is_of(&v(&large(0))));
    }
}
