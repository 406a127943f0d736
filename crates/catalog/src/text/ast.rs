//! One text as it was read, names not yet resolved.

use super::scan::Place;
use crate::api::Api;
use kubelith_meta::{Str, Value};
use kubelith_schema::{Column, ListKind, Omit, PatchHint, Scope, SelectableField, Union, Unselectable};

#[derive(Debug, Default)]
pub struct File {
    /// What other files call it: `core.v1`.
    pub stem: String,
    /// `None` for a file that has types only.
    pub api: Option<Api>,
    pub models: Str,
    pub resources: Vec<ResourceText>,
    pub types: Vec<TypeText>,
    pub enums: Vec<EnumText>,
    pub aliases: Vec<AliasText>,
}

#[derive(Debug)]
pub struct EnumText {
    pub name: String,
    pub values: Vec<Str>,
}

/// A kind of this group version that is a type of another file.
#[derive(Debug)]
pub struct AliasText {
    pub place: Place,
    pub kind: Str,
    pub target: String,
}

#[derive(Debug)]
pub struct TypeText {
    pub place: Place,
    pub name: String,
    pub reach: Reach,
    /// Has apiVersion and kind.
    pub has_type_meta: bool,
    pub has_proto: bool,
    pub atomic: bool,
    pub members: Vec<Member>,
    pub unions: Vec<Union>,
}

/// Where a type is a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Nowhere: only a part of others.
    Part,
    /// In its own group version.
    Own,
    /// In every group version.
    Everywhere,
}

#[derive(Debug)]
pub enum Member {
    Field(FieldText),
    /// JSON has the other type's fields among the own ones, protobuf has them as a message.
    Inline {
        place: Place,
        number: Option<u32>,
        target: String,
    },
}

#[derive(Debug)]
pub struct FieldText {
    pub place: Place,
    pub number: Option<u32>,
    pub name: Str,
    pub shape: ShapeText,
    pub required: bool,
    pub omit: Omit,
    pub default: Option<Value>,
    pub default_hidden: bool,
    pub list: Option<ListKind>,
    pub atomic: bool,
    pub granular: bool,
    pub patch: Option<PatchHint>,
    /// What Go calls the type, if that is not what the text calls it.
    pub go: Option<Str>,
}

#[derive(Debug, PartialEq)]
pub enum ShapeText {
    Pointer(Box<ShapeText>),
    List(Box<ShapeText>),
    Map(Box<ShapeText>),
    Boxed(Box<ShapeText>),
    Name(String),
}

#[derive(Debug)]
pub struct ResourceText {
    pub place: Place,
    pub plural: Str,
    pub kind: Str,
    pub scope: Scope,
    pub singular: Option<Str>,
    pub short_names: Vec<Str>,
    pub categories: Vec<Str>,
    pub verbs: Vec<Str>,
    pub gate: Option<Str>,
    pub subresources: Vec<SubresourceText>,
    pub store: Option<StoreText>,
    pub columns: Vec<Column>,
    pub selectable: Vec<SelectableField>,
    pub unselectable: Unselectable,
    pub deprecation: Option<DeprecationText>,
    /// The minor release that brought it.
    pub since: Option<u32>,
}

#[derive(Debug)]
pub struct SubresourceText {
    pub place: Place,
    pub name: Str,
    /// `None`: the parent's kind.
    pub kind: Option<String>,
    pub verbs: Vec<Str>,
    pub accepted: Vec<String>,
}

#[derive(Debug)]
pub struct StoreText {
    pub place: Place,
    pub prefix: Str,
    /// Another version of the group, or the stem of another group's file.
    pub version: Option<String>,
    pub json: bool,
    /// Before this minor release, another version.
    pub before: Option<(u32, Str)>,
}

#[derive(Debug)]
pub struct DeprecationText {
    pub since: Str,
    pub removed: Option<Str>,
    pub replacement: Option<Str>,
}
