//! How a line looks. Text is klog's: `I1102 15:04:05.000000    1234 file.rs:42] "message" key="value"`.

use std::fmt::Write;
use std::time::SystemTime;
use time::OffsetDateTime;
use tracing::Level;
use tracing::field::{Field, Visit};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// An event's message and fields, as text.
#[derive(Default)]
pub struct Fields {
    pub message: String,
    /// Name, value, and whether the value is already JSON (a number or a boolean).
    pub values: Vec<(&'static str, String, bool)>,
    /// `v = 2`: the verbosity from which on the event is shown.
    pub v: u64,
}

impl Fields {
    fn add(&mut self, field: &Field, value: String, is_json: bool) {
        if field.name() == "message" {
            self.message = value;
        } else {
            self.values.push((field.name(), value, is_json));
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.add(field, format!("{value:?}"), false);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.to_owned(), false);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "v" {
            self.v = value;
        } else {
            self.add(field, value.to_string(), true);
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "v" {
            self.v = value.max(0) as u64;
        } else {
            self.add(field, value.to_string(), true);
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.to_string(), true);
    }
}

/// Where an event comes from.
pub struct Origin<'a> {
    pub level: Level,
    pub file: &'a str,
    pub line: u32,
    pub at: SystemTime,
}

impl Format {
    pub fn line(self, origin: &Origin<'_>, fields: &Fields) -> String {
        let mut out = String::with_capacity(160);
        // Writing to a string cannot fail.
        let _ = match self {
            Format::Text => text(&mut out, origin, fields),
            Format::Json => json(&mut out, origin, fields),
        };
        out.push('\n');
        out
    }
}

fn text(out: &mut String, origin: &Origin<'_>, fields: &Fields) -> std::fmt::Result {
    let letter = match origin.level {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    let t = OffsetDateTime::from(origin.at);
    let file = origin.file.rsplit('/').next().unwrap_or("");
    write!(
        out,
        "{letter}{:02}{:02} {:02}:{:02}:{:02}.{:06} {:7} {file}:{}] ",
        u8::from(t.month()),
        t.day(),
        t.hour(),
        t.minute(),
        t.second(),
        t.microsecond(),
        std::process::id(),
        origin.line,
    )?;
    // klog quotes messages that have fields, and writes others as they are.
    if fields.values.is_empty() {
        out.push_str(&fields.message);
        return Ok(());
    }
    write!(out, "{}", kubelith_meta::text::Quoted(&fields.message))?;
    for (name, value, is_json) in &fields.values {
        if *is_json {
            write!(out, " {name}={value}")?;
        } else {
            write!(out, " {name}={}", kubelith_meta::text::Quoted(value))?;
        }
    }
    Ok(())
}

fn json(out: &mut String, origin: &Origin<'_>, fields: &Fields) -> std::fmt::Result {
    let millis = origin.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros() as f64 / 1000.0;
    let file = origin.file.rsplit('/').next().unwrap_or("");
    write!(out, "{{\"ts\":{millis:.4},\"caller\":\"{file}:{}\",\"msg\":", origin.line)?;
    kubelith_meta::text::push_json_string(out, &fields.message);
    match origin.level {
        Level::ERROR => {}
        Level::WARN => out.push_str(",\"severity\":\"warning\",\"v\":0"),
        _ => write!(out, ",\"v\":{}", fields.v)?,
    }
    for (name, value, is_json) in &fields.values {
        out.push(',');
        kubelith_meta::text::push_json_string(out, name);
        out.push(':');
        if *is_json {
            out.push_str(value);
        } else {
            kubelith_meta::text::push_json_string(out, value);
        }
    }
    out.push('}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn line(format: Format, level: Level, values: Vec<(&'static str, String, bool)>) -> String {
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456);
        let origin = Origin { level, file: "a/b/chain.rs", line: 7, at };
        format.line(&origin, &Fields { message: "hello \"x\"".into(), values, v: 2 })
    }

    #[test]
    fn text_is_klogs() {
        let pid = std::process::id();
        let got = line(Format::Text, Level::WARN, vec![("n", "3".into(), true), ("s", "a b".into(), false)]);
        assert_eq!(got, format!("W1114 22:13:20.123456 {pid:7} chain.rs:7] \"hello \\\"x\\\"\" n=3 s=\"a b\"\n"));
        let got = line(Format::Text, Level::INFO, vec![]);
        assert_eq!(got, format!("I1114 22:13:20.123456 {pid:7} chain.rs:7] hello \"x\"\n"));
    }

    #[test]
    fn json_is_one_object_per_line() {
        let got = line(Format::Json, Level::INFO, vec![("s", "a\nb".into(), false)]);
        assert_eq!(
            got,
            "{\"ts\":1700000000123.4561,\"caller\":\"chain.rs:7\",\"msg\":\"hello \\\"x\\\"\",\"v\":2,\"s\":\"a\\nb\"}\n"
        );
    }
}
