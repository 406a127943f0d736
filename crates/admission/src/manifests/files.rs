//! A folder of manifests: which files of it count, and the documents in them.

use aws_lc_rs::digest::{Context, SHA256};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// Of all files together: more than any honest set of policies has.
const MAX_BYTES: u64 = 64 << 20;

pub struct Files {
    /// Each document with the file that has it.
    pub documents: Vec<(PathBuf, String)>,
    /// Of the contents; empty if there are none.
    pub hash: String,
}

impl Files {
    /// Files come in the order of their names.
    pub fn read(folder: &Path) -> Result<Files, String> {
        let shown = folder.display().to_string();
        let failed = |why: &std::io::Error| {
            format!(
                "failed to read manifest directory {shown:?}: open {shown}: {}",
                crate::configuration::os_error(why)
            )
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(|e| failed(&e))? {
            let path = entry.map_err(|e| failed(&e))?.path();
            let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
            if !path.is_dir() && ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) {
                paths.push(path);
            }
        }
        paths.sort();
        let (mut documents, mut digest, mut total) = (Vec::new(), Context::new(&SHA256), 0u64);
        for path in paths {
            let shown = path.display().to_string();
            let failed = |why: &str| format!("failed to read file {shown:?}: {why}");
            let opened = |e: std::io::Error| failed(&format!("open {shown}: {}", crate::configuration::os_error(&e)));
            total += std::fs::metadata(&path).map_err(opened)?.len();
            if total > MAX_BYTES {
                return Err(failed(&format!("the manifests have more than {MAX_BYTES} bytes")));
            }
            let content = std::fs::read(&path).map_err(opened)?;
            if content.is_empty() {
                continue;
            }
            digest.update(&content);
            digest.update(&[0]);
            let text = String::from_utf8_lossy(&content);
            documents.extend(split(&text).into_iter().map(|document| (path.clone(), document)));
        }
        let hash = match total {
            0 => String::new(),
            _ => digest.finish().as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            }),
        };
        Ok(Files { documents, hash })
    }
}

/// The documents of a file that are not empty.
fn split(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        let ends = line.strip_prefix("---").map(str::trim).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'));
        if ends {
            documents.push(String::new());
        } else if let Some(document) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    documents.into_iter().map(|document| document.trim().to_owned()).filter(|document| !document.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_in_order_and_split() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(Files::read(folder.path()).unwrap().hash, "");
        put("b.yaml", "---\nb: 1\n--- # next\nc: 2\n---\n\n");
        put("a.JSON", "{\"a\": 1}");
        put("c.txt", "no");
        std::fs::create_dir(folder.path().join("d.yaml")).unwrap();
        let files = Files::read(folder.path()).unwrap();
        let texts: Vec<&str> = files.documents.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["{\"a\": 1}", "b: 1", "c: 2"]);
        put("c.yml", "x: 1");
        assert_ne!(Files::read(folder.path()).unwrap().hash, files.hash);
        let gone = folder.path().join("gone");
        let why = Files::read(&gone).err().unwrap();
        let gone = gone.display();
        assert_eq!(
            why,
            format!("failed to read manifest directory \"{gone}\": open {gone}: no such file or directory")
        );
    }
}
