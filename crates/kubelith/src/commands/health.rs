//! `kubelith health`: one question to a server on this machine. Images and scripts have no other client.

use super::Words;
use kubelith_auth::remote::{FetchRequest, HttpFetch};
use kubelith_outbound::client::{ClientTls, Credential, HttpClient};
use kubelith_tls::Trust;
use std::time::Duration;

pub const HELP: &str = "\
Asks a server whether it is well. Ends with 0 if it is, and with 1 if not, or if nobody answers.

Usage:
  kubelith health [flags]

Flags:
      --server URL       Whom to ask (default https://127.0.0.1:6443), whatever its certificate.
      --path PATH        What to ask for (default /livez).
      --timeout SECONDS  How long to wait (default 5).
  -h, --help             Shows this help.

Examples:
  kubelith health
  kubelith health --path /readyz?verbose
";

#[derive(Debug, PartialEq, Eq)]
struct Question {
    url: String,
    timeout: Duration,
}

/// Runs the words behind `health`.
pub fn run(words: &[String]) -> Result<String, String> {
    let Some(question) = parse(words)? else { return Ok(HELP.to_owned()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let tls = ClientTls { trust: Trust::Anyone, ..ClientTls::default() };
        let client = HttpClient::new(&tls, Credential::None, question.timeout)?;
        let answer = client.fetch(FetchRequest::get(&question.url)).await.map_err(|e| e.to_string())?;
        let text = format!("{}\n", String::from_utf8_lossy(&answer.body).trim_end());
        match answer.status {
            200 => Ok(text),
            // Who asks without a name is not told, but somebody is there to say so: it lives. Whether it is ready is not known:
            // the roles that let strangers ask are among the last things that a first start makes.
            401 | 403 if question.url.contains("/livez") => {
                Ok(format!("answers, but not to strangers ({})\n", answer.status))
            }
            status => Err(format!("{}: {status}\n{text}", question.url)),
        }
    })
}

fn parse(words: &[String]) -> Result<Option<Question>, String> {
    let (mut server, mut path, mut seconds) = ("https://127.0.0.1:6443".to_owned(), "/livez".to_owned(), 5);
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "-h" | "--help" => return Ok(None),
            "--server" => server = words.value()?,
            "--path" => path = words.value()?,
            "--timeout" => {
                let value = words.value()?;
                seconds = value.parse().map_err(|_| format!("--timeout: {value:?} is no number of seconds"))?;
            }
            other => return Err(format!("unknown flag: {other}\n\n{HELP}")),
        }
    }
    let url = format!("{}/{}", server.trim_end_matches('/'), path.trim_start_matches('/'));
    Ok(Some(Question { url, timeout: Duration::from_secs(seconds) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        let parse = |line: &str| parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let question =
            |url: &str, seconds| Ok(Some(Question { url: url.to_owned(), timeout: Duration::from_secs(seconds) }));
        assert_eq!(parse(""), question("https://127.0.0.1:6443/livez", 5));
        assert_eq!(parse("--server=https://h:1/ --path readyz --timeout 2"), question("https://h:1/readyz", 2));
        assert_eq!(parse("--help"), Ok(None));
        assert_eq!(parse("--timeout x"), Err("--timeout: \"x\" is no number of seconds".to_owned()));
        assert_eq!(parse("--path"), Err("flag needs an argument: --path".to_owned()));
        assert!(parse("now").unwrap_err().starts_with("unknown flag: now"));
    }
}
