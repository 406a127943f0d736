//! Text as the reference's messages print it.

use kubelith_meta::text::quote;

/// Appends `parts`, joined, in quotes. Names seldom need escapes, and reasons are made for every request.
pub fn push_quoted(out: &mut String, parts: &[&str]) {
    let plain = |b: u8| (b' '..=b'~').contains(&b) && b != b'"' && b != b'\\';
    if parts.iter().all(|part| part.bytes().all(plain)) {
        out.push('"');
        parts.iter().for_each(|part| out.push_str(part));
        out.push('"');
    } else {
        out.push_str(&quote(&parts.concat()));
    }
}

/// `["a" "b"]`, as Go's `%q` prints a list.
pub fn quote_list<S: AsRef<str>>(list: &[S]) -> String {
    let quoted: Vec<String> = list.iter().map(|s| quote(s.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_as_the_slow_way_does() {
        for parts in [&["a", "/", "b"][..], &[""], &["a\"b"], &["\\"], &["ü", "x"], &["\n"], &["~ "]] {
            let mut out = String::from("x ");
            push_quoted(&mut out, parts);
            assert_eq!(out, format!("x {}", quote(&parts.concat())));
        }
    }
}
