//! How a command ended, as kubelets tell it and as clients are told.

use http::StatusCode;
use kubelith_codec::json;
use kubelith_meta::text::quote;
use kubelith_meta::{Status, Value};

const NON_ZERO: &str = "NonZeroExitCode";
const EXIT_CODE: &str = "ExitCode";

/// Which words a kubelet has for how a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// A Status, from the fourth version of the protocol on.
    Status,
    /// Text; none if it went well.
    Text,
}

/// What the client is told, given all that came on the error stream.
pub fn of(told: &[u8], words: Words) -> Value {
    if told.is_empty() {
        return success();
    }
    match words {
        Words::Text => {
            let text = String::from_utf8_lossy(told);
            internal(&format!("error executing remote command: {text}"))
        }
        Words::Status => match json::parse(told) {
            Ok(status) => judged(&status),
            Err(e) => {
                let text = quote(&String::from_utf8_lossy(told));
                internal(&format!("error stream protocol error: {e} in {text}"))
            }
        },
    }
}

fn judged(status: &Value) -> Value {
    match status.str_at(&["status"]) {
        "Success" => return success(),
        "Failure" => {}
        _ => return internal("error stream protocol error: unknown error"),
    }
    if status.str_at(&["reason"]) != NON_ZERO {
        return internal(status.str_at(&["message"]));
    }
    let Some(details) = status.get("details").filter(|d| !d.is_null()) else {
        return internal("error stream protocol error: details must be set");
    };
    let causes = details.get("causes").and_then(Value::as_array).unwrap_or(&[]);
    let Some(cause) = causes.iter().find(|c| c.str_at(&["reason"]) == EXIT_CODE) else {
        return internal(&format!("error stream protocol error: no {EXIT_CODE} cause given"));
    };
    let code = cause.str_at(&["message"]);
    match code.parse::<u8>() {
        Ok(code) => ended_with(code),
        Err(_) => internal(&format!("error stream protocol error: invalid exit code value {}", quote(code))),
    }
}

fn success() -> Value {
    Value::from([("metadata", Value::object()), ("status", "Success".into())])
}

fn ended_with(code: u8) -> Value {
    let cause = Value::from([("reason", EXIT_CODE.to_owned()), ("message", code.to_string())]);
    let message = format!("command terminated with non-zero exit code: command terminated with exit code {code}");
    Value::from([
        ("metadata", Value::object()),
        ("status", "Failure".into()),
        ("message", message.into()),
        ("reason", NON_ZERO.into()),
        ("details", Value::from([("causes", Value::Array(vec![cause]))])),
    ])
}

/// The kubelet could not be asked, or spoke nonsense.
pub fn internal(why: &str) -> Value {
    let mut status = Status::internal_error(why).to_value();
    status.remove_at(&["kind"]);
    status.remove_at(&["apiVersion"]);
    status
}

/// As it is counted: a command that failed was served.
pub fn code(verdict: &Value) -> u16 {
    let code = verdict.get("code").and_then(Value::as_i64).and_then(|code| u16::try_from(code).ok());
    code.unwrap_or(StatusCode::OK.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_in_many_ways() {
        let exit = |cause: &str| {
            format!(r#"{{"status":"Failure","reason":"NonZeroExitCode","details":{{"causes":[{cause}]}}}}"#)
        };
        assert_eq!(code(&of(exit(r#"{"reason":"ExitCode","message":"3"}"#).as_bytes(), Words::Status)), 200);
        assert_eq!(code(&of(b"{}", Words::Status)), 500);
        for (told, status, message) in [
            (String::new(), "Success", ""),
            (r#"{"status":"Success"}"#.into(), "Success", ""),
            (
                exit(r#"{"reason":"ExitCode","message":"3"}"#),
                "Failure",
                "command terminated with non-zero exit code: command terminated with exit code 3",
            ),
            (
                exit(r#"{"reason":"ExitCode","message":"300"}"#),
                "Failure",
                "Internal error occurred: error stream protocol error: invalid exit code value \"300\"",
            ),
            (exit(""), "Failure", "Internal error occurred: error stream protocol error: no ExitCode cause given"),
            (
                r#"{"status":"Failure","reason":"NonZeroExitCode"}"#.into(),
                "Failure",
                "Internal error occurred: error stream protocol error: details must be set",
            ),
            (
                r#"{"status":"Failure","message":"no such container"}"#.into(),
                "Failure",
                "Internal error occurred: no such container",
            ),
            ("{}".into(), "Failure", "Internal error occurred: error stream protocol error: unknown error"),
        ] {
            let verdict = of(told.as_bytes(), Words::Status);
            assert_eq!((verdict.str_at(&["status"]), verdict.str_at(&["message"])), (status, message), "{told}");
            assert!(verdict.get("kind").is_none());
        }
        assert_eq!(of(b"", Words::Text).str_at(&["status"]), "Success");
        let text = of(b"boom", Words::Text);
        assert_eq!(text.str_at(&["message"]), "Internal error occurred: error executing remote command: boom");
    }
}
