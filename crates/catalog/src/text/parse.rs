//! Reads one text: the header, types, enums and aliases. Resources and fields have files of their own.

use super::ast::{AliasText, EnumText, File, Member, Reach, TypeText};
use super::fields::{member, union};
use super::resources::{resource, resource_line};
use super::scan::{Line, TextError};
use crate::api::{Api, Serve};
use kubelith_meta::{GroupVersion, Str};
use kubelith_schema::Omit;

/// Reads the text of `<stem>.api`.
pub fn parse(stem: &str, source: &str) -> Result<File, TextError> {
    let mut file = File { stem: stem.to_owned(), ..File::default() };
    let mut block = Block::None;
    for mut line in Line::all(stem, source) {
        if line.indented {
            match block {
                Block::None => return Err(line.error("this line is indented, but nothing stands above it")),
                Block::Type => type_line(file.types.last_mut().expect("the block is a type"), &mut line)?,
                Block::Resource => {
                    resource_line(file.resources.last_mut().expect("the block is a resource"), &mut line)?;
                }
            }
        } else {
            block = statement(&mut file, &mut line)?;
        }
        line.end()?;
    }
    Ok(file)
}

/// What the indented lines that follow belong to.
enum Block {
    None,
    Type,
    Resource,
}

fn statement(file: &mut File, line: &mut Line<'_>) -> Result<Block, TextError> {
    match line.word("a statement")? {
        "api" => file.api = Some(api(line)?),
        "models" => file.models = line.word("the prefix of OpenAPI names")?.into(),
        "serve" => header(file, line)?.serve = serve(line)?,
        "priority" => {
            let api = header(file, line)?;
            api.group_priority = line.number("the group's priority")?;
            api.version_priority = line.number("the version's priority")?;
        }
        "resource" => {
            file.resources.push(resource(line)?);
            return Ok(Block::Resource);
        }
        "enum" => {
            let name = line.word("the enum's name")?.to_owned();
            let values = line.words("a value")?.into_iter().map(Str::from).collect();
            file.enums.push(EnumText { name, values });
        }
        "same" => {
            let kind = line.word("the kind")?.into();
            let target = line.word("the type it is")?.to_owned();
            file.aliases.push(AliasText { place: line.place.clone(), kind, target });
        }
        "list" => file.types.push(list(line)?),
        word @ ("kind" | "type") => {
            file.types.push(type_head(word == "kind", line)?);
            return Ok(Block::Type);
        }
        word => return Err(line.error(format!("{word:?} begins no statement"))),
    }
    Ok(Block::None)
}

fn header<'f>(file: &'f mut File, line: &Line<'_>) -> Result<&'f mut Api, TextError> {
    file.api.as_mut().ok_or_else(|| line.error("this needs an `api` line above it"))
}

fn api(line: &mut Line<'_>) -> Result<Api, TextError> {
    let word = line.word("the group version")?;
    let gv = GroupVersion::parse(word).ok_or_else(|| line.error(format!("{word:?} is no group version")))?;
    Ok(Api { gv, serve: Serve::Never, group_priority: 0, version_priority: 0, models: Str::default() })
}

fn serve(line: &mut Line<'_>) -> Result<Serve, TextError> {
    match line.word("when it is served")? {
        "default" => Ok(Serve::Default),
        "request" => Ok(Serve::OnRequest),
        "never" => Ok(Serve::Never),
        word => Err(line.error(format!("{word:?} is not one of default, request, never"))),
    }
}

fn type_head(is_kind: bool, line: &mut Line<'_>) -> Result<TypeText, TextError> {
    let mut text = TypeText {
        place: line.place.clone(),
        name: line.word("the type's name")?.to_owned(),
        reach: if is_kind { Reach::Own } else { Reach::Part },
        has_type_meta: is_kind,
        has_proto: true,
        atomic: false,
        members: Vec::new(),
        unions: Vec::new(),
    };
    while !line.is_done() {
        match line.word("a word about the type")? {
            "noproto" => text.has_proto = false,
            "atomic" => text.atomic = true,
            "everywhere" => text.reach = Reach::Everywhere,
            "unversioned" => text.reach = Reach::Part,
            word => return Err(line.error(format!("{word:?} says nothing about a type"))),
        }
    }
    Ok(text)
}

fn type_line(text: &mut TypeText, line: &mut Line<'_>) -> Result<(), TextError> {
    if line.take("union") {
        text.unions.push(union(line)?);
    } else {
        text.members.push(member(line)?);
    }
    Ok(())
}

/// `list PodList of Pod`: metadata and items, as all lists have them.
fn list(line: &mut Line<'_>) -> Result<TypeText, TextError> {
    let mut text = type_head_of_list(line)?;
    if !line.take("of") {
        return Err(line.error("`of` and the type of the items are missing"));
    }
    let item = line.word("the type of the items")?;
    let place = &line.place;
    let mut metadata = super::fields::plain(place, 1, "metadata", "meta.v1.ListMeta");
    metadata.omit = Omit::Empty;
    let mut items = super::fields::plain(place, 2, "items", item);
    items.shape = super::ast::ShapeText::List(Box::new(items.shape));
    items.required = true;
    items.omit = Omit::Never;
    text.members = vec![Member::Field(metadata), Member::Field(items)];
    Ok(text)
}

fn type_head_of_list(line: &mut Line<'_>) -> Result<TypeText, TextError> {
    Ok(TypeText {
        place: line.place.clone(),
        name: line.word("the list's name")?.to_owned(),
        reach: Reach::Own,
        has_type_meta: true,
        has_proto: true,
        atomic: false,
        members: Vec::new(),
        unions: Vec::new(),
    })
}
