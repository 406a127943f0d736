use super::*;

#[test]
fn names_of_properties() {
    let cases = [
        ("a", Some("a")),
        ("a-b", Some("a__dash__b")),
        ("a.b/c", Some("a__dot__b__slash__c")),
        ("a__b", Some("a__underscores__b")),
        ("a___b", Some("a__underscores___b")),
        ("namespace", Some("__namespace__")),
        ("var", Some("__var__")),
        ("1a", None),
        ("", None),
        ("a b", None),
        ("$ref", None),
    ];
    for (property, expected) in cases {
        let escaped = escape(property);
        assert_eq!(escaped.as_deref(), expected, "{property}");
        if let Some(name) = escaped {
            assert_eq!(unescape(&name).as_deref(), Some(property));
        }
    }
    assert_eq!(unescape("__nope__"), None);
    assert_eq!(unescape("a__namespace__"), None);
    assert_eq!(unescape("a_b__c").as_deref(), Some("a_b__c"));
}

#[test]
fn a_value_is_small() {
    assert!(size_of::<Res<'_>>() <= 24, "{}", size_of::<Res<'_>>());
}

#[test]
fn maps_find_numbers_of_other_types() {
    let mut map = Map::with_capacity(1);
    map.insert(Val::Int(1), Val::Str("a")).unwrap();
    map.insert(Val::Uint(7), Val::Str("b")).unwrap();
    for (key, expected) in
        [(Val::Uint(1), true), (Val::Double(1.0), true), (Val::Double(7.0), true), (Val::Double(1.5), false)]
    {
        assert_eq!(map.find(&key).unwrap().is_some(), expected, "{key}");
    }
    for i in 0..20 {
        map.insert(Val::Int(i), Val::Null).unwrap();
    }
    assert_eq!(map.len(), 21);
    assert!(map.find(&Val::Double(19.0)).unwrap().is_some());
    assert!(Key::of(&Val::Bytes(b"a")).is_err());
}
