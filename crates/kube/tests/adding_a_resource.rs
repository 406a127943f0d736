//! What `docs/guides/adding-a-resource.md` says, followed to the letter: `widgets/example.v1.api` is the text of a resource, and
//! `widgets/mod.rs` its room. Nothing else knows of widgets, and they are served as any resource is.

use crate::support::Server;
use http::Method;
use kubelith_catalog::Catalog;
use kubelith_kinds::Kinds;
use kubelith_kube::Install;
use kubelith_meta::Value;
use kubelith_store::MemoryStore;
use std::path::Path;
use std::sync::Arc;

const URI: &str = "/apis/example.dev/v1/namespaces/default/widgets";

/// A server of the built-in resources and of widgets.
async fn server() -> Server {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../catalog/api");
    let read = |path: std::path::PathBuf| {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (stem, std::fs::read_to_string(path).unwrap())
    };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut texts: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "api")).map(read).collect();
    texts.push(("example.v1".to_owned(), include_str!("widgets/example.v1.api").to_owned()));
    let catalog = Catalog::of_texts(texts.iter().map(|(stem, text)| (stem.as_str(), text.as_str()))).unwrap();
    let catalog: &'static Catalog = Box::leak(Box::new(catalog));
    let kinds: Kinds = Box::leak([kubelith_kinds::BUILTIN, &[&crate::widgets::WIDGET]].concat().into_boxed_slice());
    Server::with(Arc::new(MemoryStore::default()), |install| Install { catalog, kinds, ..install }).await
}

fn widget(name: &str, spec: &str) -> String {
    format!(r#"{{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{spec}}}"#)
}

#[tokio::test]
async fn widgets_have_defaults_rules_columns_and_a_strategy() {
    let server = server().await;
    let (code, list) = server.send(Method::GET, "/apis/example.dev/v1", "").await;
    assert_eq!(code, 200);
    assert!(
        list.get("resources").unwrap().items().iter().any(|r| r.str_at(&["name"]) == "widgets/status"),
        "discovery"
    );

    // Defaults: of the catalogue and of the kind.
    let (code, made) =
        server.send(Method::POST, URI, &widget("a", r#"{"parts":[{"name":"lid","weight":"1000m"}]}"#)).await;
    assert_eq!(code, 201, "{made:?}");
    let spec = |path: &[&str]| made.get("spec").unwrap().at(path).cloned().unwrap_or_default();
    assert_eq!((spec(&["colour"]), spec(&["spare"])), ("Blue".into(), Value::Int(1)));
    assert_eq!(made.at(&["spec", "parts"]).unwrap().items()[0].str_at(&["weight"]), "1", "decoded by its type");
    assert_eq!(made.at(&["metadata", "generation"]), Some(&Value::Int(1)));

    // Rules.
    let (code, refused) = server.send(Method::POST, URI, &widget("b", r#"{"parts":[{"name":""}]}"#)).await;
    assert_eq!(
        (code, refused.str_at(&["message"])),
        (422, r#"Widget.example.dev "b" is invalid: spec.parts[0].name: Required value"#)
    );
    let patch = ("application/merge-patch+json", r#"{"spec":{"colour":"Red"}}"#);
    let (code, refused) = server.send_as(Method::PATCH, &format!("{URI}/a"), patch.0, patch.1).await;
    assert_eq!(code, 422);
    assert!(
        refused.str_at(&["message"]).ends_with(r#"spec.colour: Invalid value: "Red": field is immutable"#),
        "{refused:?}"
    );

    // The list merges by the key that the text names, in a strategic merge patch and in an apply.
    let patch = ("application/strategic-merge-patch+json", r#"{"spec":{"parts":[{"name":"base"}]}}"#);
    let (code, patched) = server.send_as(Method::PATCH, &format!("{URI}/a"), patch.0, patch.1).await;
    assert_eq!((code, patched.at(&["spec", "parts"]).unwrap().items().len()), (200, 2));
    assert_eq!(patched.at(&["metadata", "generation"]), Some(&Value::Int(2)));
    let apply = widget("a", r#"{"parts":[{"name":"handle"}]}"#);
    let uri = format!("{URI}/a?fieldManager=me");
    let (code, applied) = server.send_as(Method::PATCH, &uri, "application/apply-patch+yaml", &apply).await;
    assert_eq!((code, applied.at(&["spec", "parts"]).unwrap().items().len()), (200, 3), "{applied:?}");

    // Columns, selectors, protobuf.
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let (code, rows) = server.read_as(URI, table).await;
    let rows = kubelith_codec::json::parse(&rows).unwrap();
    let cells = rows.get("rows").unwrap().items()[0].get("cells").unwrap().items().to_vec();
    assert_eq!((code, &cells[..3]), (200, &["a".into(), "Blue".into(), "base,lid,handle".into()][..]));
    let selected = |selector: &str| format!("{URI}?fieldSelector=spec.colour%3D{selector}");
    for (colour, count) in [("Blue", 1), ("Red", 0)] {
        let (_, found) = server.send(Method::GET, &selected(colour), "").await;
        assert_eq!(found.get("items").unwrap().items().len(), count, "{colour}");
    }
    let (code, bytes) = server.read_as(&format!("{URI}/a"), "application/vnd.kubernetes.protobuf").await;
    assert!(code == 200 && bytes.starts_with(b"k8s\0"));
    server.stop().await;
}
