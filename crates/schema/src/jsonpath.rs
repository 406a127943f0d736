//! shim
use kubelith_meta::Value;
pub struct JsonPath(Vec<String>);
impl JsonPath {
    pub fn parse(text: &str) -> Result<JsonPath, String> {
        Ok(JsonPath(text.trim_start_matches('.').split('.').map(str::to_owned).collect()))
    }
    pub fn find<'v>(&self, v: &'v Value) -> Vec<&'v Value> {
        self.0.iter().try_fold(v, |v, k| v.get(k)).into_iter().collect()
    }
}
