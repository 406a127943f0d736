//! Types of flags: how a value is written, and what is wrong with one that cannot be read.

use super::{csv, go_number};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::text::Quoted;
use kubelith_meta::time::Duration;
use std::net::IpAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagKind {
    Bool,
    Int,
    Int32List,
    Float,
    Float32,
    Duration,
    Ip,
    Text,
    /// Comma-separated, quotes as in CSV, adds up when repeated.
    List,
    /// One element each time it is given, commas and all.
    Array,
    /// `key=value,…`
    Map,
    /// `key[=value],…`
    ConfigMap,
    /// `[component:]Gate=bool,…`
    FeatureGates,
    /// `key=value,…` as pflag's own map type words its errors.
    TextMap,
    /// `from-to`, `from+count` or one port.
    PortRange,
    /// `cert,key[:name,…]`
    NamedCertKey,
    Quantity,
    Level,
    /// `pattern=N,…`
    VModule,
    /// true, false or raw.
    Version,
}

/// A flag's value. Lists grow when the flag is repeated.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Duration(Duration),
    Text(String),
    List(Vec<String>),
    Pairs(Vec<(String, String)>),
}

impl FlagKind {
    /// As in the help: `--flag type`.
    pub fn name(self) -> &'static str {
        match self {
            FlagKind::Bool => "",
            FlagKind::Int => "int",
            FlagKind::Int32List => "int32Slice",
            FlagKind::Float => "float",
            FlagKind::Float32 => "float32",
            FlagKind::Duration => "duration",
            FlagKind::Ip => "ip",
            FlagKind::Text => "string",
            FlagKind::List => "strings",
            FlagKind::Array => "stringArray",
            FlagKind::Map | FlagKind::ConfigMap => "mapStringString",
            FlagKind::FeatureGates => "colonSeparatedMultimapStringString",
            FlagKind::TextMap => "stringToString",
            FlagKind::PortRange => "portRange",
            FlagKind::NamedCertKey => "namedCertKey",
            FlagKind::Quantity => "quantity",
            FlagKind::Level => "Level",
            FlagKind::VModule => "pattern=N,...",
            FlagKind::Version => "version[=true]",
        }
    }

    /// What `--flag` alone means; `None` if it needs a value.
    pub fn bare_value(self) -> Option<&'static str> {
        matches!(self, FlagKind::Bool | FlagKind::Version).then_some("true")
    }

    /// Whether a repeated flag adds to what was given before.
    pub fn accumulates(self) -> bool {
        use FlagKind::{Array, ConfigMap, FeatureGates, Int32List, List, Map, NamedCertKey, TextMap, VModule};
        matches!(self, Array | ConfigMap | FeatureGates | Int32List | List | Map | NamedCertKey | TextMap | VModule)
    }

    /// The value of no flag and no default.
    pub fn zero(self) -> Value {
        match self {
            FlagKind::Bool => Value::Bool(false),
            FlagKind::Int | FlagKind::Level => Value::Int(0),
            FlagKind::Float | FlagKind::Float32 => Value::Float(0.0),
            FlagKind::Duration => Value::Duration(Duration::ZERO),
            FlagKind::Ip | FlagKind::Text | FlagKind::PortRange | FlagKind::Quantity => Value::Text(String::new()),
            FlagKind::Version => Value::Text("false".into()),
            FlagKind::List | FlagKind::Array | FlagKind::Int32List | FlagKind::NamedCertKey => Value::List(Vec::new()),
            FlagKind::Map | FlagKind::ConfigMap | FlagKind::FeatureGates | FlagKind::TextMap | FlagKind::VModule => {
                Value::Pairs(Vec::new())
            }
        }
    }

    /// Reads one occurrence; the error is what pflag writes behind `invalid argument "x" for "--flag" flag: `.
    pub fn read(self, text: &str) -> Result<Value, String> {
        match self {
            FlagKind::Bool => go_number::parse_bool(text).map(Value::Bool),
            FlagKind::Int => go_number::parse_int(text, 64).map(Value::Int),
            FlagKind::Level => go_number::parse_uint32(text).map(|n| Value::Int(n.into())),
            FlagKind::Float => go_number::parse_float(text, f64::MAX).map(Value::Float),
            FlagKind::Float32 => go_number::parse_float(text, f32::MAX.into()).map(Value::Float),
            FlagKind::Duration => Duration::parse(text).map(Value::Duration).map_err(|e| e.to_string()),
            FlagKind::Ip => read_ip(text),
            FlagKind::Text => Ok(Value::Text(text.into())),
            FlagKind::Quantity => match Quantity::parse(text) {
                Ok(_) => Ok(Value::Text(text.into())),
                Err(e) => Err(e.to_string()),
            },
            FlagKind::List => csv::fields(text).map(Value::List),
            FlagKind::Array => Ok(Value::List(vec![text.into()])),
            FlagKind::Int32List => {
                let numbers = text.split(',').map(|n| go_number::parse_int(n, 32).map(|n| n.to_string()));
                numbers.collect::<Result<_, _>>().map(Value::List)
            }
            FlagKind::Map => read_map(text),
            FlagKind::ConfigMap => {
                let pairs = text.split(',').filter(|p| !p.is_empty()).map(|p| p.split_once('=').unwrap_or((p, "")));
                Ok(Value::Pairs(pairs.map(trimmed).collect()))
            }
            FlagKind::FeatureGates => Ok(Value::Pairs(
                text.split(',')
                    .map(str::trim)
                    .filter(|p| !p.is_empty())
                    .map(|p| p.split_once('=').unwrap_or((p, MISSING)))
                    .map(trimmed)
                    .collect(),
            )),
            FlagKind::TextMap => read_text_map(text),
            FlagKind::PortRange => PortRange::parse(text).map(|_| Value::Text(text.into())),
            FlagKind::NamedCertKey => NamedCertKey::parse(text).map(|_| Value::List(vec![text.into()])),
            FlagKind::VModule => read_vmodule(text),
            FlagKind::Version if text == "raw" => Ok(Value::Text("raw".into())),
            FlagKind::Version => go_number::parse_bool(text).map(|b| Value::Text(b.to_string())),
        }
    }
}

