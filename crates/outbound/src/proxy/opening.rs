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
            return match self.seen.is_empty() {
                true => Heard::Sound,
                false => broken(&ended(&String::from_utf8_lossy(&self.seen))),
            };
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
                if let Some(why) = malformed(&String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line))) {
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
        let end_at = |end: &[u8]| self.seen.windows(end.len()).position(|part| part == end);
        match end_at(b"\r\n\r\n").or_else(|| end_at(b"\n\n")) {
            Some(end) => match unusable(&String::from_utf8_lossy(&self.seen[..end])) {
                Some(why) => broken(&why),
                None => Heard::Sound,
            },
            None if is_full => Heard::Sound,
            None => Heard::Unclear,
        }
    }
}

/// What is wrong with the head of an answer that breaks off.
fn ended(seen: &str) -> String {
    let mut lines = seen.split_inclusive('\n');
    let status = lines.next().unwrap_or_default();
    if let Some(why) = malformed(status.trim_end_matches(['\r', '\n'])) {
        return why;
    }
    match lines.map(|line| line.trim_end_matches(['\r', '\n'])).find(|line| !line.is_empty() && !line.contains(':')) {
        Some(line) => no_colon(line),
        None => "unexpected EOF".to_owned(),
    }
}

fn no_colon(line: &str) -> String {
    format!("malformed MIME header: missing colon: {}", quote(line))
}

/// What is wrong with the headers of an answer, where the HTTP library says less or makes something else of them.
fn unusable(head: &str) -> Option<String> {
    let (mut lengths, mut codings) = (Vec::<&str>::new(), Vec::<&str>::new());
    for line in head.split('\n').skip(1).map(|line| line.trim_end_matches('\r')) {
        if line.starts_with([' ', '\t']) {
            continue;
        }
        let Some((name, value)) = line.split_once(':') else { return Some(no_colon(line)) };
        match name {
            name if name.eq_ignore_ascii_case("content-length") => lengths.push(value.trim()),
            name if name.eq_ignore_ascii_case("transfer-encoding") => codings.push(value.trim()),
            _ => {}
        }
    }
    match codings.as_slice() {
        [] => {}
        [one] if one.eq_ignore_ascii_case("chunked") => return None,
        [one] => return Some(format!("unsupported transfer encoding: {}", quote(one))),
        several => return Some(format!("too many transfer encodings: {}", quoted(several))),
    }
    let first = *lengths.first()?;
    if lengths.iter().any(|length| *length != first) {
        let all = quoted(&lengths);
        return Some(format!("http: message cannot contain multiple Content-Length headers; got {all}"));
    }
    let is_number = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit()) && first.parse::<i64>().is_ok();
    (!is_number).then(|| format!("bad Content-Length {}", quote(first)))
}

/// As Go prints a list of texts.
fn quoted(list: &[&str]) -> String {
    format!("[{}]", list.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" "))
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
            (&["HTTP/1.1 200 OK\r\nA: b", ""], broken("unexpected EOF")),
            (&["HTTP/1.1 200 OK\r\nA", ""], broken("malformed MIME header: missing colon: \"A\"")),
            (&["HTTP/1.1 20", ""], broken("malformed HTTP status code \"20\"")),
            (&["HTTP/1.1 200 OK\r\nno colon\r\n\r\n"], broken("malformed MIME header: missing colon: \"no colon\"")),
            (&["HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"], broken("bad Content-Length \"-5\"")),
            (&["HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n"], Heard::Sound),
            (
                &["HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"],
                broken("http: message cannot contain multiple Content-Length headers; got [\"5\" \"6\"]"),
            ),
            (&["HTTP/1.1 200 OK\r\nTransfer-Encoding: odd\r\n\r\n"], broken("unsupported transfer encoding: \"odd\"")),
            (&["HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"], Heard::Sound),
            (&["\x01\t\r\n"], broken("malformed HTTP response \"\\x01\\t\"")),
            (&["garb"], Heard::Odd),
            (&["garb", ""], broken("malformed HTTP response \"garb\"")),
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
