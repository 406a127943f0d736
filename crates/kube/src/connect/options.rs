//! What the query of a connection asks for, and what of it kubelets are told.

use kubelith_http::query;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::time::Time;
use kubelith_meta::{GroupVersionKind, Status, Value};

/// A query's values by name.
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub fn parse(raw: Option<&str>) -> Parameters {
        let pairs = raw.into_iter().flat_map(query::pairs);
        Parameters(pairs.map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
    }

    pub fn first(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// True unless it says false.
    pub fn flag(&self, key: &str) -> bool {
        self.first(key).is_some_and(kubelith_http::request_info::is_true)
    }

    pub fn integer(&self, key: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.first(key) else { return Ok(None) };
        let bad = || {
            let shown = kubelith_meta::text::quote(text);
            Status::bad_request(format!("strconv.ParseInt: parsing {shown}: invalid syntax"))
        };
        text.parse().map(Some).map_err(|_| bad())
    }
}

const ALL_STREAMS: &str = "All";

/// `PodLogOptions`.
#[derive(Debug, Default)]
pub struct LogOptions {
    pub container: String,
    pub follow: bool,
    pub previous: bool,
    pub timestamps: bool,
    pub since_seconds: Option<i64>,
    pub since_time: Option<Time>,
    pub tail_lines: Option<i64>,
    pub limit_bytes: Option<i64>,
    pub insecure: bool,
    stream: Option<String>,
    streams: LogStreams,
}

/// Whether logs may be asked for by stream.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum LogStreams {
    Apart,
    #[default]
    Together,
}

impl From<bool> for LogStreams {
    fn from(apart: bool) -> LogStreams {
        if apart { LogStreams::Apart } else { LogStreams::Together }
    }
}

impl LogOptions {
    pub fn parse(parameters: &Parameters, streams: LogStreams) -> Result<LogOptions, Status> {
        let time = parameters.first("sinceTime").filter(|t| !t.is_empty());
        let time = time.map(|t| Time::parse(t).map_err(|e| Status::bad_request(e.to_string()))).transpose()?;
        Ok(LogOptions {
            container: parameters.first("container").unwrap_or_default().to_owned(),
            follow: parameters.flag("follow"),
            previous: parameters.flag("previous"),
            timestamps: parameters.flag("timestamps"),
            since_seconds: parameters.integer("sinceSeconds")?,
            since_time: time,
            tail_lines: parameters.integer("tailLines")?,
            limit_bytes: parameters.integer("limitBytes")?,
            insecure: parameters.flag("insecureSkipTLSVerifyBackend"),
            stream: match (parameters.first("stream"), streams) {
                (Some(stream), _) => Some(stream.to_owned()),
                (None, LogStreams::Apart) => Some(ALL_STREAMS.to_owned()),
                (None, LogStreams::Together) => None,
            },
            streams,
        })
    }

    pub fn validate(&self, pod: &str) -> Result<(), Status> {
        let mut errors = ErrorList::default();
        if let Some(lines) = self.tail_lines.filter(|n| *n < 0) {
            errors.push(Error::invalid(&Path::new("tailLines"), lines, "must be greater than or equal to 0"));
        }
        if let Some(bytes) = self.limit_bytes.filter(|n| *n < 1) {
            errors.push(Error::invalid(&Path::new("limitBytes"), bytes, "must be greater than 0"));
        }
        match (self.since_seconds, self.since_time) {
            (Some(_), Some(_)) => {
                let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
                errors.push(Error::forbidden(&Path::new(""), detail));
            }
            (Some(seconds), None) if seconds < 1 => {
                errors.push(Error::invalid(&Path::new("sinceSeconds"), seconds, "must be greater than 0"));
            }
            _ => {}
        }
        match (self.stream.as_deref(), self.streams) {
            (None, _) => {}
            (Some(_), LogStreams::Together) => {
                errors.push(Error::forbidden(&Path::new("stream"), "may not be specified"));
            }
            (Some(stream), LogStreams::Apart) => {
                let known = [ALL_STREAMS, "Stderr", "Stdout"];
                if !known.contains(&stream) {
                    errors.push(Error::not_supported(&Path::new("stream"), stream, known));
                }
                if stream != ALL_STREAMS && self.tail_lines.is_some() {
                    let detail = "`tailLines` and specific `stream` are mutually exclusive for now";
                    errors.push(Error::forbidden(&Path::new(""), detail));
                }
            }
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(&GroupVersionKind::new("", "v1", "PodLogOptions").group_kind(), pod, &errors))
    }

