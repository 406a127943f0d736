//! What holds on each system.

use super::{Word, files, process, require_port_sharing, require_sockets, sockets};
use std::fs::{self, File};
use std::io::ErrorKind;

#[test]
fn files_are_read_and_written_anywhere_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let file = files::private().read(true).write(true).create_new(true).open(&path).unwrap();
    files::write_all_at(&file, b"world", 6).unwrap();
    files::write_all_at(&file, b"hello ", 0).unwrap();
    let mut found = [0; 8];
    files::read_exact_at(&file, &mut found, 3).unwrap();
    assert_eq!(&found, b"lo world");
    let beyond = files::read_exact_at(&file, &mut found, 4).unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::UnexpectedEof);
    drop(file);
    files::sync(&path).unwrap();
    files::sync_folder(dir.path()).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"hello world");
    assert!(files::size_on_disk(&fs::metadata(&path).unwrap()) > 0);
    assert!(files::free_space(dir.path()).unwrap() > 0);
}

#[test]
fn folders_are_made_with_those_above_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b");
    files::make_private_folder(&path).unwrap();
    files::make_private_folder(&path).unwrap();
    assert!(path.is_dir());
}

#[test]
fn paths_are_bytes_and_back() {
    for path in ["/tmp/a", "/tmp/ü"] {
        let bytes = files::path_to_bytes(path.as_ref());
        assert_eq!((bytes.as_slice(), files::path_of_bytes(&bytes)), (path.as_bytes(), Some(path.into())));
    }
}

#[cfg(unix)]
#[test]
fn what_is_private_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
    files::private().write(true).create(true).open(at("private")).unwrap();
    files::make_private_folder(&at("folder")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _listener = runtime.block_on(async { sockets::bind_private(&at("socket")) }).unwrap();
    assert_eq!(["private", "folder", "socket"].map(mode), [0o600, 0o700, 0o600]);
}

#[test]
fn what_is_not_there_is_refused_by_the_name_of_what_asks() {
    for (supported, outcome, why) in [
        (sockets::SUPPORTED, require_sockets("--flag"), "--flag: Unix sockets are not supported on"),
        (sockets::PORT_SHARING, require_port_sharing("--flag"), "--flag: sharing a port is not supported on"),
    ] {
        assert_eq!(outcome.is_ok(), supported);
        assert!(outcome.err().is_none_or(|text| text.starts_with(why)), "{why}");
    }
}

#[test]
fn the_machine_has_a_name() {
    assert!(process::hostname().is_some_and(|name| !name.is_empty()));
}

#[test]
fn a_process_may_ask_for_what_it_can_have() {
    process::raise_open_files();
    process::notify(Word::Ready).unwrap();
    std::thread::spawn(|| process::give_way().unwrap()).join().unwrap();
    assert!(File::open(std::env::current_exe().unwrap()).is_ok());
}
