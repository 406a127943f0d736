//! The messages of `openapi.v3`, as far as our documents have use for them.

use super::Form::{Double, Flag, Integer, Many, One, Text, Texts};
use super::{Message, named, nested, text};
use crate::v3::Document;
use Message::{Any, Boxed, Default, Fields, Named, OrFlag, OrReference};
use kubelith_meta::Value;

static INFO: Message = Fields(&[("title", 1, Text), ("description", 2, Text), ("version", 6, Text)], 7);

static PATH_ITEM: Message = Fields(
    &[
        ("get", 4, One(&OPERATION)),
        ("put", 5, One(&OPERATION)),
        ("post", 6, One(&OPERATION)),
        ("delete", 7, One(&OPERATION)),
        ("options", 8, One(&OPERATION)),
        ("head", 9, One(&OPERATION)),
        ("patch", 10, One(&OPERATION)),
        ("parameters", 13, Many(&OrReference(&PARAMETER))),
    ],
    14,
);

static OPERATION: Message = Fields(
    &[
        ("tags", 1, Texts),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("parameters", 6, Many(&OrReference(&PARAMETER))),
        ("requestBody", 7, One(&OrReference(&REQUEST_BODY))),
        ("responses", 8, One(&Named(2, &OrReference(&RESPONSE)))),
        ("deprecated", 10, Flag),
    ],
    13,
);

static PARAMETER: Message = Fields(
    &[
        ("name", 1, Text),
        ("in", 2, Text),
        ("description", 3, Text),
        ("required", 4, Flag),
        ("schema", 10, One(&OrReference(&SCHEMA))),
    ],
    14,
);

static REQUEST_BODY: Message =
    Fields(&[("description", 1, Text), ("content", 2, One(&Named(1, &MEDIA_TYPE))), ("required", 3, Flag)], 4);

static RESPONSE: Message = Fields(&[("description", 1, Text), ("content", 3, One(&Named(1, &MEDIA_TYPE)))], 5);

static MEDIA_TYPE: Message = Fields(&[("schema", 1, One(&OrReference(&SCHEMA)))], 5);

static SCHEMA_OR_REFERENCE: Message = OrReference(&SCHEMA);

static SCHEMA: Message = Fields(
    &[
        ("nullable", 1, Flag),
        ("example", 7, One(&Any)),
        ("title", 9, Text),
        ("multipleOf", 10, Double),
        ("maximum", 11, Double),
        ("exclusiveMaximum", 12, Flag),
        ("minimum", 13, Double),
        ("exclusiveMinimum", 14, Flag),
        ("maxLength", 15, Integer),
        ("minLength", 16, Integer),
        ("pattern", 17, Text),
        ("maxItems", 18, Integer),
        ("minItems", 19, Integer),
        ("uniqueItems", 20, Flag),
        ("maxProperties", 21, Integer),
        ("minProperties", 22, Integer),
        ("required", 23, Texts),
        ("enum", 24, Many(&Any)),
        ("type", 25, Text),
        ("allOf", 26, Many(&OrReference(&SCHEMA))),
        ("oneOf", 27, Many(&OrReference(&SCHEMA))),
        ("anyOf", 28, Many(&OrReference(&SCHEMA))),
        ("not", 29, One(&SCHEMA)),
        ("items", 30, One(&Boxed(Many(&OrReference(&SCHEMA))))),
        ("properties", 31, One(&Named(1, &OrReference(&SCHEMA)))),
        ("additionalProperties", 32, One(&OrFlag(&OrReference(&SCHEMA)))),
        ("default", 33, One(&Default)),
        ("description", 34, Text),
        ("format", 35, Text),
    ],
    36,
);

static SECURITY_SCHEMES: Message = Named(1, &OrReference(&SECURITY_SCHEME));

static SECURITY_SCHEME: Message =
    Fields(&[("type", 1, Text), ("description", 2, Text), ("name", 3, Text), ("in", 4, Text)], 9);

static PATHS: Message = Named(1, &PATH_ITEM);

static SCHEMAS: Message = Named(1, &SCHEMA_OR_REFERENCE);

/// A whole document as JSON has it.
static DOCUMENT: Message = Fields(
    &[("openapi", 1, Text), ("info", 2, One(&INFO)), ("paths", 4, One(&PATHS)), ("components", 5, One(&COMPONENTS))],
    9,
);

static COMPONENTS: Message =
    Fields(&[("schemas", 1, One(&SCHEMAS)), ("securitySchemes", 7, One(&SECURITY_SCHEMES))], 10);

pub fn protobuf(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    DOCUMENT.write(&mut out, document);
    out
}

impl Document<'_> {
    pub fn protobuf(&self) -> Vec<u8> {
        let mut out = Vec::new();
        text(&mut out, 1, "3.0.0");
        nested(&mut out, 2, |out| INFO.write(out, &self.info()));
        nested(&mut out, 4, |out| self.paths().for_each(|(path, item)| named(out, 1, path, &PATH_ITEM, &item)));
        nested(&mut out, 5, |out| {
            nested(out, 1, |out| {
                self.schemas().for_each(|(name, schema)| named(out, 1, name, &SCHEMA_OR_REFERENCE, &schema));
            });
            nested(out, 7, |out| SECURITY_SCHEMES.write(out, &Document::security_schemes()));
        });
        out
    }
}
