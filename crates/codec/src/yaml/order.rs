//! The order of keys in the reference's YAML: letters after everything else, numbers inside names by value.

/// Sorts keys for output. The comparison is not quite an order (it has no notion of equal parts), so the sort
/// must not rely on it being one.
pub(super) fn sort<T>(mut entries: Vec<(&str, T)>) -> Vec<(&str, T)> {
    if entries.len() < 2 {
        return entries;
    }
    let right = sort(entries.split_off(entries.len() / 2));
    let left = sort(entries);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let take_right = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) => less(b.0, a.0),
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (None, None) => return merged,
        };
        merged.extend(if take_right { right.next() } else { left.next() });
    }
}

fn less(a: &str, b: &str) -> bool {
    // Names share prefixes; from the first difference on, characters decide.
    let common = a.char_indices().zip(b.chars()).find(|((_, x), y)| x != y);
    let Some(((at, x), y)) = common else {
        return a.len() < b.len();
    };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => return x < y,
        (true, false) => return false,
        (false, true) => return true,
        (false, false) => {}
    }
    // In the middle of a number a zero counts by the digits before it.
    let lead = if (x == '0' || y == '0') && nonzero_digit_before(&a[..at]) { 1 } else { 0 };
    let (an, ai) = number(lead, &a[at..]);
    let (bn, bi) = number(lead, &b[at..]);
    if an != bn {
        return an < bn;
    }
    if ai != bi {
        return ai < bi;
    }
    x < y
}

fn nonzero_digit_before(s: &str) -> bool {
    s.chars().rev().take_while(|c| c.is_numeric()).any(|c| c != '0')
}

/// The number that `s` begins with, behind the digits of `lead`, and its length.
fn number(lead: i64, s: &str) -> (i64, usize) {
    s.chars().take_while(|c| c.is_numeric()).fold((lead, 0), |(n, len), c| {
        (n.wrapping_mul(10).wrapping_add(i64::from(c as u32) - i64::from(b'0')), len + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natural_order() {
        let keys = ["b", "a10", "a2", "a", "B", "_x", "a-b", "ab", "10", "9", "1.5", ".", "a01", "a1", "f:b", "f:a"];
        let sorted: Vec<_> = sort(keys.map(|k| (k, ())).to_vec()).into_iter().map(|(k, ())| k).collect();
        assert_eq!(
            sorted,
            [".", "_x", "1.5", "9", "10", "B", "a", "a-b", "a1", "a01", "a2", "a10", "ab", "b", "f:a", "f:b"]
        );
    }
}
