use super::*;
use crate::authn::testing::Probe;
use crate::authn::x509::testing::{NOW, ca_params, client_params, root};
use crate::testing::clock_at;

fn authenticator(ca_pem: &str, allowed: &[&str]) -> RequestHeader {
    let config = RequestHeaderConfig {
        headers: RequestHeaderNames::standard(),
        allowed_names: allowed.iter().map(|n| n.to_string()).collect(),
        ca: CaPool::from_pem(ca_pem.as_bytes()).unwrap(),
    };
    RequestHeader::new(Arc::new(ArcSwapOption::from_pointee(config)), clock_at(NOW))
}

fn proxied() -> Probe {
    Probe::new()
        .header("X-Remote-User", "jane")
        .header("X-Remote-Uid", "42")
        .header("X-Remote-Group", "dev")
        .header("X-Remote-Group", "")
        .header("X-Remote-Group", "ops")
        .header("X-Remote-Extra-Scopes", "a")
        .header("X-Remote-Extra-Scopes", "b")
        .header("X-Remote-Extra-Example.com%2fTeam", "t")
        .header("X-Remote-Extra-Bad%zz", "raw")
}

#[test]
fn headers_become_the_user() {
    let ca = root(ca_params("proxy-ca"));
    let probe = proxied().certificates(&[ca.leaf(client_params("proxy", &[]))]);
    let user = probe.ask(&authenticator(&ca.pem, &["proxy"])).unwrap().unwrap().user;
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "42"));
    assert_eq!(user.groups, ["dev", "ops"]);
    let extra: Vec<(&str, String)> = user.extra.iter().map(|(k, v)| (k.as_str(), v.join(","))).collect();
    assert_eq!(extra, [("bad%zz", "raw".into()), ("example.com/team", "t".into()), ("scopes", "a,b".to_string())]);
}

#[test]
fn spoofing_without_the_proxy_certificate_fails() {
    let ca = root(ca_params("proxy-ca"));
    let stranger = root(ca_params("proxy-ca"));
    let auth = authenticator(&ca.pem, &["proxy"]);
    assert_eq!(proxied().ask(&auth), Ok(None), "no certificate: the headers mean nothing");
    let forged = proxied().certificates(&[stranger.leaf(client_params("proxy", &[]))]);
    assert!(forged.ask(&auth).is_err());
    let other_client = proxied().certificates(&[ca.leaf(client_params("someone", &[]))]);
    let error = other_client.ask(&auth).unwrap_err().to_string();
    assert_eq!(error, "x509: subject with cn=someone is not in the allowed list");
    let nameless = Probe::new().header("X-Remote-Group", "system:masters");
    let nameless = nameless.certificates(&[ca.leaf(client_params("proxy", &[]))]);
    assert_eq!(nameless.ask(&auth), Ok(None));
    let bytes = Probe::new().header_bytes("X-Remote-User", b"jane\xff");
    assert!(bytes.certificates(&[ca.leaf(client_params("proxy", &[]))]).ask(&auth).is_err());
}

/// A client of the cluster's authority has nothing to do with the proxy's: its certificate is not even looked at.
#[test]
fn whoever_names_no_user_is_not_verified() {
    let ca = root(ca_params("proxy-ca"));
    let stranger = root(ca_params("proxy-ca"));
    let client = [stranger.leaf(client_params("kubelet", &[]))];
    let auth = authenticator(&ca.pem, &["proxy"]);
    assert_eq!(Probe::new().certificates(&client).ask(&auth), Ok(None));
    assert_eq!(Probe::new().header("X-Remote-User", "").certificates(&client).ask(&auth), Ok(None));
    assert!(Probe::new().header("X-Remote-User", "jane").certificates(&client).ask(&auth).is_err());
}

#[test]
fn without_allowed_names_any_certificate_of_the_ca_will_do() {
    let ca = root(ca_params("proxy-ca"));
    let probe = proxied().certificates(&[ca.leaf(client_params("someone", &[]))]);
    assert!(probe.ask(&authenticator(&ca.pem, &[])).unwrap().is_some());
}

#[test]
fn headers_are_removed() {
    let mut probe = proxied().header("x-remote-other", "stays");
    RequestHeaderNames::standard().remove_from(&mut probe.headers);
    assert_eq!(probe.headers.keys().map(|k| k.as_str()).collect::<Vec<_>>(), ["x-remote-other"]);
}

#[test]
fn names_are_trimmed() {
    let names = |n: &str| RequestHeaderNames { username: vec![n.to_string()], ..Default::default() }.normalized();
    assert_eq!(names(" X-User ").unwrap().username, ["X-User"]);
    assert_eq!(names(" ").unwrap_err(), "empty header \" \"");
}
