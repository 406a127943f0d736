//! The words behind a command: `--flag value`, `--flag=value`, and others.

/// Goes through words; a flag's value is asked for by whoever knows that it has one.
pub struct Words<'a> {
    rest: std::slice::Iter<'a, String>,
    flag: &'a str,
    given: Option<&'a str>,
}

impl<'a> Words<'a> {
    pub fn new(words: &'a [String]) -> Words<'a> {
        Words { rest: words.iter(), flag: "", given: None }
    }

    /// The next word; a flag without what stands behind its `=`.
    pub fn next(&mut self) -> Option<&'a str> {
        let word = self.rest.next()?;
        (self.flag, self.given) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (word.as_str(), None),
        };
        Some(self.flag)
    }

    /// The value of the flag that came last.
    pub fn value(&mut self) -> Result<String, String> {
        let value = self.given.or_else(|| self.rest.next().map(String::as_str));
        value.map(str::to_owned).ok_or_else(|| format!("flag needs an argument: {}", self.flag))
    }
}
