//! nginx with what the server under load answers, as files: how much dearer a read is than its bytes. It gets the reads only.

use crate::Result;
use crate::client::{Call, Connection, Endpoint};
use crate::loads::{Load, Size};
use crate::target::{Killed, Target};
use http_body_util::BodyExt;
use kubelith_conformance::harness::free_port;
use kubelith_conformance::http::Address;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// It reads a configuration of a few lines.
const START_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
/// The page of a list, beside the folder of its objects.
const PAGE: &str = "/page";

/// What files can be asked.
pub fn serve(load: Load) -> bool {
    matches!(load, Load::Get | Load::List)
}

/// Takes the objects of the server as they are now. It serves with the server's certificate.
pub async fn start(program: &Path, from: &Target, size: &Size) -> Result<Target> {
    let server = from.started()?;
    let folder = server.dir.path().join("static");
    let path = size.kind.path();
    let root = folder.join("files");
    std::fs::create_dir_all(root.join(&path[1..]))?;
    let mut connection = from.endpoint.connect().await?;
    for index in 0..size.pods {
        let one = size.kind.one(index);
        std::fs::write(root.join(&one[1..]), read(&mut connection, one).await?)?;
    }
    std::fs::write(root.join(&PAGE[1..]), read(&mut connection, format!("{path}?limit=500")).await?)?;
    let port = free_port()?;
    let file = folder.join("nginx.conf");
    // It keeps all files open, so that it need not look for them at each request.
    let kept_open = size.pods + 1;
    std::fs::write(&file, configuration(&folder, &server.data().join("pki"), &path, (port, kept_open)))?;
    let mut command = Command::new(program);
    command.arg("-p").arg(&folder).arg("-c").arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
    let files = Killed(child);
    let endpoint = Endpoint::new(Address::parse(&format!("https://127.0.0.1:{port}"))?, "");
    let end = Instant::now() + START_LIMIT;
    while endpoint.connect().await.is_err() {
        if Instant::now() > end {
            return Err(format!("{} does not serve", program.display()).into());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(Target::of_files("nginx (files)", endpoint, files))
}

async fn read(connection: &mut Connection, path: String) -> Result<bytes::Bytes> {
    let response = connection.open(Call::get(path.clone())).await?;
    if response.status() != 200 {
        return Err(format!("{path} answered {}", response.status()).into());
    }
    Ok(response.into_body().collect().await?.to_bytes())
}

/// One process, which is what is measured; it is known from the start, and has no other user that could not read the files.
fn configuration(folder: &Path, pki: &Path, list: &str, (port, kept_open): (u16, usize)) -> String {
    let (folder, pki) = (folder.display(), pki.display());
    format!(
        "daemon off;
master_process off;
pid {folder}/pid;
error_log stderr;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  default_type application/json;
  keepalive_requests 1000000000;
  open_file_cache max={kept_open} inactive=1h;
  open_file_cache_valid 1h;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl http2;
    ssl_certificate {pki}/apiserver.crt;
    ssl_certificate_key {pki}/apiserver.key;
    ssl_protocols TLSv1.3;
    root {folder}/files;
    location = {list} {{ try_files {PAGE} =404; }}
  }}
}}
"
    )
}
