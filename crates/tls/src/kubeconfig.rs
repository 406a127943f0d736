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
