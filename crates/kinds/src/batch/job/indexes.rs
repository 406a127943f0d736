//! Indexes of an Indexed job, as text: `1,3-5`.

use kubelith_meta::text::Quoted;

/// How many indexes `text` names, all below `completions` and in rising order.
pub fn count(text: &str, completions: i64) -> Result<i64, String> {
    let mut total = 0;
    let mut last: Option<i64> = None;
    for interval in intervals(text) {
        let (from, to) = interval_of(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= from) {
            return Err(format!("non-increasing order, previous: {last}, current: {from}"));
        }
        total += to - from + 1;
        last = Some(to);
    }
    Ok(total)
}

/// The first index that is in both. Intervals that cannot be read are passed over: they are refused elsewhere.
pub fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |text| intervals(text).filter_map(|interval| interval_of(interval, completions).ok());
    let (mut completed, mut failed) = (read(completed).peekable(), read(failed).peekable());
    while let (Some(c), Some(f)) = (completed.peek(), failed.peek()) {
        if c.0 <= f.1 && f.0 <= c.1 {
            return Some(c.0.max(f.0));
        }
        if c.0 <= f.0 {
            completed.next();
        } else {
            failed.next();
        }
    }
    None
}

pub fn intervals(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(move |_| !text.is_empty())
}

pub fn interval_of(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let parts: Vec<&str> = text.split('-').collect();
    if parts.len() > 2 {
        return Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            Quoted(text)
        ));
    }
    let index = |part: &str| {
        let number = part.parse::<i64>();
        let number = number.map_err(|_| format!("cannot convert string to integer for index: {}", Quoted(part)))?;
        if number >= completions { Err(format!("too large index: {}", Quoted(part))) } else { Ok(number) }
    };
    let from = index(parts[0])?;
    let Some(last) = parts.get(1) else { return Ok((from, from)) };
    let to = index(last)?;
    if from >= to {
        return Err(format!("non-increasing order, previous: {from}, current: {to}"));
    }
    Ok((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let cases: [(&str, Result<i64, &str>); 8] = [
            ("", Ok(0)),
            ("1,3-5", Ok(4)),
            ("9", Ok(1)),
            ("10", Err("too large index: \"10\"")),
            ("x", Err("cannot convert string to integer for index: \"x\"")),
            ("3,2", Err("non-increasing order, previous: 3, current: 2")),
            ("3-3", Err("non-increasing order, previous: 3, current: 3")),
            (
                "1-2-3",
                Err(
                    "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts \
                     separated by '-'",
                ),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(count(text, 10), expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn overlaps() {
        let cases = [
            ("1-3", "4", None),
            ("1-3", "3-4", Some(3)),
            ("1,5-7", "2-3,6", Some(6)),
            ("x,2", "2", Some(2)),
            ("", "1", None),
        ];
        for (completed, failed, expected) in cases {
            assert_eq!(overlap(completed, failed, 10), expected, "{completed} {failed}");
        }
    }
}
