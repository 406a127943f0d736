//! The program as an operator meets it: started, signalled, watched by systemd.

use crate::support::client::{Connection, Protocol};
use crate::support::{LIMIT, Server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::net::UnixDatagram;

#[test]
fn a_signal_ends_it_in_order() {
    let mut server = Server::start(&["--shutdown-delay-duration=1s"]);
    server.signal("TERM");
    // Still serving, and telling load balancers to turn away.
    server.wait_for("red", || server.get("/readyz/shutdown").is_ok_and(|r| r.status == 500));
    assert_eq!(server.get("/livez").unwrap().status, 200);
    assert_eq!(server.get("/api/v1/namespaces/default").unwrap().status, 200);
    assert_eq!(server.ended().code(), Some(0), "{}", server.log());
}

#[test]
fn it_takes_itself_out_of_the_endpoints() {
    let etcd = crate::support::etcd();
    let etcd = format!("--etcd-servers={}", etcd.url);
    let addresses = |server: &Server| {
        let answer = server.get("/api/v1/namespaces/default/endpoints/kubernetes").unwrap();
        let endpoints: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        endpoints["subsets"][0]["addresses"].as_array().map_or(0, Vec::len)
    };
    // The second server sees what the first one leaves behind.
    let other = Server::start(&[&etcd, "--endpoint-reconciler-type=none"]);
    let mut server = Server::start(&[&etcd]);
    server.wait_for("in the endpoints", || addresses(&other) == 1);
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0), "{}", server.log());
    assert_eq!(addresses(&other), 0);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut server = Server::start(&["--shutdown-delay-duration=1h"]);
    server.signal("INT");
    server.wait_for("red", || server.get("/readyz/shutdown").is_ok_and(|r| r.status == 500));
    assert!(!server.has_ended());
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(1));
}

/// `bench` tells how fast the optimised program starts and how small it is. This holds for any build on any machine, and
/// notices when a start begins to cost several times as much.
#[test]
fn a_first_start_costs_little() {
    let server = Server::start(&["--storage-backend=embedded"]);
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", server.pid())).unwrap();
    let status = read("status");
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kilobytes: u64 = own.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 30_000, "{kilobytes} kB of memory that is not the program itself");
    // Behind the name in parentheses: hundredths of a second in the program and in the system, the 14th and 15th field.
    let stat = read("stat");
    let fields = stat.rsplit(") ").next().unwrap().split(' ').skip(11).take(2);
    let hundredths: u64 = fields.map(|f| f.parse::<u64>().unwrap()).sum();
    assert!(hundredths < 500, "{hundredths} hundredths of a second until ready");
}

#[test]
fn a_crash_leaves_no_secrets_behind() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    setrlimit(Resource::Core, Rlimit { current: maximum, maximum }).unwrap(); // What a server is started with.
    let server = Server::start(&["--storage-backend=memory"]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().next(), Some("0"));
}

#[test]
fn systemd_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    let mut server = Server::launch(&[], &[("NOTIFY_SOCKET", path.to_str().unwrap())]);
    let received = || {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert!(received().contains("READY=1"));
    // Whoever is told so can connect.
    assert!(server.get("/livez").is_ok());
    server.signal("TERM");
    assert!(received().contains("STOPPING=1"));
    assert_eq!(server.ended().code(), Some(0));
}

/// A request under way is answered, a watch ends, though the server was told to stop.
#[tokio::test]
async fn what_is_under_way_is_finished() {
    let mut server = Server::start(&["--shutdown-watch-termination-grace-period=2s"]);
    let mut watcher = Connection::open(server.address(), Protocol::Http2).await.unwrap();
    let watch = watcher.start("GET", "/api/v1/namespaces?watch=true", "").await.unwrap();
    assert_eq!(watch.status(), 200);
    server.signal("TERM");
    let body = http_body_util::BodyExt::collect(watch.into_body());
    tokio::time::timeout(LIMIT, body).await.expect("the watch ends").expect("it ends well");
    assert_eq!(server.ended().code(), Some(0), "{}", server.log());
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    let run = |args: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_kubelith")).args(args).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = run(&["--secure-port=x"]);
    assert_eq!(code, Some(1));
    assert!(text.starts_with("Error: invalid argument \"x\" for \"--secure-port\" flag:"), "{text}");
    let (code, text) = run(&["--feature-gates=NoSuch=true"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("unrecognized feature gate: NoSuch"), "{text}");
    let (code, text) = run(&["--apiserver-count=1", "--help"]);
    assert_eq!(
        (code, text.trim()),
        (
            Some(0),
            "Flag --apiserver-count has been deprecated, apiserver-count is deprecated and will be removed in a future version."
        )
    );
}

/// Who has the port or the data is named, with what to do about it, in the line of the log.
#[test]
fn a_start_that_fails_says_what_helps() {
    let server = Server::start(&["--storage-backend=embedded"]);
    let run = |args: &[String]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_kubelith")).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let own = server.dir.path().join("data");
    let text = run(&[format!("--data-dir={}", own.display())]);
    let pid = server.pid();
    assert!(text.contains("data is in use by another process") && text.contains(&format!("Process {pid} (")), "{text}");

    let other = tempfile::tempdir().unwrap();
    let port = server.port;
    let text = run(&[
        format!("--data-dir={}", other.path().display()),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--storage-backend=memory".to_owned(),
    ]);
    assert!(text.contains("failed to create listener: failed to listen on 127.0.0.1:"), "{text}");
    assert!(text.contains(&format!("Port {port} is taken by process {pid} (")), "{text}");
}

/// The program tells of itself: to shells, to readers of manuals, to scripts.
#[test]
fn commands_print_what_they_are_for() {
    let server = Server::start(&[]);
    let run = |args: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_kubelith")).args(args).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let url = format!("https://127.0.0.1:{}", server.port);
    assert_eq!(run(&["health", "--server", &url]), (Some(0), "ok\n".to_owned()));
    assert_eq!(run(&["health", "--server", &url, "--path", "/nothing"]).0, Some(1));
    let data = server.dir.path().join("data").display().to_string();
    let (code, text) = run(&["kubeconfig", "--data-dir", &data, "--user", "jane", "--group", "devs"]);
    assert!(code == Some(0) && text.contains("current-context: jane@kubelith"), "{text}");
    for (args, start) in [
        (&["version"][..], "Kubelith "),
        (&["completion", "zsh"], "#compdef kubelith"),
        (&["man"], ".TH KUBELITH 1 "),
        (&["help", "kubeconfig"], "Shows the kubeconfig"),
        (&["--help"], "Kubelith is a Kubernetes API server"),
    ] {
        let (code, text) = run(args);
        assert!(code == Some(0) && text.starts_with(start), "{args:?}: {text}");
    }
}

/// As the reference, the server serves with a certificate that has ended; it says so, since nobody else will.
#[test]
fn certificates_that_have_ended_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 2, 3);
    let (cert_file, key_file) = (dir.path().join("old.crt"), dir.path().join("old.key"));
    std::fs::write(&cert_file, params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    let server = Server::start(&[
        &format!("--tls-cert-file={}", cert_file.display()),
        &format!("--tls-private-key-file={}", key_file.display()),
    ]);
    let log = server.log();
    assert!(log.contains("The serving certificate ended at 2021-02-03T00:00:00Z"), "{log}");
    assert!(log.contains(&cert_file.display().to_string()), "{log}");
}
