//! The table of types, as data.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A struct of Go.
pub struct Form {
    pub fields: Vec<Field>,
}

pub enum Field {
    Own {
        name: String,
        wire: String,
        notation: Notation,
    },
    /// On the wire it stands in the object around this one.
    Outer {
        name: String,
        wire: String,
        notation: Notation,
    },
    /// Has a tag with `omitempty`.
    UnlessEmpty {
        name: String,
        notation: Notation,
    },
    /// The fields of the struct `name`, which is the member `wire` on the wire.
    Embedded {
        wire: String,
        name: String,
    },
}

/// What a field holds, as far as printing goes.
pub enum Notation {
    Text,
    Number,
    Flag,
    Quantity,
    /// Prints itself, and null where Go's zero value does.
    Nullable,
    Pointer(Box<Notation>),
    List(Box<Notation>),
    Map(Box<Notation>),
    Struct(String),
}

impl Notation {
    pub fn of(text: &str) -> Notation {
        if let Some(rest) = text.strip_prefix('*') {
            return Notation::Pointer(Box::new(Notation::of(rest)));
        }
        if let Some(rest) = text.strip_prefix("[]") {
            return Notation::List(Box::new(Notation::of(rest)));
        }
        if let Some(rest) = text.strip_prefix("map[").and_then(|rest| rest.strip_suffix(']')) {
            return Notation::Map(Box::new(Notation::of(rest)));
        }
        match text {
            "string" => Notation::Text,
            // A port or a share may also be a text: what is there is printed as it is.
            "int" | "IntOrString" => Notation::Number,
            "bool" => Notation::Flag,
            "Quantity" => Notation::Quantity,
            "Time" | "Raw" | "bytes" => Notation::Nullable,
            name => Notation::Struct(name.to_owned()),
        }
    }
}

static FORMS: LazyLock<HashMap<&'static str, Form>> = LazyLock::new(|| read(include_str!("forms.txt")));

/// The struct of that name. The table is closed (a test walks it), so an unknown name is a mistake in a rule.
pub fn get(name: &str) -> &'static Form {
    FORMS.get(name).unwrap_or_else(|| panic!("no form {name}"))
}

fn read(table: &'static str) -> HashMap<&'static str, Form> {
    let mut forms: HashMap<&str, Form> = HashMap::new();
    let mut name = "";
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with(' ') {
            let form = forms.entry(name).or_insert_with(|| Form { fields: Vec::new() });
            form.fields.extend(line.split_whitespace().map(field));
        } else {
            name = line;
        }
    }
    forms
}

fn field(token: &str) -> Field {
    let (name, kind) = token.split_once(':').unwrap_or((token, "string"));
    if let Some(wire) = name.strip_prefix("..") {
        return Field::Embedded { wire: wire.into(), name: kind.into() };
    }
    let notation = Notation::of(kind);
    if let Some(name) = name.strip_suffix('?') {
        return Field::UnlessEmpty { name: name.into(), notation };
    }
    if let Some(name) = name.strip_prefix('^') {
        return Field::Outer { name: name.into(), wire: wire_name(name), notation };
    }
    match name.split_once('=') {
        Some((name, wire)) => Field::Own { name: name.into(), wire: wire.into(), notation },
        None => Field::Own { name: name.into(), wire: wire_name(name), notation },
    }
}

/// A name on the wire: the first word or initialism is small. `DNSPolicy`: dnsPolicy; `WWIDs`: wwids; `OS`: os.
pub fn wire_name(name: &str) -> String {
    let capitals = name.bytes().take_while(u8::is_ascii_uppercase).count();
    let rest = &name[capitals..];
    let small = match rest {
        "" | "s" => name.len(),
        // The last capital begins the next word.
        _ if capitals > 1 && rest.starts_with(|c: char| c.is_ascii_lowercase()) => capitals - 1,
        _ => capitals,
    };
    format!("{}{}", name[..small].to_ascii_lowercase(), &name[small..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_names() {
        let cases = [
            ("DNSPolicy", "dnsPolicy"),
            ("OS", "os"),
            ("WWIDs", "wwids"),
            ("SELinuxOptions", "seLinuxOptions"),
            ("HostPID", "hostPID"),
            ("Name", "name"),
            ("labels", "labels"),
            ("TTY", "tty"),
        ];
        for (name, wire) in cases {
            assert_eq!(wire_name(name), wire);
        }
    }

    #[test]
    fn the_table_is_closed() {
        fn check(notation: &Notation) {
            match notation {
                Notation::Pointer(of) | Notation::List(of) | Notation::Map(of) => check(of),
                Notation::Struct(name) => assert!(FORMS.contains_key(name.as_str()), "{name}"),
                _ => {}
            }
        }
        assert!(FORMS.len() > 100);
        for form in FORMS.values() {
            for field in &form.fields {
                match field {
                    Field::Own { notation, .. }
                    | Field::Outer { notation, .. }
                    | Field::UnlessEmpty { notation, .. } => check(notation),
                    Field::Embedded { name, .. } => assert!(FORMS.contains_key(name.as_str()), "{name}"),
                }
            }
        }
    }
}
