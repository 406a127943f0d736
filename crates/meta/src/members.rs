//! Reading many members of an object in one walk over it, where a lookup for each would be a search for each.

use crate::Value;

/// Binds names to members of an object; what is absent is null. One walk over the object finds them all. With `in`, the
/// object is an optional map.
///
/// ```
/// # use kubelith_meta::{Value, members};
/// let port = Value::from([("name", "http"), ("protocol", "TCP")]);
/// members!(&port => name: "name", protocol: "protocol", host: "hostIP");
/// assert_eq!((name.or_empty(), protocol.or_empty(), host.is_null()), ("http", "TCP", true));
/// ```
#[macro_export]
macro_rules! members {
    ($object:expr => $($name:ident: $key:literal),+ $(,)?) => {
        $crate::members!(in $crate::Value::as_object($object) => $($name: $key),+);
    };
    (in $map:expr => $($name:ident: $key:literal),+ $(,)?) => {
        $(let mut $name: &$crate::Value = $crate::Value::NULL;)+
        if let Some(map) = $map {
            for (key, value) in map.iter() {
                match key {
                    $($key => $name = value,)+
                    _ => {}
                }
            }
        }
    };
}

/// Go's zero value for what is absent, null, or of another type.
impl Value {
    pub const NULL: &'static Value = &Value::Null;

    #[inline]
    pub fn or_empty(&self) -> &str {
        self.as_str().unwrap_or_default()
    }

    #[inline]
    pub fn or_zero(&self) -> i64 {
        self.as_i64().unwrap_or_default()
    }

    #[inline]
    pub fn items(&self) -> &[Value] {
        self.as_array().unwrap_or_default()
    }

    #[inline]
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    /// The value, unless it is null.
    #[inline]
    pub fn set(&self) -> Option<&Value> {
        Some(self).filter(|value| !value.is_null())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_or_null() {
        let mut object = Value::from([("a", 1), ("b", 2)]);
        object.set_at(&["list"], Value::from(vec!["x"]));
        members!(&object => a: "a", list: "list", absent: "c");
        assert_eq!((a.or_zero(), list.items().len(), absent.set()), (1, 1, None));
        members!(list => inside: "a");
        assert_eq!((inside, inside.or_empty(), inside.is_true()), (Value::NULL, "", false));
    }
}
