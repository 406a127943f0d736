//! Collects warnings while a request is handled and puts them into the answer's headers:
//! `Warning: 299 - "text"`, each text once, bounded in length.

use super::Layer;
use http::HeaderValue;
use http::header::WARNING;
use kubelith_http::warnings::Warnings;

/// All texts together, in characters; beyond it each is cut.
const MAX_TOTAL: usize = 4 * 1024;
/// One text once texts are cut.
const MAX_CUT: usize = 256;

pub fn layer() -> Layer {
    Layer::from_fn("warnings", |mut request, next| {
        let warnings = Warnings::default();
        request.context_mut().warnings = Some(warnings.clone());
        next.handle(request).map(move |mut response| {
            for value in header_values(&warnings.take()) {
                response.headers_mut().append(WARNING, value);
            }
            response
        })
    })
}

/// Texts with control characters are left out. Once the whole is too long, every text is cut, those before
/// too, and what is then still too much is left out.
fn header_values(texts: &[String]) -> Vec<HeaderValue> {
    let cut = texts.iter().map(|t| t.chars().count()).sum::<usize>() > MAX_TOTAL;
    let mut values = Vec::with_capacity(texts.len());
    let mut written = 0;
    for text in texts {
        if cut && written >= MAX_TOTAL {
            break;
        }
        if text.chars().any(char::is_control) {
            continue;
        }
        let text: String = if cut { text.chars().take(MAX_CUT).collect() } else { text.clone() };
        written += text.chars().count();
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        values.extend(HeaderValue::try_from(format!("299 - \"{quoted}\"")));
    }
    values
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
        let many: Vec<String> = (0..100).map(|i| format!("{i:0300}")).collect();
        assert_eq!(values(&many.iter().map(String::as_str).collect::<Vec<_>>()).len(), MAX_TOTAL / MAX_CUT);
    }
}
