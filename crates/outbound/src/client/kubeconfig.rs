//! Reads a kubeconfig file as webhooks use it: one server, whom to trust, who we are.

use super::{ClientTls, Credential, HttpClient};
use crate::egress::Route;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubelith_meta::Value;
use kubelith_tls::Trust;
use std::path::Path;
use std::time::Duration;

/// The current context of a kubeconfig file.
#[derive(Debug, Clone, Default)]
pub struct Kubeconfig {
    /// The URL that requests go to.
    pub server: String,
    pub tls: ClientTls,
    pub credential: Credential,
}

/// The words are those of Go's, which looks whether the file is there first.
pub fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("stat {}: no such file or directory", path.display()),
        _ => format!("{}: {error}", path.display()),
    })
}

impl Kubeconfig {
    pub fn load(path: &Path) -> Result<Kubeconfig, String> {
        let error = |why: String| format!("{}: {why}", path.display());
        let text = read_file(path)?;
        Kubeconfig::parse(&text, path.parent().unwrap_or(Path::new("."))).map_err(error)
    }

    /// `dir` is what file names in it are relative to.
    pub fn parse(text: &[u8], dir: &Path) -> Result<Kubeconfig, String> {
        let config = kubelith_codec::yaml::read(text).map_err(|e| e.to_string())?.value;
        let current = config.str_at(&["current-context"]);
        // Without a current context the only one there is counts, as it does for webhooks in the reference.
        let context = named(&config, "contexts", "context", current);
        let name = |key: &str| context.map_or("", |c| c.str_at(&[key]));
        let cluster =
            named(&config, "clusters", "cluster", name("cluster")).ok_or("invalid configuration: no server")?;
        let empty = Value::object();
        let user = named(&config, "users", "user", name("user")).unwrap_or(&empty);
        let (credential, identity) = identity_of(user, dir)?;
        let server = cluster.str_at(&["server"]);
        if server.is_empty() {
            return Err("invalid configuration: no server found".into());
        }
        let server = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
        let trust = match pem(cluster, "certificate-authority", dir)? {
            _ if cluster.get("insecure-skip-tls-verify").and_then(Value::as_bool) == Some(true) => Trust::Anyone,
            Some(authorities) => Trust::Authorities(authorities),
            None => Trust::System,
        };
        let server_name = Some(cluster.str_at(&["tls-server-name"]).to_owned()).filter(|n| !n.is_empty());
        Ok(Kubeconfig { server, tls: ClientTls { trust, server_name, identity, flaws: None }, credential })
    }

    pub fn client(&self, route: &Route, timeout: Duration) -> Result<HttpClient, String> {
        HttpClient::by(route, &self.tls, self.credential.clone(), timeout)
    }
}

/// The texts of a client's certificate and of its key.
pub type CertificateAndKey = (Vec<u8>, Vec<u8>);

/// Who a `user` of a kubeconfig file is: what it says in `Authorization`, and its certificate with the key, in PEM.
pub fn identity_of(user: &Value, dir: &Path) -> Result<(Credential, Option<CertificateAndKey>), String> {
    if user.get("exec").is_some() || user.get("auth-provider").is_some() {
        return Err("credentials from plugins are not supported here".into());
    }
    let identity = pem(user, "client-certificate", dir)?.zip(pem(user, "client-key", dir)?);
    Ok((credential(user, dir), identity))
}

/// The entry of a list with this name; the first one for no name.
fn named<'a>(config: &'a Value, list: &str, member: &str, name: &str) -> Option<&'a Value> {
    let entries = config.get(list).and_then(Value::as_array).unwrap_or_default();
    let found = match name {
        "" => entries.first(),
        name => entries.iter().find(|e| e.str_at(&["name"]) == name),
    };
    found.and_then(|e| e.get(member))
}

/// `<key>-data` inline, or the file that `<key>` names.
fn pem(object: &Value, key: &str, dir: &Path) -> Result<Option<Vec<u8>>, String> {
    let inline = object.str_at(&[&format!("{key}-data")]);
    if !inline.is_empty() {
        return STANDARD.decode(inline).map(Some).map_err(|e| format!("{key}-data: {e}"));
    }
    match object.str_at(&[key]) {
        "" => Ok(None),
        file => {
            let path = dir.join(file);
            std::fs::read(&path).map(Some).map_err(|e| format!("unable to read {key} {}: {e}", path.display()))
        }
    }
}

fn credential(user: &Value, dir: &Path) -> Credential {
    let (token, file) = (user.str_at(&["token"]), user.str_at(&["tokenFile"]));
    if !file.is_empty() {
        return Credential::TokenFile(dir.join(file));
    }
    if !token.is_empty() {
        return Credential::Token(token.to_owned());
    }
    match user.str_at(&["username"]) {
        "" => Credential::None,
        username => {
            Credential::Basic { username: username.to_owned(), password: user.str_at(&["password"]).to_owned() }
        }
    }
}
