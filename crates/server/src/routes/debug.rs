//! `/debug/flags`: the log level of the running server, to look at and to change (`--profiling`).

use super::{Listing, Routes};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use kubelith_http::{BoxHandler, Reply, Request, Response, respond};
use kubelith_meta::text::Quoted;
use kubelith_observe::logging;
use std::sync::Arc;

/// A level has few digits.
const MAX_BODY: usize = 1024;

const INDEX: &str = "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\n\
                     flags:<br>\n<table>\n<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n";

pub fn install(routes: &mut Routes) {
    let index: BoxHandler = Arc::new(|_: Request| -> Reply {
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        Reply::Ready(respond::with_type(StatusCode::OK, html, INDEX))
    });
    routes.exact("/debug/flags", Listing::Unlisted, index.clone());
    routes.prefix("/debug/flags/", Listing::Unlisted, index);
    let level: BoxHandler = Arc::new(|request: Request| -> Reply { Reply::pending(set_level(request)) });
    routes.exact("/debug/flags/v", Listing::Unlisted, level);
}

async fn set_level(request: Request) -> Response {
    if request.method() != Method::PUT {
        return plain(StatusCode::NOT_ACCEPTABLE, "unsupported http method".into());
    }
    let body = match Limited::new(request.into_body(), MAX_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(why) => return plain(StatusCode::BAD_REQUEST, format!("error reading request body: {why}")),
    };
    let text = String::from_utf8_lossy(&body);
    match text.parse::<u32>() {
        Ok(level) => {
            logging::set_verbosity(level.min(u8::MAX.into()) as u8);
            plain(StatusCode::OK, format!("successfully set klog.logging.verbosity to {text}"))
        }
        Err(_) => {
            let why = format!("strconv.ParseUint: parsing {}: invalid syntax", Quoted(&text));
            plain(StatusCode::BAD_REQUEST, why)
        }
    }
}

fn plain(code: StatusCode, mut text: String) -> Response {
    text.push('\n');
    let mut response = respond::with_type(code, HeaderValue::from_static("text/plain"), text);
    response.headers_mut().insert(respond::X_CONTENT_TYPE_OPTIONS, respond::NOSNIFF);
    response
}
