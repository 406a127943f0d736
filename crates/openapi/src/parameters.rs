//! Query parameters: an options kind of the catalogue, each of its plain fields a parameter.

use super::model::{Parameter, Place};
use super::words::Words;
use kubelith_meta::Str;
use kubelith_schema::{Schema, Shape, TypeTable};

/// Makes the parameters of options kinds.
pub struct Parameters<'a> {
    pub table: &'a TypeTable,
    pub words: &'a Words,
}

impl Parameters<'_> {
    pub fn knows(&self, options: &str) -> bool {
        self.table.find(options).is_some()
    }

    /// The parameters of an options kind but some.
    pub fn of(&self, options: &str, except: &[&str]) -> Vec<Parameter> {
        let Some(id) = self.table.find(options) else { return Vec::new() };
        let fields = self.table.get(id).fields.iter();
        let fields = fields.filter(|f| !matches!(f.name.as_str(), "apiVersion" | "kind"));
        fields
            .filter(|f| !except.contains(&f.name.as_str()))
            .filter_map(|f| {
                let description = self.words.parameter(options, &f.name);
                Some(Parameter { name: f.name.clone(), place: Place::Query, kind: plain(&f.schema)?, description })
            })
            .collect()
    }

    /// `pretty`, which every operation takes and no options kind has.
    pub fn pretty(&self) -> Parameter {
        let description = self.words.parameter("", "pretty");
        Parameter { name: Str::const_new("pretty"), place: Place::Query, kind: "string", description }
    }
}

/// The type of a parameter. Lists are given by repeating it; structs and times cannot be given.
fn plain(schema: &Schema) -> Option<&'static str> {
    match &schema.shape {
        Shape::Bool => Some("boolean"),
        Shape::Int32 | Shape::Int64 => Some("integer"),
        Shape::Float => Some("number"),
        Shape::String => Some("string"),
        Shape::List(element) => plain(element),
        _ => None,
    }
}