/// Stands for the value of a feature gate that was given without one; no flag value can hold it.
pub const MISSING: &str = "\0";

fn trimmed((key, value): (&str, &str)) -> (String, String) {
    (key.trim().to_owned(), value.trim().to_owned())
}

fn read_ip(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if text.is_empty() || text.parse::<IpAddr>().is_ok() {
        return Ok(Value::Text(text.into()));
    }
    Err(format!("failed to parse IP: {}", Quoted(text)))
}

fn read_map(text: &str) -> Result<Value, String> {
    let mut pairs = Vec::new();
    for pair in text.split(',').filter(|p| !p.is_empty()) {
        let pair = pair.split_once('=').ok_or("malformed pair, expect string=string")?;
        pairs.push(trimmed(pair));
    }
    Ok(Value::Pairs(pairs))
}

fn read_text_map(text: &str) -> Result<Value, String> {
    let fields =
        if text.matches('=').count() <= 1 { vec![text.trim_matches('"').to_owned()] } else { csv::fields(text)? };
    let mut pairs = Vec::new();
    for field in fields {
        let (key, value) = field.split_once('=').ok_or(format!("{field} must be formatted as key=value"))?;
        pairs.push((key.to_owned(), value.to_owned()));
    }
    Ok(Value::Pairs(pairs))
}

fn read_vmodule(text: &str) -> Result<Value, String> {
    let mut pairs = Vec::new();
    for item in text.split(',').filter(|i| !i.is_empty()) {
        let bad = || format!("{} does not have the pattern=N format", Quoted(item));
        let (pattern, level) = item.split_once('=').filter(|(p, l)| !p.is_empty() && !l.is_empty()).ok_or_else(bad)?;
        go_number::parse_uint32(level).map_err(|e| format!("parsing verbosity in {}: {e}", Quoted(item)))?;
        pairs.push((pattern.to_owned(), level.to_owned()));
    }
    Ok(Value::Pairs(pairs))
}

/// Ports from `base` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    pub base: u16,
    pub size: u32,
}

impl PortRange {
    pub fn contains(self, port: u16) -> bool {
        port >= self.base && u32::from(port) < u32::from(self.base) + self.size
    }

    pub fn parse(text: &str) -> Result<PortRange, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(PortRange { base: 0, size: 0 });
        }
        let number = |s: &str| go_number::parse_atoi(s);
        let (low, high) = if let Some((base, count)) = text.split_once('-') {
            (number(base)?, number(count)?)
        } else if let Some((base, count)) = text.split_once('+') {
            let (base, count) = (number(base)?, number(count)?);
            (base, base + count)
        } else {
            let port = number(text)?;
            (port, port)
        };
        if low > 65535 || high > 65535 {
            return Err(format!("the port range cannot be greater than 65535: {text}"));
        }
        if high < low {
            return Err(format!("end port cannot be less than start port: {text}"));
        }
        let base = u16::try_from(low).map_err(|_| format!("unable to parse port range: {text}"))?;
        Ok(PortRange { base, size: (high - low) as u32 + 1 })
    }
}

/// A certificate, its key, and the names it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCertKey {
    pub cert: String,
    pub key: String,
    pub names: Vec<String>,
}

impl NamedCertKey {
    pub fn parse(text: &str) -> Result<NamedCertKey, String> {
        // Names follow the last colon; a path may hold others only if it has none behind it.
        let (files, names) = match text.split_once(':') {
            Some((files, names)) => (files, names.split(',').map(|n| n.trim().to_owned()).collect()),
            None => (text, Vec::new()),
        };
        match files.split(',').collect::<Vec<_>>().as_slice() {
            [cert, key] => Ok(NamedCertKey { cert: cert.trim().to_owned(), key: key.trim().to_owned(), names }),
            _ => Err("expected comma separated certificate and key file paths".into()),
        }
    }
}
