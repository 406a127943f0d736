//! Semantic versions.

use std::cmp::Ordering;

/// Without what names the build, which does not count in comparisons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Version<'a> {
    core: [u64; 3],
    pre: Vec<&'a str>,
}

impl<'a> Version<'a> {
    /// Reads a version, if it is one by the book.
    pub fn parse(text: &'a str) -> Option<Version<'a>> {
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let is_number = |part: &str| is_digits(part) && (part == "0" || !part.starts_with('0'));
        let mut parts = core.split('.').map(|part| is_number(part).then(|| part.parse().ok()).flatten());
        let core = [parts.next()??, parts.next()??, parts.next()??];
        let pre: Vec<&str> = pre.map(|pre| pre.split('.').collect()).unwrap_or_default();
        let is_right = parts.next().is_none()
            && pre.iter().all(|part| is_word(part) && (!is_digits(part) || is_number(part)))
            && build.is_none_or(|build| build.split('.').all(is_word));
        is_right.then_some(Version { core, pre })
    }
}

fn is_digits(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())
}

impl PartialOrd for Version<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        // A version without a pre-release is above all that have one; longer ones are above those they begin with.
        let pre = || match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let parts = self.pre.iter().zip(&other.pre).map(|(a, b)| compare_parts(a, b));
                parts.fold(Ordering::Equal, Ordering::then).then(self.pre.len().cmp(&other.pre.len()))
            }
        };
        self.core.cmp(&other.core).then_with(pre)
    }
}

/// Numbers are below words.
fn compare_parts(a: &str, b: &str) -> Ordering {
    match (is_digits(a), is_digits(b)) {
        (true, true) => (a.len(), a).cmp(&(b.len(), b)),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn order() {
        let texts = ["0.0.0-a", "0.0.0", "1.2.3-1", "1.2.3-2", "1.2.3-10", "1.2.3-a", "1.2.3-a.1", "1.2.3", "1.10.0"];
        let versions: Vec<_> = texts.iter().map(|text| Version::parse(text).expect(text)).collect();
        assert!(versions.is_sorted());
        assert_eq!(Version::parse("1.2.3+a"), Version::parse("1.2.3+b"));
    }

    #[test]
    fn what_is_none() {
        for text in
            ["", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-01", "1.2.3-", "v1.2.3", "1.2.3+", "1.2.3-a..b", "1.2.x"]
        {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
