//! The messages of `openapi.v2`, as far as our document has use for them.

use super::Form::{Double, Flag, Integer, Many, One, Text, Texts};
use super::{Message, named, nested, text};
use crate::v2::Document;
use Message::{Any, Boxed, Chosen, Fields, Named, OrFlag, OrReference};

static INFO: Message = Fields(&[("title", 1, Text), ("version", 2, Text), ("description", 3, Text)], 7);

static PATH_ITEM: Message = Fields(
    &[
        ("get", 2, One(&OPERATION)),
        ("put", 3, One(&OPERATION)),
        ("post", 4, One(&OPERATION)),
        ("delete", 5, One(&OPERATION)),
        ("options", 6, One(&OPERATION)),
        ("head", 7, One(&OPERATION)),
        ("patch", 8, One(&OPERATION)),
        ("parameters", 9, Many(&OrReference(&PARAMETER))),
    ],
    10,
);

static OPERATION: Message = Fields(
    &[
        ("tags", 1, Texts),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, Texts),
        ("consumes", 7, Texts),
        ("parameters", 8, Many(&OrReference(&PARAMETER))),
        ("responses", 9, One(&Named(1, &OrReference(&RESPONSE)))),
        ("schemes", 10, Texts),
        ("deprecated", 11, Flag),
    ],
    13,
);

static PARAMETER: Message = Chosen(|parameter| match parameter.str_at(&["in"]) {
    "body" => (1, &BODY_PARAMETER),
    _ => (2, &OTHER_PARAMETER),
});

static BODY_PARAMETER: Message = Fields(
    &[("description", 1, Text), ("name", 2, Text), ("in", 3, Text), ("required", 4, Flag), ("schema", 5, One(&SCHEMA))],
    6,
);

static OTHER_PARAMETER: Message = Chosen(|parameter| match parameter.str_at(&["in"]) {
    "path" => (4, &PATH_PARAMETER),
    _ => (3, &QUERY_PARAMETER),
});

static QUERY_PARAMETER: Message = Fields(
    &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 6, Text),
        ("uniqueItems", 20, Flag),
    ],
    23,
);

static PATH_PARAMETER: Message = Fields(
    &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("uniqueItems", 19, Flag),
    ],
    22,
);

static RESPONSE: Message = Fields(&[("description", 1, Text), ("schema", 2, One(&Chosen(|_| (1, &SCHEMA))))], 5);

static SCHEMA: Message = Fields(
    &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, One(&Any)),
        ("multipleOf", 6, Double),
        ("maximum", 7, Double),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Double),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, Texts),
        ("enum", 20, Many(&Any)),
        ("additionalProperties", 21, One(&OrFlag(&SCHEMA))),
        ("type", 22, One(&Boxed(Texts))),
        ("items", 23, One(&Boxed(Many(&SCHEMA)))),
        ("allOf", 24, Many(&SCHEMA)),
        ("properties", 25, One(&Named(1, &SCHEMA))),
        ("example", 30, One(&Any)),
    ],
    31,
);

static REQUIREMENT: Message = Named(1, &Boxed(Texts));

static SECURITY_DEFINITIONS: Message = Named(1, &Chosen(|_| (2, &API_KEY)));

static API_KEY: Message = Fields(&[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)], 5);

impl Document<'_> {
    pub fn protobuf(&self) -> Vec<u8> {
        let mut out = Vec::new();
        text(&mut out, 1, "2.0");
        nested(&mut out, 2, |out| INFO.write(out, &self.info()));
        nested(&mut out, 8, |out| self.paths().for_each(|(path, item)| named(out, 2, path, &PATH_ITEM, &item)));
        nested(&mut out, 9, |out| self.definitions().for_each(|(name, schema)| named(out, 1, name, &SCHEMA, &schema)));
        nested(&mut out, 10, |out| self.parameters().for_each(|(name, p)| named(out, 1, name, &PARAMETER, &p)));
        for requirement in Document::security().as_array().into_iter().flatten() {
            nested(&mut out, 12, |out| REQUIREMENT.write(out, requirement));
        }
        nested(&mut out, 13, |out| SECURITY_DEFINITIONS.write(out, &Document::security_definitions()));
        out
    }
}
