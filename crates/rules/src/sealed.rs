//! Kinds whose metadata cannot be changed by way of their status.

use crate::Kind;
use kubelith_meta::Value;
use kubelith_schema::lifecycle::Part;

/// Updates of /status leave metadata alone.
pub const fn sealed(mut kind: Kind) -> Kind {
    kind.prepare_for_update = |_, _, part, object, old| {
        if part == Part::Status {
            keep_metadata(object, old);
        }
    };
    kind.reset_fields = |part| match part {
        Part::Main => &[&["status"]],
        Part::Status => &[&["metadata"], &["spec"]],
        Part::Other(_) => &[],
    };
    kind
}

/// As [`sealed`], and not even the name of the object is looked at: all metadata is the stored object's, but for who owns
/// what in its status.
pub const fn status_only(kind: Kind) -> Kind {
    let mut kind = sealed(kind);
    kind.prepare_for_update = |_, _, part, object, old| {
        if part == Part::Status {
            let managed = object.remove_at(&["metadata", "managedFields"]);
            object.copy_at(&["metadata"], old);
            object.put_at(&["metadata", "managedFields"], managed);
        }
    };
    kind
}

pub fn keep_metadata(object: &mut Value, old: &Value) {
    let kept =
        ["deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"];
    for key in kept {
        object.copy_at(&["metadata", key], old);
    }
}