    /// What the kubelet is told, sorted by name.
    pub fn query(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        let number = |n: Option<i64>| n.map(|n| n.to_string());
        let flag = |on: bool| on.then(|| "true".to_owned());
        for (key, value) in [
            ("follow", flag(self.follow)),
            ("limitBytes", number(self.limit_bytes)),
            ("previous", flag(self.previous)),
            ("sinceSeconds", number(self.since_seconds)),
            ("sinceTime", self.since_time.map(Time::rfc3339)),
            ("stream", self.stream.clone()),
            ("tailLines", number(self.tail_lines)),
            ("timestamps", flag(self.timestamps)),
        ] {
            if let Some(value) = value {
                pairs.push((key, value));
            }
        }
        pairs
    }
}

/// Ports to forward, each value one or several.
pub fn ports(parameters: &Parameters) -> Result<Vec<u16>, Status> {
    let all = parameters.all("ports").flat_map(|value| value.split(','));
    all.map(|text| {
        let why = match text.parse::<u64>() {
            Ok(_) => "value out of range",
            Err(_) => "invalid syntax",
        };
        let bad = || {
            let shown = kubelith_meta::text::quote(text);
            Status::bad_request(format!("cannot convert to []int32: strconv.ParseUint: parsing {shown}: {why}"))
        };
        text.parse().map_err(|_| bad())
    })
    .collect()
}

/// What a kubelet is told of an exec or attach, sorted by name.
pub fn streams(parameters: &Parameters, with_command: bool) -> Vec<(&'static str, String)> {
    let mut pairs: Vec<(&str, String)> = Vec::new();
    if with_command {
        pairs.extend(parameters.all("command").map(|c| ("command", c.to_owned())));
    }
    for (asked, told) in [("stderr", "error"), ("stdin", "input"), ("stdout", "output"), ("tty", "tty")] {
        if parameters.flag(asked) {
            pairs.push((told, "1".to_owned()));
        }
    }
    pairs
}

/// The options object that admission sees. `path` is what is asked of a proxy.
pub fn object(kind: &str, parameters: &Parameters, path: &str) -> Value {
    let mut object = Value::from([("apiVersion", "v1"), ("kind", kind)]);
    if !path.is_empty() {
        object.set_at(&["path"], path.into());
    }
    for flag in ["stdin", "stdout", "stderr", "tty"] {
        if parameters.flag(flag) {
            object.set_at(&[flag], Value::Bool(true));
        }
    }
    if let Some(container) = parameters.first("container") {
        object.set_at(&["container"], container.into());
    }
    let command: Vec<Value> = parameters.all("command").map(Value::from).collect();
    if !command.is_empty() {
        object.set_at(&["command"], Value::Array(command));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_options_are_checked() {
        for (query, want) in [
            ("tailLines=5&follow=true&timestamps", Ok("follow=true tailLines=5 timestamps=true")),
            (
                "tailLines=-1",
                Err("PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0"),
            ),
            (
                "limitBytes=0",
                Err("PodLogOptions \"p\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"),
            ),
            ("tailLines=x", Err("strconv.ParseInt: parsing \"x\": invalid syntax")),
        ] {
            let parsed = LogOptions::parse(&Parameters::parse(Some(query)), LogStreams::Together);
            let checked = parsed.and_then(|o| o.validate("p").map(|()| o));
            let shown =
                checked.map(|o| o.query().iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" "));
            assert_eq!(shown.as_deref().map_err(|s| s.message.as_str()), want, "{query}");
        }
    }

    #[test]
    fn ports_are_numbers() {
        let parse = |query: &str| ports(&Parameters::parse(Some(query))).map_err(|s| s.message);
        assert_eq!(parse("ports=80,81&ports=82"), Ok(vec![80, 81, 82]));
        let text = "cannot convert to []int32: strconv.ParseUint: parsing \"70000\": value out of range";
        assert_eq!(parse("ports=70000"), Err(text.to_owned()));
    }

    #[test]
    fn streams_have_other_names_at_kubelets() {
        let parameters = Parameters::parse(Some("command=sh&command=-c&stdin=1&stdout=true&tty=false&stderr=0"));
        let got: Vec<String> = streams(&parameters, true).iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(got, ["command=sh", "command=-c", "input=1", "output=1"]);
    }
}
