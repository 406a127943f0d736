//! Whether a block of headers relies on what was said in earlier blocks (RFC 7541). Nothing is decoded.

/// Entries that every table has.
const STATIC_ENTRIES: u64 = 61;

/// What a block does with the sender's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableUse {
    /// Its size is changed first: the sender knows that it is empty.
    Resized,
    /// Nothing is taken from it or added to it.
    None,
    /// The sender still has its table.
    Relied,
    /// The block is not whole.
    Unfinished,
}

pub fn table_use(block: &[u8]) -> TableUse {
    walk(block).unwrap_or(TableUse::Unfinished)
}

/// `None` if the block ends within something.
fn walk(mut rest: &[u8]) -> Option<TableUse> {
    while let Some(&first) = rest.first() {
        let (index, strings) = match first {
            0x80.. => (integer(&mut rest, 7)?, 0),
            0x40..0x80 => return Some(TableUse::Relied),
            0x20..0x40 => return Some(TableUse::Resized),
            _ => match integer(&mut rest, 4)? {
                0 => (0, 2),
                index => (index, 1),
            },
        };
        if index > STATIC_ENTRIES {
            return Some(TableUse::Relied);
        }
        for _ in 0..strings {
            let length = usize::try_from(integer(&mut rest, 7)?).ok()?;
            rest = rest.get(length..)?;
        }
    }
    Some(TableUse::None)
}

/// An integer in the low `bits` of the first byte and, if they are all set, in those that follow.
fn integer(rest: &mut &[u8], bits: u32) -> Option<u64> {
    let (&first, mut tail) = rest.split_first()?;
    let all = (1u64 << bits) - 1;
    let mut value = u64::from(first) & all;
    if value == all {
        for shift in (0..).step_by(7) {
            let (&byte, next) = tail.split_first()?;
            tail = next;
            // More than any block has: whatever it means, it is not in a table that we could know.
            value = value.saturating_add(u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(u64::MAX));
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = tail;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use TableUse::*;

    #[test]
    fn blocks_that_rely_on_a_table_are_told_from_others() {
        let long = [&[0x00, 0x7f, 0x81, 0x01][..], &[b'x'; 256], &[0x01, b'y']].concat();
        let cases: [(&str, &[u8], TableUse); 14] = [
            ("nothing", &[], None),
            ("method GET, scheme https", &[0x82, 0x87], None),
            ("the first entry of the sender's table", &[0x82, 0xbe], Relied),
            ("a literal that is added to the table", &[0x82, 0x41, 0x01, b'x'], Relied),
            ("a size first", &[0x20, 0x3f, 0xe1, 0x1f, 0x82, 0x41, 0x01, b'x'], Resized),
            ("a literal with its name", &[0x00, 0x01, b'a', 0x02, b'b', b'c', 0x82], None),
            ("a literal that must never be added", &[0x10, 0x01, b'a', 0x00], None),
            ("a name of the static table", &[0x04, 0x01, b'/'], None),
            ("a name of the sender's table", &[0x0f, 0x2f, 0x01, b'/'], Relied),
            ("a long name", &long, None),
            ("half a literal", &[0x04, 0x05, b'/'], Unfinished),
            ("half an integer", &[0xff], Unfinished),
            ("a number beyond all bounds", &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], Relied),
            ("a huffman string", &[0x04, 0x82, 0x62, 0x63], None),
        ];
        for (what, block, expected) in cases {
            assert_eq!(table_use(block), expected, "{what}");
        }
    }
}
