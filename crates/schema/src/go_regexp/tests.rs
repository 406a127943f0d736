use super::*;

#[test]
fn go_s_syntax_means_what_it_means_in_go() {
    let table = [
        (r"^\d+$", "12", true),
        (r"^\d+$", "٣", false),
        (r"^\w+$", "é", false),
        (r"^[\w-]+$", "a-b_1", true),
        (r"^[^\s]+$", "a b", false),
        (r"^[[a-z]+$", "[a", true),
        (r"^[]a]+$", "]a", true),
        (r"^[a&&b]+$", "&", true),
        (r"^a{,2}$", "a{,2}", true),
        (r"^a{2,3}$", "aaa", true),
        (r"^\{x\}$", "{x}", true),
        (r"^{foo}$", "{foo}", true),
        (r"^\Qa.b\E$", "a.b", true),
        (r"^\Qa.b\E$", "axb", false),
        (r"^\<a\>$", "<a>", true),
        (r"^\/a\_b$", "/a_b", true),
        (r"^[[:alpha:]]+$", "ab", true),
        (r"^[\D]+$", "ab", true),
        (r"^\p{Greek}+$", "αβ", true),
        (r"^\P{^lu}$", "A", true),
        (r"^\p{Decimal_Number}$", "٣", true),
        (r"^\x{61}\x62\143$", "abc", true),
        (r"^a$", "a\n", false),
        (r"(?m)^b$", "a\nb\nc", true),
        (r"(?i)^ab$", "AB", true),
        (r"(?i:a)b", "AB", false),
        (r"a(?i)b|c", "C", true),
        (r"\bx\B", "éxy", true),
        (r"^(a|bc|)*d$", "abcad", true),
        (r"^(?:)$", "", true),
        (r"[\x{d800}]", "a", false),
        (r"^[^\x{d800}]$", "a", true),
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "my-name", true),
        (r"^.$", "\n", false),
        (r"(?s)^.$", "\n", true),
    ];
    for (pattern, text, expected) in table {
        let regex = compile(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"));
        assert_eq!(regex.is_match(text), expected, "{pattern} on {text}");
        let node = parse::parse(pattern).unwrap();
        assert_eq!(machine::is_match(&node, text), Ok(expected), "{pattern} on {text}, without the crate");
    }
}

