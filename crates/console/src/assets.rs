//! The files of the page, as they lie in `assets`. They are packed when somebody first asks for them.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::sync::LazyLock;

/// One file.
pub struct Asset {
    pub name: &'static str,
    pub media_type: &'static str,
    pub content: &'static [u8],
    pub packed: Bytes,
    /// In quotes.
    pub etag: String,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($name:literal, $type:expr;)*) => {
        &[$(($name, $type, include_bytes!(concat!("../assets/", $name)))),*]
    };
}

const FILES: &[(&str, &str, &[u8])] = files! {
    "index.html", HTML;
    "style.css", CSS;
    "icon.svg", SVG;
    "app.js", JS;
    "api.js", JS;
    "dom.js", JS;
    "yaml.js", JS;
    "diff.js", JS;
    "chart.js", JS;
    "signin.js", JS;
    "explorer.js", JS;
    "object.js", JS;
    "edit.js", JS;
    "owners.js", JS;
    "history.js", JS;
    "now.js", JS;
    "access.js", JS;
    "rbac.js", JS;
    "store.js", JS;
    "extensions.js", JS;
};

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let pack = |&(name, media_type, content): &(&'static str, &'static str, &'static [u8])| {
        let sum = digest(&SHA256, content);
        let etag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(&sum.as_ref()[..12]));
        Asset { name, media_type, content, packed: gzip(content), etag }
    };
    FILES.iter().map(pack).collect()
});

/// `""` is the page itself.
pub fn find(name: &str) -> Option<&'static Asset> {
    let name = if name.is_empty() { "index.html" } else { name };
    ASSETS.iter().find(|asset| asset.name == name)
}

fn gzip(content: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(content.len() / 3), Compression::best());
    let packed = encoder.write_all(content).and_then(|()| encoder.finish());
    packed.expect("memory takes what is written").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the page with all that it loads.
    const MAX_BYTES: usize = 200_000;

    #[test]
    fn the_page_is_small() {
        let size: usize = ASSETS.iter().map(|asset| asset.content.len()).sum();
        let packed: usize = ASSETS.iter().map(|asset| asset.packed.len()).sum();
        println!("{size} bytes, packed {packed}");
        assert!(size < MAX_BYTES, "{size} bytes");
    }

    /// What is written into the page is written as text. The browser is told to refuse anything else, too.
    #[test]
    fn no_markup_is_made_of_data_and_nobody_else_is_asked() {
        for asset in ASSETS.iter().filter(|asset| asset.name != "icon.svg") {
            let text = std::str::from_utf8(asset.content).expect("text");
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "localStorage",
                "http://",
                "//cdn",
            ] {
                let mut found = text.matches(word).count();
                if word == "http://" {
                    found -= text.matches("http://www.w3.org/2000/svg").count();
                }
                assert_eq!(found, 0, "{} has {word}", asset.name);
            }
            assert!(!text.contains("https://"), "{} names another host", asset.name);
        }
    }

    #[test]
    fn every_file_that_is_named_is_there() {
        for asset in ASSETS.iter() {
            let text = String::from_utf8_lossy(asset.content);
            for part in text.split("from \"./").skip(1).chain(text.split("=\"./").skip(1)) {
                let name = part.split('"').next().unwrap_or_default();
                assert!(find(name).is_some(), "{} names {name}", asset.name);
            }
        }
        assert!(find("").is_some_and(|page| page.name == "index.html"));
        assert!(find("../Cargo.toml").is_none());
    }
}
