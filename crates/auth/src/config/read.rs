//! Reads a configuration object strictly: fields of the wrong type and unknown fields are errors.

use kubelith_meta::{Str, Value};

const GROUP: &str = "apiserver.config.k8s.io";

/// An object being read. Fields that were not asked for by the time of `finish` are unknown.
pub struct Reader<'a> {
    value: &'a Value,
    path: String,
    known: Vec<&'static str>,
}

/// Checks `apiVersion` and `kind` and opens the document.
pub fn document<'a>(value: &'a Value, kind: &str, versions: &[&str]) -> Result<Reader<'a>, String> {
    let (found_version, found_kind) = (value.str_at(&["apiVersion"]), value.str_at(&["kind"]));
    if found_version.is_empty() {
        return Err("Object 'apiVersion' is missing".into());
    }
    if found_kind.is_empty() {
        return Err("Object 'Kind' is missing".into());
    }
    let known = versions.iter().any(|v| found_version == format!("{GROUP}/{v}"));
    if !known || found_kind != kind {
        return Err(format!("no kind \"{found_kind}\" is registered for version \"{found_version}\""));
    }
    let mut reader = Reader::new(value, String::new())?;
    reader.known.extend(["apiVersion", "kind"]);
    Ok(reader)
}

impl<'a> Reader<'a> {
    fn new(value: &'a Value, path: String) -> Result<Reader<'a>, String> {
        match value {
            Value::Object(_) | Value::Null => Ok(Reader { value, path, known: Vec::new() }),
            _ => Err(format!("{path}: expected an object")),
        }
    }

    fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.value.get(key).filter(|v| !v.is_null())
    }

    pub fn optional_text(&mut self, key: &'static str) -> Result<Option<Str>, String> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s.clone())),
            Some(_) => Err(format!("{}: expected a string", self.at(key))),
        }
    }

    pub fn text(&mut self, key: &'static str) -> Result<Str, String> {
        Ok(self.optional_text(key)?.unwrap_or_default())
    }

    pub fn optional_flag(&mut self, key: &'static str) -> Result<Option<bool>, String> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(b)) => Ok(Some(*b)),
            Some(_) => Err(format!("{}: expected a boolean", self.at(key))),
        }
    }

    pub fn texts(&mut self, key: &'static str) -> Result<Vec<Str>, String> {
        let wrong = format!("{}: expected a list of strings", self.at(key));
        let Some(list) = self.take(key) else { return Ok(Vec::new()) };
        let list = list.as_array().ok_or_else(|| wrong.clone())?;
        list.iter().map(|v| v.as_str().map(Str::from).ok_or_else(|| wrong.clone())).collect()
    }

    /// An object; absent ones read as empty.
    pub fn object<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, String>,
    ) -> Result<T, String> {
        static ABSENT: Value = Value::Null;
        let path = self.at(key);
        let mut inner = Reader::new(self.take(key).unwrap_or(&ABSENT), path)?;
        let result = read(&mut inner)?;
        inner.finish()?;
        Ok(result)
    }

    pub fn optional_object<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        match self.value.get(key).is_some_and(|v| !v.is_null()) {
            true => self.object(key, read).map(Some),
            false => {
                self.known.push(key);
                Ok(None)
            }
        }
    }

    pub fn objects<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Reader<'a>) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let path = self.at(key);
        let Some(list) = self.take(key) else { return Ok(Vec::new()) };
        let list = list.as_array().ok_or_else(|| format!("{path}: expected a list"))?;
        let mut results = Vec::with_capacity(list.len());
        for (i, item) in list.iter().enumerate() {
            let mut inner = Reader::new(item, format!("{path}[{i}]"))?;
            results.push(read(&mut inner)?);
            inner.finish()?;
        }
        Ok(results)
    }

    pub fn finish(self) -> Result<(), String> {
        let unknown = self.value.as_object().into_iter().flat_map(|m| m.keys()).find(|k| !self.known.contains(k));
        match unknown {
            Some(key) => Err(format!("strict decoding error: unknown field \"{}\"", self.at(key))),
            None => Ok(()),
        }
    }
}
