//! Warnings for the client, gathered while its request is handled.

use http::HeaderValue;
use std::sync::{Arc, Mutex};

/// All texts together, in characters; beyond it each is cut.
const MAX_TOTAL: usize = 4 * 1024;
/// One text once texts are cut.
const MAX_CUT: usize = 256;

/// More of them are not kept: their headers would be cut anyway.
const MAX_TEXTS: usize = 4 * 1024;

/// Where handlers put warnings for the client.
#[derive(Debug, Clone, Default)]
pub struct Warnings {
    list: Arc<Mutex<Vec<String>>>,
}

impl Warnings {
    /// Empty texts and repetitions are passed over.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut list = self.list.lock().unwrap_or_else(|e| e.into_inner());
        if !text.is_empty() && list.len() < MAX_TEXTS && !list.contains(&text) {
            list.push(text);
        }
    }

    pub fn texts(&self) -> Vec<String> {
        self.list.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.list.lock().unwrap_or_else(|e| e.into_inner()))
    }
}

/// `299 - "text"` for each. Texts with control characters are left out. Once the whole is too long, every text is cut, those
/// before too, and what comes after that is still told until the whole is as long again.
pub fn header_values(texts: &[String]) -> Vec<HeaderValue> {
    let mut values = Vec::with_capacity(texts.len());
    let (mut written, mut is_cut) = (0, false);
    for (place, text) in texts.iter().enumerate() {
        if is_cut && written >= MAX_TOTAL {
            break;
        }
        if is_cut || written + text.chars().count() <= MAX_TOTAL {
            written += add(&mut values, text, is_cut);
            continue;
        }
        is_cut = true;
        values.clear();
        written = texts[..=place].iter().map(|text| add(&mut values, text, true)).sum();
    }
    values
}

/// How many characters were added.
fn add(values: &mut Vec<HeaderValue>, text: &str, is_cut: bool) -> usize {
    if text.chars().any(char::is_control) {
        return 0;
    }
    let end = match is_cut {
        true => text.char_indices().nth(MAX_CUT).map_or(text.len(), |(at, _)| at),
        false => text.len(),
    };
    let quoted = text[..end].replace('\\', "\\\\").replace('"', "\\\"");
    values.extend(HeaderValue::try_from(format!("299 - \"{quoted}\"")));
    text[..end].chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(texts: &[&str]) -> Vec<String> {
        let warnings = Warnings::default();
        texts.iter().for_each(|t| warnings.add(*t));
        let values = header_values(&warnings.take());
        values.iter().map(|v| String::from_utf8(v.as_bytes().to_vec()).unwrap()).collect()
    }

    #[test]
    fn format() {
        assert_eq!(
            values(&["", "a", "a", "say \"x\\y\" ü", "line\nbreak"]),
            ["299 - \"a\"", "299 - \"say \\\"x\\\\y\\\" ü\""]
        );
    }

    #[test]
    fn too_much_is_cut() {
        let long = |c: &str| c.repeat(3000);
        let got = values(&[&long("a"), &long("b"), "c"]);
        let want: Vec<String> =
            [("a", 256), ("b", 256), ("c", 1)].map(|(c, n)| format!("299 - \"{}\"", c.repeat(n))).into();
        assert_eq!(got, want);
        let many = |len: usize| -> Vec<String> { (0..5000).map(|i| format!("{i:0len$}")).collect() };
        let count = |texts: &[String]| values(&texts.iter().map(String::as_str).collect::<Vec<_>>()).len();
        assert_eq!(count(&many(300)), MAX_TOTAL / MAX_CUT);
        // Those that are short enough as they are were told before the whole was too long.
        assert_eq!(count(&many(4)), MAX_TOTAL / 4 + 1);
    }
}
