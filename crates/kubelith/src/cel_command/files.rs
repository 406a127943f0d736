//! Files with documents in YAML or JSON.

use kubelith_meta::Value;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest file, in bytes: no object is larger.
const MAX_FILE: u64 = 64 << 20;

/// A document, and where it was read.
#[derive(Debug)]
pub struct Document {
    pub file: String,
    pub value: Value,
}

impl Document {
    /// `Kind/name`.
    pub fn name(&self) -> String {
        let name = match self.value.str_at(&["metadata", "name"]) {
            "" => self.value.str_at(&["metadata", "generateName"]),
            name => name,
        };
        format!("{}/{name}", self.value.str_at(&["kind"]))
    }

    pub fn title(&self) -> String {
        format!("{}: {}", self.file, self.name())
    }
}

/// All documents of some files; the members of a `List` are documents of their own.
pub fn read_all(files: &[PathBuf]) -> Result<Vec<Document>, String> {
    let mut found = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let told = |why: String| format!("{name}: {why}");
        for value in documents(&read(file).map_err(|e| told(e.to_string()))?).map_err(told)? {
            match value.get("items").and_then(Value::as_array).filter(|_| value.str_at(&["kind"]).ends_with("List")) {
                Some(items) => found.extend(items.iter().map(|v| Document { file: name.clone(), value: v.clone() })),
                None => found.push(Document { file: name.clone(), value }),
            }
        }
    }
    Ok(found)
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    if file.as_os_str() == "-" {
        std::io::stdin().lock().take(MAX_FILE).read_to_end(&mut content)?;
    } else {
        std::fs::File::open(file)?.take(MAX_FILE).read_to_end(&mut content)?;
    }
    Ok(content)
}

/// Documents of YAML are parted by lines of three dashes.
fn documents(content: &[u8]) -> Result<Vec<Value>, String> {
    let text = std::str::from_utf8(content).map_err(|e| e.to_string())?;
    let mut parts = vec![String::new()];
    for line in text.split_inclusive('\n') {
        let is_mark =
            line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        match parts.last_mut() {
            Some(part) if !is_mark => part.push_str(line),
            _ => parts.push(String::new()),
        }
    }
    let mut found = Vec::new();
    for part in parts {
        let value = kubelith_codec::yaml::read(part.as_bytes()).map_err(|e| e.to_string())?.value;
        match value {
            Value::Null => {}
            Value::Object(_) => found.push(value),
            _ => return Err("a document is no object".to_owned()),
        }
    }
    Ok(found)
}

/// Whether two are states of one object.
pub fn is_same(a: &Value, b: &Value) -> bool {
    let group = |v: &Value| v.str_at(&["apiVersion"]).split_once('/').map_or("", |(group, _)| group).to_owned();
    group(a) == group(b)
        && [&["kind"][..], &["metadata", "namespace"], &["metadata", "name"]]
            .iter()
            .all(|at| a.str_at(at) == b.str_at(at))
}
