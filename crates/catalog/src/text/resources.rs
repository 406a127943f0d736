//! Reads the lines of a resource.

use super::ast::{DeprecationText, ResourceText, StoreText, SubresourceText};
use super::fields::literal;
use super::scan::{Line, TextError};
use kubelith_meta::{Str, Value};
use kubelith_schema::{Cell, Column, Scope, SelectableField, Unselectable};

/// `verbs all`.
const ALL_VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// `resource pods Pod namespaced`.
pub fn resource(line: &mut Line<'_>) -> Result<ResourceText, TextError> {
    Ok(ResourceText {
        place: line.place.clone(),
        plural: line.word("the plural")?.into(),
        kind: line.word("the kind")?.into(),
        scope: match line.word("the scope")? {
            "namespaced" => Scope::Namespaced,
            "cluster" => Scope::Cluster,
            word => return Err(line.error(format!("{word:?} is neither namespaced nor cluster"))),
        },
        singular: None,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Vec::new(),
        gate: None,
        subresources: Vec::new(),
        store: None,
        columns: Vec::new(),
        selectable: Vec::new(),
        unselectable: Unselectable::default(),
        deprecation: None,
        since: None,
    })
}

pub fn resource_line(text: &mut ResourceText, line: &mut Line<'_>) -> Result<(), TextError> {
    match line.word("a word about the resource")? {
        "singular" => text.singular = Some(line.word("the singular")?.into()),
        "short" => text.short_names = strings(line)?,
        "categories" => text.categories = strings(line)?,
        "verbs" if line.take("all") => text.verbs = ALL_VERBS.map(Str::from).to_vec(),
        "verbs" => text.verbs = strings(line)?,
        "gate" => text.gate = Some(line.word("the feature gate")?.into()),
        "sub" => text.subresources.push(subresource(line)?),
        "accepts" => {
            let name = line.word("the subresource")?;
            let kinds = line.words("a kind")?.into_iter().map(str::to_owned);
            let sub = text.subresources.iter_mut().find(|s| s.name == name);
            sub.ok_or_else(|| line.error(format!("there is no subresource {name:?} above")))?.accepted.extend(kinds);
        }
        "store" => text.store = Some(store(line)?),
        "select" => select(text, line)?,
        "since" => text.since = Some(minor(line)?),
        "deprecated" => text.deprecation = Some(deprecation(line)?),
        "column" => text.columns.push(column(line)?),
        word => return Err(line.error(format!("{word:?} says nothing about a resource"))),
    }
    Ok(())
}

fn strings(line: &mut Line<'_>) -> Result<Vec<Str>, TextError> {
    Ok(line.words("a word")?.into_iter().map(Str::from).collect())
}

/// `sub scale autoscaling.v1.Scale get patch update`; kinds begin with a capital or have a dot, verbs do not.
fn subresource(line: &mut Line<'_>) -> Result<SubresourceText, TextError> {
    let name = line.word("the subresource")?.into();
    let mut words = line.words("a verb")?;
    let is_kind = words[0].contains('.') || words[0].starts_with(|c: char| c.is_ascii_uppercase());
    let kind = is_kind.then(|| words.remove(0).to_owned());
    let verbs = words.into_iter().map(Str::from).collect();
    Ok(SubresourceText { place: line.place.clone(), name, kind, verbs, accepted: Vec::new() })
}

/// The minor of `1.34`.
fn minor(line: &mut Line<'_>) -> Result<u32, TextError> {
    let word = line.word("a release")?;
    let minor = word.strip_prefix("1.").and_then(|minor| minor.parse().ok());
    minor.ok_or_else(|| line.error(format!("{word:?} is no release")))
}

/// `store services/specs`, `store events as core.v1`, `store … as v1beta1 json`, `store … before 1.34 v1beta2`.
fn store(line: &mut Line<'_>) -> Result<StoreText, TextError> {
    let prefix = line.word("the key's prefix")?.into();
    let version = if line.take("as") { Some(line.word("a version")?.to_owned()) } else { None };
    let json = line.take("json");
    let before = if line.take("before") { Some((minor(line)?, line.word("a version")?.into())) } else { None };
    Ok(StoreText { place: line.place.clone(), prefix, version, json, before })
}

/// `select spec.nodeName`, `select spec.hostNetwork .spec.hostNetwork or false`, `select source .a else .b`,
/// `select status.podIPs none`, `select no metadata.namespace`, `select error "…"`.
fn select(text: &mut ResourceText, line: &mut Line<'_>) -> Result<(), TextError> {
    if line.take("error") {
        text.unselectable.message = line.word("the message")?.into();
        return Ok(());
    }
    if line.take("no") {
        text.unselectable.namespace = true;
        return match line.word("a label")? {
            "metadata.namespace" => Ok(()),
            word => Err(line.error(format!("{word:?} is not selectable anyway"))),
        };
    }
    let name = line.word("the label")?;
    let mut field =
        SelectableField { name: name.into(), path: format!(".{name}").into(), fallback: None, absent: Str::default() };
    if line.take("none") {
        field.path = Str::default();
    } else if !line.is_done() {
        field.path = line.word("the path")?.into();
    }
    if line.take("else") {
        field.fallback = Some(line.word("the second path")?.into());
    }
    if line.take("or") {
        field.absent = line.word("the value if absent")?.into();
    }
    text.selectable.push(field);
    Ok(())
}

/// `deprecated 1.35 removed 1.38 use discovery.k8s.io/v1 EndpointSlice`.
fn deprecation(line: &mut Line<'_>) -> Result<DeprecationText, TextError> {
    let since = line.word("a release")?.into();
    let removed = if line.take("removed") { Some(line.word("a release")?.into()) } else { None };
    let replacement = if line.take("use") { Some(line.rest().into()) } else { None };
    Ok(DeprecationText { since, removed, replacement })
}

/// `column "Node Selector" string wide labels(.spec.selector) or "<none>"`.
fn column(line: &mut Line<'_>) -> Result<Column, TextError> {
    let name = line.word("the column's name")?.into();
    let kind = line.word("the column's type")?;
    let (kind, format) = kind.split_once(':').unwrap_or((kind, ""));
    let priority = i32::from(line.take("wide"));
    let (cell, arguments) = cell(line)?;
    let absent = if line.take("or") { literal(line)? } else { absent(kind, &cell) };
    let (kind, format, description) = (kind.into(), format.into(), Str::default());
    Ok(Column { name, kind, format, description, priority, cell, arguments, absent })
}

/// `.spec.replicas` or `fraction(.status.readyReplicas, .spec.replicas)`.
fn cell(line: &mut Line<'_>) -> Result<(Cell, Vec<Str>), TextError> {
    let mut text = line.word("the cell's source")?.to_owned();
    if text.starts_with('.') {
        return Ok((Cell::Path(text.into()), Vec::new()));
    }
    while !text.ends_with(')') {
        text.push_str(line.word("the rest of the function")?);
    }
    let (name, arguments) =
        text.split_once('(').ok_or_else(|| line.error(format!("{text:?} is neither a path nor a function")))?;
    let arguments = arguments.trim_end_matches(')').split(',').filter(|a| !a.is_empty()).map(Str::from).collect();
    Ok((Cell::Function(name.into()), arguments))
}

/// What stands in a cell without a value, unless the text says otherwise.
fn absent(kind: &str, cell: &Cell) -> Value {
    match (kind, cell) {
        (_, Cell::Function(name)) if name == "age" => "<unknown>".into(),
        ("integer", _) => Value::Int(0),
        ("boolean", _) => Value::Bool(false),
        _ => "".into(),
    }
}
