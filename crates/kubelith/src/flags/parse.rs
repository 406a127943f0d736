//! From arguments to values, by pflag's rules: `--x v`, `--x=v`, `--x` for booleans, `-v 2`, `-v2`, `_` for
//! `-` in names, lists that add up, `--` and nothing behind it.

use super::kind::{FlagKind, Value};
use super::{Effect, Flag, SECTIONS, find};
use kubelith_meta::text::Quoted;
use kubelith_meta::time::Duration;
use std::collections::BTreeMap;

/// A command line that cannot be read. Displays as the reference's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

fn usage(message: impl Into<String>) -> UsageError {
    UsageError(message.into())
}

/// The values given. What is not given has its default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flags {
    given: BTreeMap<&'static str, Value>,
}

/// Reads the arguments behind the program's name.
pub fn parse(args: &[String]) -> Result<Flags, UsageError> {
    let mut flags = Flags::default();
    let mut positional = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--" {
            positional.extend(args.by_ref().cloned());
        } else if let Some(long) = arg.strip_prefix("--") {
            flags.long(arg, long, &mut args)?;
        } else if arg.len() > 1 && arg.starts_with('-') {
            flags.short(&arg[1..], &mut args)?;
        } else {
            positional.push(arg.clone());
        }
    }
    if positional.iter().any(|a| !a.is_empty()) {
        let quoted: Vec<String> = positional.iter().map(|a| Quoted(a).to_string()).collect();
        return Err(usage(format!("\"kubelith\" does not take any arguments, got [{}]", quoted.join(" "))));
    }
    Ok(flags)
}