/// What Go says of each; nothing where it takes the expression.
#[test]
fn errors_are_go_s() {
    let table = [
        (r"(", r"missing closing ): `(`"),
        (r"a**", r"invalid nested repetition operator: `**`"),
        (r"[a", r"missing closing ]: `[a`"),
        (r"[z-a]", r"invalid character class range: `z-a`"),
        (r"((a{100}){10}){10}", r"invalid repeat count: `{10}`"),
        (r"^\pL{1,500}N$", r""),
        (r"\p{greek}", r""),
        (r"\p{Ol_Chiki}", r"invalid character class range: `\p{Ol_Chiki}`"),
        (r"\p{Alphabetic}", r"invalid character class range: `\p{Alphabetic}`"),
        (r"\p{Lowercase_Letter}", r""),
        (r"\p{^Lu}", r""),
        (r"\P{cntrl}", r""),
        (r"\p{", r"invalid character class range: `\p{`"),
        (r"\p", r"invalid character class range: `\p`"),
        (r"\pé", r"invalid character class range: `\pé`"),
        (r"a{2,1}", r"invalid repeat count: `{2,1}`"),
        (r"a{1000}", r""),
        (r"(?P<a>x)(?P<a>y)", r""),
        (r"(?<n>x)", r""),
        (r"(?<>x)", r"invalid named capture: `(?<>`"),
        (r"(?<=a)", r"invalid named capture: `(?<=a)`"),
        (r"(?P=n)", r"invalid or unsupported Perl syntax: `(?P`"),
        (r"(?P<n", r"invalid named capture: `(?P<n`"),
        (r"(?#x)", r"invalid or unsupported Perl syntax: `(?#`"),
        (r"(?i", r"invalid or unsupported Perl syntax: `(?i`"),
        (r"(?i-s:a)", r""),
        (r"(?--i)", r"invalid or unsupported Perl syntax: `(?--`"),
        (r"(?-)", r"invalid or unsupported Perl syntax: `(?-)`"),
        (r"(?i)*", r"missing argument to repetition operator: `*`"),
        (r"a(?i)*", r""),
        (r"\xA", r"invalid escape sequence: `\xA`"),
        (r"\x", r"invalid escape sequence: `\x`"),
        (r"\x{}", r"invalid escape sequence: `\x{}`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\x{10FFFF}", r""),
        (r"\x{61", r"invalid escape sequence: `\x{61`"),
        (r"\xZ1", r"invalid escape sequence: `\xZ1`"),
        (r"a{1001}", r"invalid repeat count: `{1001}`"),
        (r"a{01}", r""),
        (r"a{1,2000}", r"invalid repeat count: `{1,2000}`"),
        (r"a{99999999999}", r"invalid repeat count: `{99999999999}`"),
        (r"a{,2}", r""),
        (r"a{2", r""),
        (r"(a{2}){501}", r"invalid repeat count: `{501}`"),
        (r"(a{0}){1000}", r""),
        (r"(?:a{500}){2}", r""),
        (r"(?:a{501}){2}", r"invalid repeat count: `{2}`"),
        (r"((a*){1000}){1}", r""),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\07", r""),
        (r"\777", r""),
        (r"\Qa*\E*", r""),
        (r"\Q*", r""),
        (r"\", r"trailing backslash at end of expression: ``"),
        (r"a\", r"trailing backslash at end of expression: ``"),
        (r"[\", r"trailing backslash at end of expression: ``"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        (r"[\d-z]", r""),
        (r"[a-]", r""),
        (r"[]a]", r""),
        (r"[]", r"missing closing ]: `[]`"),
        (r"[^]", r"missing closing ]: `[^]`"),
        (r"[[:alpha:]", r"missing closing ]: `[[:alpha:]`"),
        (r"[[:foo:]]", r"invalid character class range: `[:foo:]`"),
        (r"[[:^digit:]x]", r""),
        (r"[[:alpha]", r""),
        (r"a)", r"unexpected ): `a)`"),
        (r")", r"unexpected ): `)`"),
        (r"*", r"missing argument to repetition operator: `*`"),
        (r"^*", r""),
        (r"$+", r""),
        (r"a|*", r"missing argument to repetition operator: `*`"),
        (r"(*)", r"missing argument to repetition operator: `*`"),
        (r"|*", r"missing argument to repetition operator: `*`"),
        (r"x{2}{2}", r"invalid nested repetition operator: `{2}{2}`"),
        (r"x{2}*", r"invalid nested repetition operator: `{2}*`"),
        (r"x*?+", r"invalid nested repetition operator: `*?+`"),
        (r"x*??", r"invalid nested repetition operator: `*??`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\c", r"invalid escape sequence: `\c`"),
        (r"\é", r"invalid escape sequence: `\é`"),
        (r"\_", r""),
        (r"é*", r""),
        (r"\b+", r""),
        (r"(?m)^a$", r""),
        (r"(?U)a+?", r""),
        (r"(|a)*", r""),
        (r"()", r""),
        (r"(a|b", r"missing closing ): `(a|b`"),
        (r"a||b", r""),
        (r"[\x{d800}]", r""),
        (r"[^\x{d800}-\x{dfff}]", r""),
        (r"[a-\x{e000}]", r""),
        (r"{1}", r"missing argument to repetition operator: `{1}`"),
        (r"a{1}{", r""),
        (r"(?i:Ä)k", r""),
        (r"a{0}", r""),
        (r"a{0,0}", r""),
        (r"a{,}", r""),
        (r"[--z]", r""),
        (r"[+--]", r""),
        (r"(?s).", r""),
        (r"(?=a)", r"invalid or unsupported Perl syntax: `(?=`"),
        (r"(?!a)", r"invalid or unsupported Perl syntax: `(?!`"),
        (r"(?>a)", r"invalid or unsupported Perl syntax: `(?>`"),
        (r"\G", r"invalid escape sequence: `\G`"),
        (r"(((((((((a{2}){2}){2}){2}){2}){2}){2}){2}){2})", r""),
        (r"((((((((((a{2}){2}){2}){2}){2}){2}){2}){2}){2}){2})", r"invalid repeat count: `{2}`"),
    ];
    for (pattern, expected) in table {
        let found = check(pattern).err().unwrap_or_default();
        assert_eq!(found.strip_prefix("error parsing regexp: ").unwrap_or(&found), expected, "{pattern}");
        if expected.is_empty() {
            assert!(Matcher::new(pattern).unwrap().is_match("a").is_ok(), "{pattern}");
        }
    }
}

#[test]
fn depth_and_size_are_limited_as_in_go() {
    let nested = |open: &str, n: usize| format!("{}a{}", open.repeat(n), ")".repeat(n));
    let fails = |pattern: &str| check(pattern).err().map(|e| e.split(": ").nth(1).unwrap().to_owned());
    assert_eq!(fails(&nested("(", 999)), None);
    assert_eq!(fails(&nested("(", 1000)).unwrap(), "expression nests too deeply");
    assert_eq!(fails(&nested("(?:", 2000)), None);
    assert_eq!(fails(&format!("(?:{}){{1000}}", "a".repeat(3400))).unwrap(), "expression too large");
    assert_eq!(fails(&format!("{}{{1000}}", "a".repeat(3400))), None);
}

#[test]
fn what_is_too_large_for_the_crate_is_matched_all_the_same() {
    let matcher = Matcher::new(r"^\pL{1,500}N$").unwrap();
    assert!(matches!(matcher.0, Engine::Tree(_)));
    for (text, expected) in [("éaN", true), ("N", false), ("1N", false)] {
        assert_eq!(matcher.is_match(text), Ok(expected), "{text}");
    }
    assert_eq!(matcher.is_match(&format!("{}N", "é".repeat(500))), Ok(true));
    assert_eq!(matcher.is_match(&format!("{}N", "é".repeat(501))), Ok(false));
}
