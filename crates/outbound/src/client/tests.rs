use super::*;
use kubelith_tls::Trust;
use std::path::Path;

#[test]
fn kubeconfigs() {
    let file = |cluster: &str, user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: other\n  cluster: {{server: https://no}}\n- name: c\n  \
             cluster: {{{cluster}}}\nusers:\n- name: u\n  user: {{{user}}}\ncurrent-context: x\ncontexts:\n- name: x\n  \
             context: {{cluster: c, user: u}}\n"
        )
    };
    let read = |cluster: &str, user: &str| Kubeconfig::parse(file(cluster, user).as_bytes(), Path::new("/nowhere"));
    let plain = read("server: https://a/b", "").unwrap();
    assert_eq!(
        (plain.server.as_str(), &plain.tls.trust, &plain.credential),
        ("https://a/b", &Trust::System, &Credential::None)
    );
    assert!(plain.tls.server_name.is_none() && plain.tls.identity.is_none());
    assert_eq!(read("server: a", "").unwrap().server, "http://a");
    let token = read("server: a, insecure-skip-tls-verify: true", "token: t").unwrap();
    assert_eq!((token.credential, token.tls.trust), (Credential::Token("t".into()), Trust::Anyone));
    let basic =
        read("server: a, tls-server-name: host, certificate-authority-data: eA==", "username: u, password: p").unwrap();
    assert_eq!(basic.credential, Credential::Basic { username: "u".into(), password: "p".into() });
    assert_eq!((basic.tls.trust, basic.tls.server_name), (Trust::Authorities(b"x".into()), Some("host".into())));
    for (cluster, user, why) in [
        ("x: y", "", "invalid configuration: no server found"),
        ("server: a, certificate-authority: f", "", "unable to read certificate-authority /nowhere/f"),
        ("server: a", "exec: {command: x}", "credentials from plugins are not supported here"),
    ] {
        let got = read(cluster, user).unwrap_err();
        assert!(got.starts_with(why), "{got}");
    }
}

#[tokio::test]
async fn nobody_there() {
    let client = HttpClient::new(&ClientTls::default(), Credential::None, Duration::from_secs(5)).unwrap();
    // Port 1 of loopback is nobody's.
    let got = client.fetch(FetchRequest::get("http://127.0.0.1:1/x")).await.unwrap_err();
    assert!(matches!(&got, FetchError::Other(why) if why.starts_with("Get \"http://127.0.0.1:1/x\": ")), "{got:?}");
    let no_url = client.fetch(FetchRequest::get("no url")).await.unwrap_err();
    assert!(matches!(no_url, FetchError::Other(_)));
}
