//! Files that are read again while the server runs, and acted upon when their content changes.

use kubelith_server::lifecycle::Tasks;
use kubelith_tls::files::unopened;
use kubelith_tls::server_config::RELOAD_INTERVAL;
use std::path::PathBuf;

/// Some files and what they held when they were last accepted.
pub struct Followed {
    paths: Vec<PathBuf>,
    content: Vec<u8>,
}

impl Followed {
    pub fn read(paths: Vec<PathBuf>) -> Result<Followed, String> {
        let content = read_all(&paths)?;
        Ok(Followed { paths, content })
    }

    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// What the files hold now, if it is something else.
    pub fn changed(&self) -> Result<Option<Vec<u8>>, String> {
        let content = read_all(&self.paths)?;
        Ok((content != self.content).then_some(content))
    }

    /// `content` need not be looked at again.
    pub fn accept(&mut self, content: Vec<u8>) {
        self.content = content;
    }
}

/// One after another, with a line feed between: right for PEM, and a single file ends with one more.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    for path in paths {
        content.append(&mut std::fs::read(path).map_err(|e| unopened(path, &e))?);
        content.push(b'\n');
    }
    Ok(content)
}

/// Runs `reload` for as long as the server does. What fails is logged once, until it fails otherwise.
pub fn every_interval(
    tasks: &Tasks,
    name: &'static str,
    mut reload: impl FnMut() -> Result<(), String> + Send + 'static,
) {
    tasks.spawn_until_stopped(name, async move {
        let mut last = None;
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            match reload() {
                Ok(()) => last = None,
                Err(why) => {
                    if last.as_ref() != Some(&why) {
                        tracing::error!(err = why, "{name} failed");
                    }
                    last = Some(why);
                }
            }
        }
    });
}
