//! Rules for definitions themselves.

use crate::definition::Definition;

/// Why the schema is not structural; `None` if it is.
pub fn non_structural(definition: Definition<'_>) -> Option<String> {
    definition.preserves_unknown().then(|| "spec.preserveUnknownFields: Invalid value: true: must be false".to_owned())
}
