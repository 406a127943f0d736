//! `/`: the list of paths.

use super::{Listing, Routes};
use http::StatusCode;
use kubelith_http::{BoxHandler, Reply, Request, respond};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Paths that come and go while running: API groups, custom resources.
pub type ListedPaths = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Adds `/` and `/index.html`, listing what is in `routes` now and what `more` lists when asked.
pub fn install(routes: &mut Routes, more: Vec<ListedPaths>) {
    let fixed = routes.listed().clone();
    let handler: BoxHandler = Arc::new(move |_: Request| -> Reply {
        let mut paths: BTreeSet<String> = fixed.clone();
        paths.extend(more.iter().flat_map(|list| list()));
        let response = respond::json(StatusCode::OK, render(&paths));
        Reply::Ready(response)
    });
    routes.exact("/", Listing::Unlisted, handler.clone());
    routes.exact("/index.html", Listing::Unlisted, handler);
}

fn render(paths: &BTreeSet<String>) -> String {
    let mut out = String::from("{\n  \"paths\": [");
    for (i, path) in paths.iter().enumerate() {
        out.push_str(if i == 0 { "\n    " } else { ",\n    " });
        kubelith_meta::text::push_json_string(&mut out, path);
    }
    out.push_str(if paths.is_empty() { "]\n}" } else { "\n  ]\n}" });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_the_reference() {
        let paths = ["/b".to_owned(), "/a".to_owned()].into();
        assert_eq!(render(&paths), "{\n  \"paths\": [\n    \"/a\",\n    \"/b\"\n  ]\n}");
    }
}
