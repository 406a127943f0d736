//! Files of a volume that hide each other.

use crate::warnings::list;
use kubelith_meta::text::Quoted;
use kubelith_meta::{Value, members};

/// A file and, in projected volumes, what it comes from.
struct File {
    path: String,
    source: String,
}

impl File {
    fn new(path: &str, source: &str) -> File {
        File { path: path.trim_end_matches('/').to_owned(), source: source.to_owned() }
    }

    fn shown(&self) -> String {
        let path = Quoted(&self.path);
        if self.source.is_empty() { path.to_string() } else { format!("{path} ({})", self.source) }
    }

    fn hides(&self, other: &File) -> bool {
        let below = |a: &str, b: &str| a.starts_with(b) && a[b.len()..].starts_with('/');
        !self.path.is_empty()
            && !other.path.is_empty()
            && (self.path == other.path || below(&self.path, &other.path) || below(&other.path, &self.path))
    }
}

pub fn overlaps(volume: &Value, out: &mut Vec<String>) {
    members!(volume =>
        name: "name",
        config_map: "configMap",
        secret: "secret",
        downward: "downwardAPI",
        projected: "projected",
    );
    let name = Quoted(name.or_empty());
    let mut report = |what: &str, files: Vec<File>| {
        for (i, file) in files.iter().enumerate() {
            for other in files[..i].iter().filter(|other| file.hides(other)) {
                let (file, other) = (file.shown(), other.shown());
                out.push(format!("volume {name} ({what}): overlapping paths: {file} with {other}"));
            }
        }
    };
    let has_items = |source: &&Value| !list(source, "items").is_empty();
    if let Some(source) = config_map.set().filter(has_items) {
        report(&format!("ConfigMap {}", Quoted(source.str_at(&["name"]))), items(source, ""));
    }
    if let Some(source) = secret.set().filter(has_items) {
        report(&format!("Secret {}", Quoted(source.str_at(&["secretName"]))), items(source, ""));
    }
    if let Some(source) = downward.set() {
        report("DownwardAPI", items(source, ""));
    }
    if let Some(projected) = projected.set() {
        let sources = list(projected, "sources");
        report("Projected", sources.iter().flat_map(projected_files).collect());
        let empty = sources.iter().filter(|source| source.is_empty());
        out.extend(empty.map(|_| format!("volume {name} (Projected) has no sources provided")));
    }
}

fn items(source: &Value, from: &str) -> Vec<File> {
    list(source, "items").iter().map(|item| File::new(item.str_at(&["path"]), from)).collect()
}

fn projected_files(source: &Value) -> Vec<File> {
    let named = |kind: &str, source: &Value| format!("{kind} {}", Quoted(source.str_at(&["name"])));
    if let Some(map) = source.get("configMap") {
        return items(map, &named("ConfigMap", map));
    }
    if let Some(secret) = source.get("secret") {
        return items(secret, &named("Secret", secret));
    }
    if let Some(downward) = source.get("downwardAPI") {
        return items(downward, "DownwardAPI");
    }
    if let Some(token) = source.get("serviceAccountToken") {
        return vec![File::new(token.str_at(&["path"]), "ServiceAccountToken")];
    }
    if let Some(bundle) = source.get("clusterTrustBundle") {
        let name = bundle.get("name").or_else(|| bundle.get("signerName")).and_then(Value::as_str).unwrap_or("");
        return vec![File::new(bundle.str_at(&["path"]), &format!("ClusterTrustBundle {}", Quoted(name)))];
    }
    let certificate = source.get("podCertificate");
    let parts = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    let path = |key: &str| certificate.map_or("", |c| c.str_at(&[key]));
    parts.into_iter().filter(|(key, _)| !path(key).is_empty()).map(|(key, what)| File::new(path(key), what)).collect()
}
