//! `kubelith store …` on the folder of a server that ran, or runs.

use crate::support::{Site, config_map, revision};

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
