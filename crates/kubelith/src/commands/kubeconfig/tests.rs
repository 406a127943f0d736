use super::*;
use kubelith_tls::{Pki, PkiOptions};
use std::os::unix::fs::PermissionsExt;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// A data folder as a server leaves it.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let pki = Pki::open(dir.path().join("pki"), PkiOptions::all(["localhost"], [])).unwrap();
    pki.write_admin_kubeconfig(&dir.path().join("admin.kubeconfig"), "https://127.0.0.1:6443", None).unwrap();
    dir
}

fn run_in(dir: &Path, line: &str) -> Result<String, String> {
    run(&words(&format!("--data-dir {} {line}", dir.display())))
}

fn names(config: &Value, list: &str) -> Vec<String> {
    let members = config.get(list).and_then(Value::as_array).unwrap_or_default();
    members.iter().map(|member| member.str_at(&["name"]).to_owned()).collect()
}

#[test]
fn it_is_shown() {
    let dir = folder();
    let config = yaml::read(run_in(dir.path(), "").unwrap().as_bytes()).unwrap().value;
    assert_eq!(names(&config, "clusters"), ["kubelith"]);
    assert_eq!(names(&config, "users"), ["kubelith-admin"]);
    assert_eq!(config.str_at(&["current-context"]), "kubelith");
    let text = run_in(dir.path(), "--name test --server https://api.example:443").unwrap();
    assert!(text.contains("server: https://api.example:443\n") && text.contains("current-context: test\n"), "{text}");
}

#[test]
fn it_is_merged_and_leaves_the_rest_alone() {
    let dir = folder();
    let file = dir.path().join("own/config");
    let merge = |more: &str| run_in(dir.path(), &format!("--merge --kubeconfig {} {more}", file.display()));
    assert!(merge("").unwrap().starts_with("wrote context \"kubelith\" to "));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let other = "apiVersion: v1\nkind: Config\ncurrent-context: theirs\nclusters:\n- {name: kubernetes, cluster: {server: \
                 'https://x'}}\nusers:\n- {name: kubernetes-admin, user: {token: t}}\ncontexts: null\npreferences: {colors: \
                 true}\n";
    std::fs::write(&file, other).unwrap();
    merge("--keep-context").unwrap();
    let read = || yaml::read(&std::fs::read(&file).unwrap()).unwrap().value;
    let config = read();
    assert_eq!(names(&config, "clusters"), ["kubernetes", "kubelith"]);
    assert_eq!(names(&config, "users"), ["kubernetes-admin", "kubelith-admin"]);
    assert_eq!(config.str_at(&["current-context"]), "theirs");
    assert_eq!(config.at(&["preferences", "colors"]), Some(&Value::Bool(true)));
    // Once more changes nothing but the context.
    merge("").unwrap();
    assert_eq!(
        (names(&read(), "contexts").len(), read().str_at(&["current-context"]).to_owned()),
        (1, "kubelith".into())
    );

    std::fs::write(file.with_file_name("config.lock"), "").unwrap();
    assert!(merge("").unwrap_err().contains("another program changes the file now"));
    std::fs::remove_file(file.with_file_name("config.lock")).unwrap();
    std::fs::write(&file, "- not a kubeconfig\n").unwrap();
    assert!(merge("").unwrap_err().ends_with("is no kubeconfig"));
    assert!(!file.with_file_name("config.lock").exists());
}

#[test]
fn users_get_certificates() {
    let dir = folder();
    let text = run_in(dir.path(), "--user jane --group devs --group ops").unwrap();
    let config = yaml::read(text.as_bytes()).unwrap().value;
    assert_eq!(
        (names(&config, "users"), names(&config, "contexts")),
        (vec!["jane@kubelith".into()], vec!["jane@kubelith".into()])
    );
    let user = config.get("users").and_then(Value::as_array).unwrap()[0].get("user").unwrap();
    let pem = |key: &str| kubelith_codec::base64::decode(user.str_at(&[key])).unwrap();
    assert!(pem("client-certificate-data").starts_with(b"-----BEGIN CERTIFICATE-----"));
    assert!(pem("client-key-data").starts_with(b"-----BEGIN PRIVATE KEY-----"));
}

#[test]
fn mistakes_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let missing = run_in(dir.path(), "").unwrap_err();
    assert!(missing.contains("admin.kubeconfig is not there") && missing.contains("kubelith --data-dir"), "{missing}");
    for (line, why) in [
        ("--days 5", "--group and --days are for --user"),
        ("--user j --days 0", "--days is a number from 1 to 3650"),
        ("--user j --days x", "--days is a number from 1 to 3650"),
        ("--user=", "users and groups have names"),
        ("--keep-context", "--kubeconfig and --keep-context are for --merge"),
        ("--user", "flag needs an argument: --user"),
        ("jane", "unknown word: jane"),
        ("--users", "unknown flag: --users"),
    ] {
        let error = parse(&words(line)).unwrap_err();
        assert!(error.starts_with(why), "{line}: {error}");
    }
}

#[test]
fn the_file_is_found_as_kubectl_finds_it() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("there");
    std::fs::write(&there, "").unwrap();
    let home = Some(PathBuf::from("/home/me"));
    let list = format!("/nowhere/a:{}:/nowhere/b", there.display());
    assert_eq!(own_file(Some(&list), home.clone()), Ok(there));
    assert_eq!(own_file(Some("/nowhere/a:/nowhere/b"), home.clone()), Ok("/nowhere/b".into()));
    assert_eq!(own_file(Some(""), home.clone()), Ok("/home/me/.kube/config".into()));
    assert_eq!(own_file(None, home), Ok("/home/me/.kube/config".into()));
    assert!(own_file(None, None).is_err());
}
