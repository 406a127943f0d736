//! Whatever the input, parsers answer: pseudo-random texts over the characters that their grammars know.

use kubelith_meta::names::{self, Cidr, NameUse};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::time::{Duration, Time};
use kubelith_meta::{FieldSelector, IntOrString, LabelSelector, random};

/// Texts of up to `max` pieces, the same in every run.
struct Texts {
    state: u64,
}

impl Texts {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.state >> 33
    }

    fn text(&mut self, pieces: &[&str], max: u64) -> String {
        let length = self.next() % (max + 1);
        (0..length).map(|_| pieces[self.next() as usize % pieces.len()]).collect()
    }
}

const ROUNDS: usize = 20_000;

#[test]
fn quantities_round_trip() {
    let mut texts = Texts { state: 1 };
    let pieces =
        ["0", "1", "9", "5", "000", ".", "-", "+", "e", "E", "k", "Ki", "Mi", "Ei", "m", "n", "u", "P", "é", " "];
    let mut read = 0;
    for _ in 0..ROUNDS {
        let text = texts.text(&pieces, 8);
        let Ok(quantity) = Quantity::parse(&text) else { continue };
        read += 1;
        let (_, _, _) = (quantity.value(), quantity.milli_value(), quantity.as_approximate_f64());
        let shown = quantity.to_string();
        let again = Quantity::parse(&shown).unwrap_or_else(|e| panic!("{text:?} shows as {shown:?}: {e}"));
        assert_eq!(again.to_string(), shown, "{text:?}");
        let mut zero = quantity.clone();
        zero -= &quantity;
        assert!(zero.is_zero(), "{text:?}");
    }
    assert!(read > ROUNDS / 50, "only {read} of the texts are quantities");
}

#[test]
fn times_and_durations_answer() {
    let mut texts = Texts { state: 2 };
    let pieces =
        ["2026-01-02T03:04:05", "2026", "-", ":", "T", "Z", "0", "9", "01", "+", ".", ",", "é", "h", "ms", "µs", "s"];
    for _ in 0..ROUNDS {
        let text = texts.text(&pieces, 6);
        let _ = (Time::parse_micro(&text), IntOrString::parse(&text));
        if let Ok(time) = Time::parse(&text) {
            assert_eq!(Time::parse(&time.rfc3339()).unwrap(), time.truncate_to_seconds(), "{text:?}");
        }
        if let Ok(duration) = Duration::parse(&text) {
            assert_eq!(Duration::parse(&duration.to_string()), Ok(duration), "{text:?}");
        }
    }
}

#[test]
fn selectors_answer_and_print_what_they_read() {
    let mut texts = Texts { state: 3 };
    let pieces =
        ["a", "b", "in", "notin", " ", "(", ")", ",", "=", "!", "<", ">", "1", "\\", "\0", "é", "-", "/", "\n"];
    for _ in 0..ROUNDS {
        let text = texts.text(&pieces, 9);
        if let Ok(selector) = LabelSelector::parse(&text) {
            assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector), "{text:?}");
        }
        if let Ok(selector) = FieldSelector::parse(&text) {
            let again = FieldSelector::parse(&selector.to_string()).unwrap();
            assert_eq!(again.to_string(), selector.to_string(), "{text:?}");
        }
    }
}

#[test]
fn names_and_addresses_answer() {
    let mut texts = Texts { state: 4 };
    let pieces = ["a", "A", "0", "-", ".", "_", "/", ":", "::", "1.2.3.4", "ffff", "%", "é", "*", "24", "=", " "];
    for _ in 0..ROUNDS {
        let text = texts.text(&pieces, 7);
        for name_use in [NameUse::Full, NameUse::Prefix] {
            let _ = (names::name_is_dns_label(&text, name_use), names::name_is_path_segment(&text, name_use));
        }
        let _ = (names::is_qualified_name(&text), names::is_config_map_key(&text), names::is_env_var_name(&text));
        assert!(random::generate_name(&text, || 7).len() <= 63);
        if let Some(ip) = names::parse_ip_sloppy(&text) {
            assert_eq!(
                names::parse_ip_sloppy(&names::canonical_ip(ip).to_string()).map(names::canonical_ip),
                Some(names::canonical_ip(ip))
            );
        }
        if let Some(cidr) = Cidr::parse_sloppy(&text) {
            assert!(cidr.contains(cidr.address), "{text:?}");
        }
    }
}
