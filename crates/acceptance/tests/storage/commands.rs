//! `kubelith store …` on the folder of a server that ran, or runs.

use super::support::{Site, config_map, revision};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn a_backup_of_a_running_server_restores_what_it_held() {
    let site = Site::new(&[]);
    let server = site.start();
    let mut api = server.client();
    let first = revision(&api.create(CONFIG_MAPS, &config_map("a", "1")));
    let (ok, said) = site.store(&["check"]);
    assert!(!ok && said.contains("is in use by another process"), "{said}");

    let file = site.folder.path().join("backup");
    let path = file.to_str().unwrap();
    let (ok, said) = site.store(&["backup", path]);
    assert!(ok && said.starts_with(&format!("wrote {path} at revision ")), "{said}");
    let (ok, said) = site.store(&["backup", path]);
    assert!(!ok && said.contains("exists already"), "{said}");
    let later = revision(&api.create(CONFIG_MAPS, &config_map("b", "2")));
    server.kill();

    let (ok, said) = site.store(&["check"]);
    assert!(ok && said.contains("is sound"), "{said}");
    let (ok, said) = site.store(&["stats"]);
    assert!(ok && said.contains("/registry/configmaps"), "{said}");
    let (ok, said) = site.store(&["restore", path]);
    assert!(!ok && said.contains("holds data already"), "{said}");

    let other = Site::new(&[]);
    let (ok, said) = other.store(&["restore", path, "--skip-revisions=1000"]);
    assert!(ok, "{said}");
    let server = other.start();
    let mut api = server.client();
    let (code, a) = api.get(&format!("{CONFIG_MAPS}/a"));
    assert_eq!((code, revision(&a)), (200, first));
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/b")).0, 404);
    assert!(revision(&api.create(CONFIG_MAPS, &config_map("b", "3"))) > later, "no revision is given twice");
    server.stop();

    // The store of a server that does not run is copied as well.
    let cold = other.folder.path().join("cold");
    let (ok, said) = other.store(&["backup", cold.to_str().unwrap()]);
    assert!(ok && cold.exists(), "{said}");
}

#[test]
fn a_damaged_file_is_said_to_be_damaged() {
    let site = Site::new(&[]);
    let server = site.start();
    for i in 0..20 {
        server.client().create(CONFIG_MAPS, &config_map(&format!("c{i}"), &"x".repeat(3000)));
    }
    server.stop();
    let file = site.data().join("store").join("store.redb");
    let mut bytes = std::fs::read(&file).unwrap();
    // Somewhere in the objects: the values are full of this byte.
    let at = bytes.windows(100).position(|part| part.iter().all(|b| *b == b'x')).unwrap();
    bytes[at + 50] ^= 1;
    std::fs::write(&file, bytes).unwrap();

    let (ok, said) = site.store(&["check"]);
    assert!(!ok && (said.contains("damaged") || said.contains("corrupt")), "{said}");
    let said = site.spawn().failure();
    assert!(said.contains("stored data is corrupt"), "{said}");
}

#[test]
fn a_second_server_on_a_folder_is_refused() {
    let site = Site::new(&[]);
    let server = site.start();
    let said = site.spawn().failure();
    assert!(said.contains("data is in use by another process"), "{said}");
    assert_eq!(server.client().get("/readyz").0, 200);
}

#[test]
fn what_is_exported_can_be_read_changed_and_imported() {
    let site = Site::new(&[]);
    let server = site.start();
    let mut api = server.client();
    let first = revision(&api.create(CONFIG_MAPS, &config_map("a", "before")));
    api.create("/api/v1/namespaces", &serde_json::json!({"metadata": {"name": "other"}}));
    let (_, listed) = api.get("/api/v1/namespaces");
    let file = site.folder.path().join("all.jsonl");
    let path = file.to_str().unwrap();
    let (ok, said) = site.store(&["export", path]);
    assert!(!ok && said.contains("is in use by another process"), "{said}");
    server.stop();
    let (ok, said) = site.store(&["export", path]);
    assert!(ok && said.contains("wrote "), "{said}");
    let (ok, said) = site.store(&["export", path]);
    assert!(!ok && said.contains("exists"), "{said}");

    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mine = lines.iter().find(|line| line["key"] == "/registry/configmaps/default/a").unwrap();
    assert_eq!((&mine["form"], &mine["object"]["data"]["value"]), (&"protobuf".into(), &"before".into()));
    let unreadable: Vec<_> = lines[1..].iter().filter(|line| line["object"].is_null()).collect();
    assert!(unreadable.is_empty(), "{unreadable:?}");
    let in_bytes: Vec<_> =
        lines[1..].iter().filter(|line| !line["base64"].is_null()).map(|line| &line["key"]).collect();
    assert!(in_bytes.is_empty(), "these do not come back as they were: {in_bytes:?}");

    std::fs::write(&file, text.replace(r#""value":"before""#, r#""value":"after""#)).unwrap();
    let other = Site::new(&[]);
    let (ok, said) = other.store(&["import", path, "--skip-revisions=500"]);
    assert!(ok && said.contains("at revision"), "{said}");
    let (ok, said) = other.store(&["import", path]);
    assert!(!ok && said.contains("holds data already"), "{said}");
    let (ok, said) = other.store(&["check"]);
    assert!(ok && said.contains("is sound"), "{said}");
    let server = other.start();
    let mut api = server.client();
    let (code, a) = api.get(&format!("{CONFIG_MAPS}/a"));
    assert_eq!((code, revision(&a), &a["data"]["value"]), (200, first, &"after".into()));
    assert_eq!(api.get("/api/v1/namespaces").1["items"], listed["items"]);
    // Informers that saw what came after must notice (etcd's issue 16028): their watch ends, and they list.
    let events = api.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={first}"), 1);
    assert_eq!((&events[0]["type"], &events[0]["object"]["code"]), (&"ERROR".into(), &410.into()), "{events:?}");
    server.stop();

    for (content, why) in [
        ("", "this is no file that"),
        ("{}\n", "this is no file that"),
        ("{\"kubelithExport\":2,\"revision\":3}\n", "this is of form 2"),
        ("{\"kubelithExport\":1,\"revision\":3}\n{\"key\":\"/a\"}\n", "line 2"),
        ("{\"kubelithExport\":1,\"revision\":3}\nnonsense\n", "line 2"),
    ] {
        std::fs::write(&file, content).unwrap();
        let (ok, said) = Site::new(&[]).store(&["import", path]);
        assert!(!ok && said.contains(why), "{content:?}: {said}");
    }
}
