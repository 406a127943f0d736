//! Names of character classes: those that Go knows, which are fewer than the `regex` crate knows.

/// `[:name:]`, with `^` in front of the name for all other characters.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

const CATEGORIES: [&str; 37] = [
    "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No",
    "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
];

/// Categories in words, as they are looked up: without underscores, with one capital.
const ALIASES: [(&str, &str); 41] = [
    ("Casedletter", "LC"),
    ("Closepunctuation", "Pe"),
    ("Cntrl", "Cc"),
    ("Combiningmark", "M"),
    ("Connectorpunctuation", "Pc"),
    ("Control", "Cc"),
    ("Currencysymbol", "Sc"),
    ("Dashpunctuation", "Pd"),
    ("Decimalnumber", "Nd"),
    ("Digit", "Nd"),
    ("Enclosingmark", "Me"),
    ("Finalpunctuation", "Pf"),
    ("Format", "Cf"),
    ("Initialpunctuation", "Pi"),
    ("Letter", "L"),
    ("Letternumber", "Nl"),
    ("Lineseparator", "Zl"),
    ("Lowercaseletter", "Ll"),
    ("Mark", "M"),
    ("Mathsymbol", "Sm"),
    ("Modifierletter", "Lm"),
    ("Modifiersymbol", "Sk"),
    ("Nonspacingmark", "Mn"),
    ("Number", "N"),
    ("Openpunctuation", "Ps"),
    ("Other", "C"),
    ("Otherletter", "Lo"),
    ("Othernumber", "No"),
    ("Otherpunctuation", "Po"),
    ("Othersymbol", "So"),
    ("Paragraphseparator", "Zp"),
    ("Privateuse", "Co"),
    ("Punct", "P"),
    ("Punctuation", "P"),
    ("Separator", "Z"),
    ("Spaceseparator", "Zs"),
    ("Spacingmark", "Mc"),
    ("Surrogate", "Cs"),
    ("Symbol", "S"),
    ("Titlecaseletter", "Lt"),
    ("Unassigned", "Cn"),
];

/// The one alias that does not fit above.
const UPPERCASE: (&str, &str) = ("Uppercaseletter", "Lu");

/// Scripts of one word: Go finds no others, since it looks for names without underscores among names with them.
const SCRIPTS: &str = " Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi \
    Braille Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret \
    Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han \
    Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki \
    Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen \
    Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage Osmanya \
    Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo Sundanese \
    Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai \
    Vithkuqi Wancho Yezidi Yi ";

/// Whether `[:…:]` is a class.
pub fn is_posix(name: &str) -> bool {
    POSIX.contains(&name.strip_prefix('^').unwrap_or(name))
}

/// The class of a Unicode property inside of brackets; `None` if Go does not know it.
pub fn property(name: &str, negated: bool) -> Option<String> {
    let name = canonical(name);
    let known = match name.as_str() {
        "Any" | "Assigned" => name.as_str(),
        "Ascii" => "ASCII",
        "Lc" => "LC",
        name if CATEGORIES.contains(&name) => name,
        name if SCRIPTS.contains(&format!(" {name} ")) => name,
        name => ALIASES.iter().chain([&UPPERCASE]).find(|(alias, _)| *alias == name)?.1,
    };
    Some(match (known, negated) {
        // No character is half of one.
        ("Cs", false) => r"[^\x{0}-\x{10ffff}]".to_owned(),
        ("Cs", true) => r"\x{0}-\x{10ffff}".to_owned(),
        (known, false) => format!(r"\p{{{known}}}"),
        (known, true) => format!(r"\P{{{known}}}"),
    })
}

/// A capital, then small letters, without what joins words.
fn canonical(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')) {
        out.push(if out.is_empty() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
    }
    out
}

/// The characters of `\d`, `\w` or `\s` inside of brackets; `None` for other letters.
pub fn perl(c: char) -> Option<&'static str> {
    Some(match c {
        'd' => "0-9",
        'D' => "[^0-9]",
        'w' => "0-9A-Za-z_",
        'W' => "[^0-9A-Za-z_]",
        's' => r"\t\n\x0c\r\x20",
        'S' => r"[^\t\n\x0c\r\x20]",
        _ => return None,
    })
}

/// A range inside of brackets. Halves of characters match nothing.
pub fn range(lo: u32, hi: u32) -> String {
    let lo = if (0xd800..0xe000).contains(&lo) { 0xe000 } else { lo };
    let hi = if (0xd800..0xe000).contains(&hi) { 0xd7ff } else { hi };
    if lo > hi { String::new() } else { format!(r"\x{{{lo:x}}}-\x{{{hi:x}}}") }
}