impl Flags {
    fn long<'a>(
        &mut self,
        arg: &str,
        text: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), UsageError> {
        if text.starts_with(['-', '=']) {
            return Err(usage(format!("bad flag syntax: {arg}")));
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let flag = find(name).ok_or_else(|| usage(format!("unknown flag: --{name}")))?;
        let value = match (value, flag.kind.bare_value()) {
            (Some(value), _) | (None, Some(value)) => value,
            (None, None) => rest.next().ok_or_else(|| usage(format!("flag needs an argument: --{name}")))?,
        };
        let shown = if flag.name == "v" { "-v, --v".to_owned() } else { format!("--{}", flag.name) };
        self.set(flag, value, &shown)
    }

    /// `-v=2`, `-v2`, `-v 2`, `-h`.
    fn short<'a>(&mut self, text: &str, rest: &mut impl Iterator<Item = &'a String>) -> Result<(), UsageError> {
        let mut chars = text.chars();
        let letter = chars.next().unwrap_or('-');
        let tail = chars.as_str();
        match letter {
            'h' => {
                let help = find("help").expect("in the table");
                self.set(help, "true", "--help")?;
                if tail.is_empty() { Ok(()) } else { self.short(tail, rest) }
            }
            'v' => {
                let value = match tail.strip_prefix('=') {
                    Some(value) => value,
                    None if !tail.is_empty() => tail,
                    None => rest.next().ok_or_else(|| usage(format!("flag needs an argument: 'v' in -{text}")))?,
                };
                self.set(find("v").expect("in the table"), value, "-v, --v")
            }
            _ => Err(usage(format!("unknown shorthand flag: '{letter}' in -{text}"))),
        }
    }

    fn set(&mut self, flag: &'static Flag, text: &str, shown: &str) -> Result<(), UsageError> {
        let value = flag
            .kind
            .read(text)
            .map_err(|why| usage(format!("invalid argument {} for \"{shown}\" flag: {why}", Quoted(text))))?;
        match (self.given.get_mut(flag.name), value) {
            (Some(Value::List(list)), Value::List(more)) if flag.kind.accumulates() => list.extend(more),
            (Some(Value::Pairs(pairs)), Value::Pairs(more)) if flag.kind.accumulates() => {
                for (key, value) in more {
                    put(pairs, key, value);
                }
            }
            (_, Value::Pairs(more)) => {
                let mut pairs = Vec::new();
                more.into_iter().for_each(|(key, value)| put(&mut pairs, key, value));
                self.given.insert(flag.name, Value::Pairs(pairs));
            }
            (_, value) => {
                self.given.insert(flag.name, value);
            }
        }
        Ok(())
    }

    /// Adds what a configuration file says; the command line wins.
    pub fn add_default(&mut self, name: &str, values: &[String]) -> Result<(), UsageError> {
        let flag = find(name).ok_or_else(|| usage(format!("unknown flag: --{name}")))?;
        if self.given.contains_key(flag.name) {
            return Ok(());
        }
        for value in values {
            self.set(flag, value, &format!("--{}", flag.name))?;
        }
        Ok(())
    }

    /// Flags that were given and have no effect, in the table's order.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static Flag> {
        SECTIONS.iter().flat_map(|s| s.flags).filter(|f| f.effect != Effect::Applies && self.given.contains_key(f.name))
    }

    /// Whether the flag was given at all, with whatever value.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// The names of the flags that were given.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        SECTIONS.iter().flat_map(|s| s.flags).map(|f| f.name).filter(|name| self.given.contains_key(name))
    }

    /// What to say about deprecated flags that were given.
    pub fn deprecations(&self) -> impl Iterator<Item = String> {
        let given = |f: &&Flag| self.given.contains_key(f.name);
        let message = |f: &Flag| Some(format!("Flag --{} has been deprecated, {}", f.name, f.deprecated?));
        SECTIONS.iter().flat_map(|s| s.flags).filter(given).filter_map(message)
    }

    /// The value given, else the default. Asking for a flag that is not in the table is a mistake in the program.
    pub fn value(&self, name: &str) -> Value {
        let flag = find(name).unwrap_or_else(|| panic!("--{name} is not in the table"));
        match self.given.get(flag.name) {
            Some(value) => value.clone(),
            None if flag.default.is_empty() => flag.kind.zero(),
            None => flag.kind.read(flag.default).expect("defaults are valid"),
        }
    }

    pub fn bool(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Bool(b) => b,
            other => wrong(name, &other),
        }
    }

    pub fn int(&self, name: &str) -> i64 {
        match self.value(name) {
            Value::Int(i) => i,
            other => wrong(name, &other),
        }
    }

    pub fn float(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Float(f) => f,
            other => wrong(name, &other),
        }
    }

    pub fn duration(&self, name: &str) -> Duration {
        match self.value(name) {
            Value::Duration(d) => d,
            other => wrong(name, &other),
        }
    }

    pub fn text(&self, name: &str) -> String {
        match self.value(name) {
            Value::Text(t) => t,
            other => wrong(name, &other),
        }
    }

    pub fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Value::List(l) => l,
            other => wrong(name, &other),
        }
    }

    pub fn pairs(&self, name: &str) -> Vec<(String, String)> {
        match self.value(name) {
            Value::Pairs(p) => p,
            other => wrong(name, &other),
        }
    }

    /// All flags with their values as text, for /flagz.
    pub fn all(&self) -> Vec<(&'static str, String)> {
        SECTIONS.iter().flat_map(|s| s.flags).map(|f| (f.name, show(&self.value(f.name), f.kind))).collect()
    }
}

fn wrong(name: &str, value: &Value) -> ! {
    panic!("--{name} is not of the type asked for: {value:?}")
}

fn put(pairs: &mut Vec<(String, String)>, key: String, value: String) {
    match pairs.iter_mut().find(|(k, _)| *k == key) {
        Some(pair) => pair.1 = value,
        None => pairs.push((key, value)),
    }
}

fn show(value: &Value, kind: FlagKind) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => f.to_string(),
        Value::Duration(d) => d.to_string(),
        Value::Text(t) if t.is_empty() && kind == FlagKind::Quantity => "0".to_owned(),
        Value::Text(t) => t.clone(),
        Value::List(l) if kind == FlagKind::NamedCertKey => format!("[{}]", l.join(";")),
        Value::List(l) => format!("[{}]", l.join(",")),
        Value::Pairs(p) => {
            let pairs = p.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",");
            if kind == FlagKind::TextMap { format!("[{pairs}]") } else { pairs }
        }
    }
}
