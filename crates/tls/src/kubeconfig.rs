//! The kubeconfig that lets kubectl in as administrator: one file, certificates inside.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub struct AdminKubeconfig<'a> {
    /// `https://host:port`
    pub server: &'a str,
    pub ca_pem: &'a str,
    pub cert_pem: &'a str,
    pub key_pem: &'a str,
}

/// A kubeconfig for somebody with a token.
pub struct TokenKubeconfig<'a> {
    /// `https://host:port`
    pub server: &'a str,
    pub ca_pem: &'a str,
    pub user: &'a str,
    pub token: &'a str,
}

impl TokenKubeconfig<'_> {
    /// The file's text, as JSON, which is YAML, too: names and tokens may hold anything.
    pub fn render(&self) -> String {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"clusters\":[{{\"name\":\"kubelith\",\"cluster\":{{\"server\":{server},\
             \"certificate-authority-data\":{ca}}}}}],\"users\":[{{\"name\":{user},\"user\":{{\"token\":{token}}}}}],\
             \"contexts\":[{{\"name\":\"kubelith\",\"context\":{{\"cluster\":\"kubelith\",\"user\":{user}}}}}],\
             \"current-context\":\"kubelith\"}}\n",
            server = json_string(self.server),
            ca = json_string(&STANDARD.encode(self.ca_pem)),
            user = json_string(self.user),
            token = json_string(self.token),
        )
    }
}

/// A text in JSON.
fn json_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl AdminKubeconfig<'_> {
    /// The file's text. All values are base64 or a URL, so no YAML quoting is needed.
    pub fn render(&self) -> String {
        let b64 = |pem: &str| STANDARD.encode(pem);
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: kubelith\n\
             \x20 cluster:\n\
             \x20   server: {server}\n\
             \x20   certificate-authority-data: {ca}\n\
             users:\n\
             - name: kubernetes-admin\n\
             \x20 user:\n\
             \x20   client-certificate-data: {cert}\n\
             \x20   client-key-data: {key}\n\
             contexts:\n\
             - name: kubelith\n\
             \x20 context:\n\
             \x20   cluster: kubelith\n\
             \x20   user: kubernetes-admin\n\
             current-context: kubelith\n",
            server = self.server,
            ca = b64(self.ca_pem),
            cert = b64(self.cert_pem),
            key = b64(self.key_pem),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_may_hold_anything() {
        let text = TokenKubeconfig { server: "https://h:1", ca_pem: "ca", user: "a\"b", token: "x\\\n" }.render();
        assert!(text.contains(r#""users":[{"name":"a\"b","user":{"token":"x\\\u000a"}}]"#), "{text}");
        assert!(text.contains(r#""cluster":{"server":"https://h:1","certificate-authority-data":"Y2E="}"#), "{text}");
    }
}
