//! Does a scalar look like a date to the reference's YAML library? Such strings are quoted when written.

/// `2001-1-2`, `2001-1-2 3:4:5.6`, `2001-1-2T3:4:5.6Z` or with `+07:00`; `t` for `T` is fine, too.
pub(super) fn is_timestamp(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits != 4 || text.as_bytes().get(4) != Some(&b'-') {
        return false;
    }
    date(text).is_some()
}

fn date(text: &str) -> Option<()> {
    let mut s = Cursor(text.as_bytes());
    let year = u32::from(s.two_digits()?) * 100 + u32::from(s.two_digits()?);
    s.expect(b'-')?;
    let month = s.number()?;
    s.expect(b'-')?;
    let day = s.number()?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    let separator = match s.0.first() {
        None => return Some(()),
        Some(b @ (b' ' | b'T' | b't')) => *b,
        Some(_) => return None,
    };
    s.0 = &s.0[1..];
    time(&mut s)?;
    if separator != b' ' {
        zone(&mut s)?;
    }
    s.0.is_empty().then_some(())
}

fn time(s: &mut Cursor<'_>) -> Option<()> {
    let hour = s.number()?;
    s.expect(b':')?;
    let minute = s.number()?;
    s.expect(b':')?;
    let second = s.number()?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if let [b'.' | b',', b'0'..=b'9', ..] = s.0 {
        s.0 = &s.0[1..];
        while let [b'0'..=b'9', rest @ ..] = s.0 {
            s.0 = rest;
        }
    }
    Some(())
}

fn zone(s: &mut Cursor<'_>) -> Option<()> {
    match s.0 {
        [b'Z', rest @ ..] => {
            s.0 = rest;
            Some(())
        }
        [b'+' | b'-', rest @ ..] => {
            s.0 = rest;
            let hours = s.two_digits()?;
            s.expect(b':')?;
            let minutes = s.two_digits()?;
            (hours <= 24 && minutes < 60).then_some(())
        }
        _ => None,
    }
}

fn days_in(year: u32, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn expect(&mut self, b: u8) -> Option<()> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        (first == b).then_some(())
    }

    /// One or two digits.
    fn number(&mut self) -> Option<u8> {
        match self.0 {
            [a @ b'0'..=b'9', b @ b'0'..=b'9', rest @ ..] => {
                self.0 = rest;
                Some((a - b'0') * 10 + (b - b'0'))
            }
            [a @ b'0'..=b'9', rest @ ..] => {
                self.0 = rest;
                Some(a - b'0')
            }
            _ => None,
        }
    }

    fn two_digits(&mut self) -> Option<u8> {
        matches!(self.0, [b'0'..=b'9', b'0'..=b'9', ..]).then(|| self.number())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times() {
        for (text, want) in [
            ("2001-01-02", true),
            ("2001-1-2", true),
            ("2001-2-29", false),
            ("2000-2-29", true),
            ("2001-13-1", false),
            ("2001-01-02T03:04:05Z", true),
            ("2001-1-2t3:4:5.123456789+07:00", true),
            ("2001-01-02 03:04:05", true),
            ("2001-01-02 03:04:05.5", true),
            ("2001-01-02 03:04:05Z", false),
            ("2001-01-02T03:04:05", false),
            ("2001-01-02T24:00:00Z", false),
            ("2001-01-02T03:04", false),
            ("2001-01-02x", false),
            ("20010-01-02", false),
            ("2001", false),
            ("2001-", false),
        ] {
            assert_eq!(is_timestamp(text), want, "{text}");
        }
    }
}
