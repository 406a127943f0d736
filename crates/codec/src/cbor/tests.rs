use super::*;
use crate::json;
use kubelith_meta::Value;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// The bytes are those of kube-apiserver's encoder.
#[test]
fn values_are_written_as_the_reference_writes_them() {
    for (json, want) in [
        ("null", "f6"),
        ("[true,false]", "82f5f4"),
        ("[0,23,24,255,256,65536,4294967296]", "870017181818ff1901001a000100001b0000000100000000"),
        ("[-1,-24,-25,-257]", "842037381839 0100"),
        ("[1.5,0.1,100000.5,-0.0,5.960464477539063e-8]", "85f93e00fb3fb999999999999afa47c35040f98000f90001"),
        (r#"{"b":1,"aa":"x","a":[]}"#, "a3416180416201426161 4178"),
    ] {
        let value = json::parse(json.as_bytes()).unwrap();
        let want = want.replace(' ', "");
        assert_eq!(hex(&to_vec(&value, Order::Sorted)), format!("d9d9f7{want}"), "{json}");
        assert_eq!(decode(&to_vec(&value, Order::Sorted)).unwrap(), value, "{json}");
    }
}

#[test]
fn what_others_may_write_is_read() {
    for (hex, want) in [
        // Text strings, open lengths, numbers of any width.
        ("6161", r#""a""#),
        ("5f41614162ff", r#""ab""#),
        ("9f01ff", "[1]"),
        ("bf616101ff", r#"{"a":1}"#),
        ("1b0000000000000001", "1"),
        // Bytes that are base64 in JSON, base64url, hex.
        ("d64101", r#""AQ==""#),
        ("d541ff", r#""_w""#),
        ("d741ff", r#""ff""#),
        // Times by number and in words.
        ("c11a514b67b0", r#""2013-03-21T20:04:00Z""#),
        ("c0 74323031332d30332d32315432303a30343a30305a", r#""2013-03-21T20:04:00Z""#),
    ] {
        let want = json::parse(want.as_bytes()).unwrap();
        assert_eq!(decode(&bytes(&hex.replace(' ', ""))).unwrap(), want, "{hex}");
    }
}

#[test]
fn what_json_cannot_express_is_refused() {
    for hex in [
        "",
        "18",
        "4261",
        "82",
        "9f",
        "ff",
        "f7",
        "f97e00",
        "f97c00",
        "1bffffffffffffffff",
        "c24101",
        "a10101",
        "a2416101416102",
        "61ff",
        "0101",
        "1c",
        "f8ff",
    ] {
        assert!(decode(&bytes(hex)).is_err(), "{hex}");
    }
    // Deeper than anybody needs.
    assert!(decode(&[0x81].repeat(1_000_000)).is_err());
    // Very many members, from the last to the first: no member moves the others.
    let many: Vec<u8> =
        (0..300_000u32).rev().flat_map(|n| [b"\x44".as_slice(), &hex_of(n), b"\xf6"].concat()).collect();
    let map = decode(&[b"\xbf".as_slice(), &many, b"\xff"].concat()).unwrap();
    assert_eq!(map.as_object().map(|map| map.len()), Some(300_000));
    // A length that nobody can send is not believed.
    assert!(decode(&bytes("9bffffffffffffffff")).is_err());
}

#[test]
fn sequences_are_taken_apart() {
    let two = [to_vec(&Value::Int(1), Order::Sorted), to_vec(&Value::Int(2), Order::Sorted)].concat();
    let (first, rest) = split_first(&two).unwrap();
    assert_eq!((first, decode(rest).unwrap()), (Value::Int(1), Value::Int(2)));
    assert!(is_cbor(&two) && !is_cbor(b"{}"));
}

#[test]
fn answers_are_in_any_order() {
    let value = json::parse(br#"{"a":1,"b":{"c":2,"d":3}}"#).unwrap();
    let forms: std::collections::HashSet<Vec<u8>> = (0..100).map(|seed| to_vec(&value, Order::Turned(seed))).collect();
    assert_eq!(forms.len(), 4);
    assert!(forms.iter().all(|form| decode(form).unwrap() == value));
}

/// Four letters for each number.
fn hex_of(n: u32) -> [u8; 4] {
    [15, 10, 5, 0].map(|shift| b'A' + ((n >> shift) & 31) as u8)
}
