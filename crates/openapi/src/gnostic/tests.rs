//! Reads what was written: field by field, without the tables.

use super::{Form, Message};
use crate::tests::{everything, library, shared};
use crate::words::Words;
use crate::{v2, v3};
use kubelith_meta::Value;

/// The fields of a message: numbers and the bytes or integers in them.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8], u64)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let (data, integer): (&[u8], u64) = match key & 7 {
            0 => (&[], varint(&mut bytes)),
            1 => (bytes.split_off(..8).unwrap(), 0),
            2 => {
                let length = varint(&mut bytes) as usize;
                (bytes.split_off(..length).unwrap(), 0)
            }
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, data, integer));
    }
    found
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

fn one(message: &[u8], number: u64) -> &[u8] {
    fields(message).into_iter().find(|f| f.0 == number).unwrap_or_else(|| panic!("field {number}")).1
}

/// The names of a map's members.
fn names(message: &[u8], number: u64) -> Vec<String> {
    let members = fields(message).into_iter().filter(|f| f.0 == number);
    members.map(|f| String::from_utf8(one(f.1, 1).to_vec()).unwrap()).collect()
}

#[test]
fn documents_of_version_three_keep_their_members() {
    let (words, library) = (Words::load(), library());
    for subject in everything() {
        let document = v3::Document::new(&subject, &library, &words);
        let bytes = document.protobuf();
        assert_eq!(one(&bytes, 1), b"3.0.0");
        let paths: Vec<String> = document.paths().map(|(path, _)| path.to_owned()).collect();
        assert_eq!(names(one(&bytes, 4), 1), paths);
        let schemas: Vec<String> = document.schemas().map(|(name, _)| name.to_owned()).collect();
        if !schemas.is_empty() {
            assert_eq!(names(one(one(&bytes, 5), 1), 1), schemas);
        }
    }
}

#[test]
fn the_document_of_version_two_keeps_its_members() {
    let (words, library) = (Words::load(), library());
    let document = v2::Document::new(&shared(everything()), &library, &words);
    let bytes = document.protobuf();
    assert_eq!(one(&bytes, 1), b"2.0");
    let definitions: Vec<String> = document.definitions().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names(one(&bytes, 9), 1), definitions);
    let paths: Vec<String> = document.paths().map(|(path, _)| path.to_owned()).collect();
    assert_eq!(names(one(&bytes, 8), 2), paths);
    assert_eq!(names(one(&bytes, 10), 1).len(), document.parameters().count());
}

fn written(message: &Message, value: impl Into<Value>) -> Vec<u8> {
    let mut out = Vec::new();
    message.write(&mut out, &value.into());
    out
}

#[test]
fn messages_are_written_field_by_field() {
    static FIELDS: Message = Message::Fields(&[("a", 1, Form::Text), ("b", 2, Form::Flag), ("c", 3, Form::Integer)], 4);
    static CHOICE: Message = Message::OrReference(&FIELDS);
    let cases: [(&Message, Value, &[u8]); 9] = [
        (&FIELDS, Value::from([("a", Value::from("x")), ("b", true.into())]), b"\x0a\x01x\x10\x01"),
        (&FIELDS, Value::from([("a", Value::from("")), ("b", false.into()), ("c", 0.into())]), b""),
        (&FIELDS, Value::from([("c", 300)]), b"\x18\xac\x02"),
        (&FIELDS, Value::from([("x-y", "z")]), b"\x22\x0b\x0a\x03x-y\x12\x04\x12\x02z\n"),
        (&CHOICE, Value::from([("$ref", "#/r")]), b"\x12\x05\x0a\x03#/r"),
        (&CHOICE, Value::from([("a", "x")]), b"\x0a\x03\x0a\x01x"),
        (&Message::Default, Value::from(""), b"\x1a\x00"),
        (&Message::Default, Value::from(1), b"\x09\0\0\0\0\0\0\xf0\x3f"),
        (&Message::Default, Value::object(), b""),
    ];
    for (message, value, expected) in cases {
        assert_eq!(written(message, value.clone()), expected, "{value:?}");
    }
}
