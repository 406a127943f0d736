//! Values as Go's `fmt` prints them: error messages of the reference hold whole maps in this form.

use kubelith_meta::Value;
use kubelith_meta::text::{float_v, quote};

/// `fmt.Sprintf("%v", value)` of an unstructured value: `map[a:1 b:[x y]]`, `<nil>`.
pub fn go_value(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// `%v` of a list.
pub(crate) fn go_list(list: &[Value]) -> String {
    let mut out = String::new();
    write_list(&mut out, list);
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => out.push_str(itoa::Buffer::new().format(*i)),
        Value::Float(f) => out.push_str(&float_v(*f)),
        Value::String(s) => out.push_str(s),
        Value::Raw(text) => write_value(out, &crate::json::parse(text).unwrap_or_default()),
        Value::Array(a) => write_list(out, a),
        Value::Object(m) => {
            out.push_str("map[");
            for (i, (k, v)) in m.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                out.push_str(k);
                out.push(':');
                write_value(out, v);
            }
            out.push(']');
        }
    }
}

fn write_list(out: &mut String, list: &[Value]) {
    out.push('[');
    for (i, v) in list.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        write_value(out, v);
    }
    out.push(']');
}

/// `%#v`: the value as Go source.
pub(crate) fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::String(s) => quote(s),
        Value::Array(a) => format!("[]interface {{}}{{{}}}", a.iter().map(go_syntax).collect::<Vec<_>>().join(", ")),
        Value::Object(m) => {
            let entries: Vec<String> = m.iter().map(|(k, v)| format!("{}:{}", quote(k), go_syntax(v))).collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        other => go_value(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::tests::v;

    #[test]
    fn values_print_as_go_prints_them() {
        let table = [
            (r#"{"b":[1,"x y",null],"a":{"c":true}}"#, "map[a:map[c:true] b:[1 x y <nil>]]"),
            (r#"{}"#, "map[]"),
            (r#"[0.5,1e30,1e-7,-0.25,1234567.5]"#, "[0.5 1e+30 1e-07 -0.25 1.2345675e+06]"),
        ];
        for (json, want) in table {
            assert_eq!(go_value(&v(json)), want);
        }
    }

    #[test]
    fn go_source() {
        let value = v(r#"{"a":[1,"x",null,true,0.5]}"#);
        let want = r#"map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil), true, 0.5}}"#;
        assert_eq!(go_syntax(&value), want);
    }
}
