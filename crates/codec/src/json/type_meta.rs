//! The first look at a body: what kind does it say it is?

use super::lexer::{AFTER_MEMBER, Lexer, Token};
use crate::error::{DecodeError, TypeError};
use kubelith_meta::{GroupVersion, GroupVersionKind, Str};

/// `apiVersion` and `kind` as an object carries them; either may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeMeta {
    pub api_version: Str,
    pub kind: Str,
}

impl TypeMeta {
    /// Fills what is missing from `default`, by the reference's rules: a kind of its own, a version only if the
    /// object names no group, or the same group. An error if `apiVersion` has more than one slash.
    pub fn with_defaults(&self, default: &GroupVersionKind) -> Result<GroupVersionKind, DecodeError> {
        let gv = self.group_version()?;
        let mut gvk = gv.with_kind(self.kind.clone());
        if gvk.kind.is_empty() {
            gvk.kind = default.kind.clone();
        }
        if gvk.version.is_empty() && gvk.group.is_empty() {
            gvk.group = default.group.clone();
            gvk.version = default.version.clone();
        }
        if gvk.version.is_empty() && gvk.group == default.group {
            gvk.version = default.version.clone();
        }
        Ok(gvk)
    }

    pub fn group_version(&self) -> Result<GroupVersion, DecodeError> {
        if self.api_version.is_empty() || self.api_version == "/" {
            return Ok(GroupVersion::default());
        }
        GroupVersion::parse(&self.api_version)
            .ok_or_else(|| DecodeError::malformed(format!("unexpected GroupVersion string: {}", self.api_version)))
    }
}

/// Reads `apiVersion` and `kind` of a JSON object and checks the syntax of the rest. Errors carry the
/// reference's prefix for this step.
pub fn type_meta(data: &[u8]) -> Result<TypeMeta, DecodeError> {
    read(data).map_err(|e| DecodeError::Malformed(format!("couldn't get version/kind; json parse error: {e}")))
}

fn read(data: &[u8]) -> Result<TypeMeta, DecodeError> {
    let mut lexer = Lexer::new(data);
    let mut meta = TypeMeta::default();
    let mut wrong = None;
    match lexer.value(0)? {
        Token::Null => {}
        Token::BeginObject => {
            if !lexer.empty_object()? {
                loop {
                    // The one place where the reference ignores case: it uses Go's own decoder here.
                    let key = lexer.key()?;
                    if key.eq_ignore_ascii_case("apiVersion") {
                        string(&mut lexer, &mut meta.api_version, "apiVersion", &mut wrong)?;
                    } else if key.eq_ignore_ascii_case("kind") {
                        string(&mut lexer, &mut meta.kind, "kind", &mut wrong)?;
                    } else {
                        lexer.skip_value(1)?;
                    }
                    if !lexer.more(b'}', AFTER_MEMBER)? {
                        break;
                    }
                }
            }
        }
        other => {
            let found = other.kind();
            if matches!(other, Token::BeginArray) {
                // Syntax errors further on come first.
                super::validate(data)?;
            }
            wrong = Some(TypeError {
                found: found.into(),
                expected: r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#
                    .into(),
                in_struct: String::new(),
                field: String::new(),
            });
            if matches!(other, Token::BeginArray) {
                return Err(DecodeError::Type(Box::new(wrong.expect("just set"))));
            }
        }
    }
    lexer.end()?;
    match wrong {
        Some(e) => Err(DecodeError::Type(Box::new(e))),
        None => Ok(meta),
    }
}

fn string(
    lexer: &mut Lexer<'_>,
    into: &mut Str,
    field: &str,
    wrong: &mut Option<TypeError>,
) -> Result<(), DecodeError> {
    let start = lexer.clone();
    match lexer.value(1)? {
        Token::String(s) => *into = Str::from(s),
        Token::Null => {}
        other => {
            if matches!(other, Token::BeginArray | Token::BeginObject) {
                *lexer = start;
                lexer.skip_value(1)?;
            }
            wrong.get_or_insert_with(|| TypeError {
                found: other.kind().into(),
                expected: "string".into(),
                in_struct: String::new(),
                field: field.into(),
            });
        }
    }
    Ok(())
}
