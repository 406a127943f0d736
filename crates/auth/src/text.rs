//! Lists as the reference's messages print them.

use kubelith_meta::text::quote;

/// `["a" "b"]`, as Go's `%q` prints a list.
pub fn quote_list<S: AsRef<str>>(list: &[S]) -> String {
    let quoted: Vec<String> = list.iter().map(|s| quote(s.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}
