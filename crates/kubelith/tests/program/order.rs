//! `order.txt`, by which a release is linked, names functions that the program has.

use crate::PROGRAM;
use std::collections::HashSet;

const ORDER: &str = include_str!("../../order.txt");

#[test]
fn functions_that_are_put_in_order_are_there() {
    let program = std::fs::read(PROGRAM).unwrap();
    if !program.starts_with(b"\x7fELF\x02\x01") {
        println!("not linked by this list");
        return;
    }
    let mut missing: HashSet<&str> = ORDER.lines().filter(|line| !line.ends_with(" exact")).map(name).collect();
    let all = missing.len();
    for texts in tables_of_texts(&program) {
        for text in std::str::from_utf8(texts).unwrap().split('\0') {
            missing.remove(name(text));
        }
    }
    // Optimised programs have a few functions besides, and each change of the sources may rename one.
    let missing = missing.len();
    println!("{missing} of {all} are missing");
    assert!(all > 1000 && missing * 5 < all, "`cargo xtask order` writes the list anew");
}

/// The name of a function without the hash that one in Rust ends with.
fn name(text: &str) -> &str {
    text.rfind("17h").filter(|_| text.starts_with("_ZN")).map_or(text, |at| &text[..at])
}

/// The sections of an ELF file that have names, of functions among others.
fn tables_of_texts(program: &[u8]) -> impl Iterator<Item = &[u8]> {
    const TEXTS: u64 = 3;
    let number = |at: usize, bytes: usize| {
        let bytes = program[at..at + bytes].iter().rev();
        bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let word = move |at: usize| usize::try_from(number(at, 8)).unwrap();
    let (headers, length, count) = (word(0x28), number(0x3a, 2), number(0x3c, 2));
    let header = move |index: u64| headers + usize::try_from(index * length).unwrap();
    let tables = (0..count).map(header).filter(move |header| number(header + 4, 4) == TEXTS);
    tables.map(move |header| &program[word(header + 0x18)..][..word(header + 0x20)])
}
