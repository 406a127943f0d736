//! How the first answer on a connection begins. The HTTP library says only that it could not read an answer; clients are told
//! what stood there instead, in the words of Go's client.

use kubelith_meta::text::quote;

/// An answer whose head is longer than this is not watched to its end.
const MAX_WATCHED: usize = 16 << 10;
const BEGINNING: &[u8] = b"HTTP/1.";

/// What has come so far.
#[derive(Debug, Default)]
pub struct Opening {
    seen: Vec<u8>,
}

/// What to do with the bytes that came.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// The head is there, or is none of our business any more.
    Sound,
    /// So far it may be an answer: pass on, and watch.
    Unclear,
    /// It is none; the rest of its first line is waited for.
    Odd,
    Broken(String),
}

/// Why an answer could not be read; ends the connection.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

impl Opening {
    pub fn has_begun(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Takes the next bytes; none are the end of the connection.
    pub fn hear(&mut self, bytes: &[u8]) -> Heard {
        let broken = |why: &str| Heard::Broken(format!("net/http: HTTP/1.x transport connection broken: {why}"));
        if bytes.is_empty() {
            return if self.seen.is_empty() { Heard::Sound } else { broken("unexpected EOF") };
        }
        let had_line = self.seen.contains(&b'\n');
        let room = MAX_WATCHED - self.seen.len();
        self.seen.extend(bytes.iter().take(room));
        let is_full = self.seen.len() == MAX_WATCHED;
        let line = self.seen.iter().position(|byte| *byte == b'\n').map(|end| &self.seen[..end]);
        let known = BEGINNING.len().min(self.seen.len());
        let is_odd = self.seen[..known] != BEGINNING[..known];
        match line {
            Some(line) if !had_line => {
                if let Some(why) = malformed(&String::from_utf8_lossy(line.trim_ascii_end())) {
                    return broken(&why);
                }
            }
            None if is_odd && is_full => {
                let shown = quote(&String::from_utf8_lossy(&self.seen));
                return broken(&format!("malformed HTTP response {shown}"));
            }
            None if is_odd => return Heard::Odd,
            _ => {}
        }
        let has_end = |end: &[u8]| self.seen.windows(end.len()).any(|part| part == end);
        if is_full || has_end(b"\r\n\r\n") || has_end(b"\n\n") { Heard::Sound } else { Heard::Unclear }
    }
}

/// What is wrong with a status line.
fn malformed(line: &str) -> Option<String> {
    let Some((version, rest)) = line.split_once(' ') else {
        return Some(format!("malformed HTTP response {}", quote(line)));
    };
    let code = rest.trim_start_matches(' ').split(' ').next().unwrap_or_default();
    if code.len() != 3 || !code.bytes().all(|b| b.is_ascii_digit()) {
        return Some(format!("malformed HTTP status code {}", quote(code)));
    }
    let is_version = matches!(version.as_bytes(), [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
        if major.is_ascii_digit() && minor.is_ascii_digit());
    (!is_version).then(|| format!("malformed HTTP version {}", quote(version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_none() {
        let broken = |why: &str| Heard::Broken(format!("net/http: HTTP/1.x transport connection broken: {why}"));
        let cases: &[(&[&str], Heard)] = &[
            (&["HTTP/1.1 200 OK\r\n\r\n"], Heard::Sound),
            (&["HTTP/1.1 200\r\n\r\n"], Heard::Sound),
            (&["HTTP/1.1 200 OK\r\nA: b\r\n"], Heard::Unclear),
            (&["HT", "TP/1.0 200 OK\n", "\n"], Heard::Sound),
            (&[""], Heard::Sound),
            (&["HTTP/1.1 200 OK\r\nA", ""], broken("unexpected EOF")),
            (&["garb"], Heard::Odd),
            (&["garb", ""], broken("unexpected EOF")),
            (&["garb", "age\r\nmore"], broken("malformed HTTP response \"garbage\"")),
            (&["HTTP/1.1\r\n"], broken("malformed HTTP response \"HTTP/1.1\"")),
            (&["HTTP/1.1 20 OK\r\n"], broken("malformed HTTP status code \"20\"")),
            (&["HTTP/1.1 x00 OK\r\n"], broken("malformed HTTP status code \"x00\"")),
            (&["SSH-2.0 200 OK\r\n"], broken("malformed HTTP version \"SSH-2.0\"")),
        ];
        for (pieces, want) in cases {
            let mut opening = Opening::default();
            let heard = pieces.iter().map(|piece| opening.hear(piece.as_bytes())).last().unwrap();
            assert_eq!(heard, *want, "{pieces:?}");
        }
        let mut opening = Opening::default();
        let long = vec![b'x'; 2 * MAX_WATCHED];
        assert!(matches!(opening.hear(&long), Heard::Broken(why) if why.len() > MAX_WATCHED));
    }
}
