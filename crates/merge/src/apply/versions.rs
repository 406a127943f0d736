//! The versions of a kind, as far as ownership needs them. Each manager owns fields in the version it wrote in.

use super::UpdateError;
use crate::typed::{Duplicates, Type};
use kubelith_meta::Value;
use std::borrow::Cow;

/// Types of a kind by version, and conversion between them. Versions are `apiVersion`s: `v1`, `apps/v1`.
pub trait Versions {
    /// The type of the kind in a version that is served. `None` otherwise: what is owned in such a version is forgotten.
    fn type_in(&self, version: &str) -> Option<Type<'_>>;

    /// Whether objects are decoded by their type before they come here. What is stored fits it then, and the type is the program's own:
    /// it is there, and the same, for as long as anything is remembered of its objects.
    fn are_decoded_by_type(&self) -> bool {
        false
    }

    /// `object`, which is in another version, in `version`.
    fn convert(&self, object: &Value, version: &str) -> Result<Value, ConvertError>;
}

/// Why an object cannot be had in a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConvertError {
    /// There is no such version.
    MissingVersion,
    Failed(String),
}

/// `object` in `to`; `None` if there is no such version.
pub(super) fn in_version<'o>(
    versions: &dyn Versions,
    object: &'o Value,
    from: &str,
    to: &str,
) -> Result<Option<Cow<'o, Value>>, UpdateError> {
    if from == to {
        return Ok(Some(Cow::Borrowed(object)));
    }
    let Some(ty) = versions.type_in(to) else { return Ok(None) };
    match versions.convert(object, to) {
        Ok(converted) => {
            ty.validate(&converted, Duplicates::Refused).map_err(|e| UpdateError::Failed(e.to_string()))?;
            Ok(Some(Cow::Owned(converted)))
        }
        Err(ConvertError::MissingVersion) => Ok(None),
        Err(ConvertError::Failed(why)) => Err(UpdateError::Failed(why)),
    }
}
