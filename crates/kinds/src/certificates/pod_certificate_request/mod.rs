//! PodCertificateRequests.

pub mod validate;

use kubelith_meta::Value;
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, Row};
use kubelith_rules::sealed::sealed;
use kubelith_schema::lifecycle::Part;

/// Updates of /status leave metadata alone, though the fields that cannot be changed by way of the status are owned by whoever
/// tries.
pub const POD_CERTIFICATE_REQUEST: Kind = Kind {
    reset_fields: |part| match part {
        Part::Status => &[&["spec"]],
        Part::Main | Part::Other(_) => &[],
    },
    ..sealed(
        Kind {
            group: "certificates.k8s.io",
            plural: "podcertificaterequests",
            rules: validate::RULES,
            cells: CELLS,
            ..Kind::PLAIN
        }
        .guarded(),
    )
};

pub const CELLS: Cells = &[("pod_certificate_state", pod_certificate_state)];

/// The last of the conditions decides; they exclude each other.
fn pod_certificate_state(row: &Row<'_>) -> Option<Value> {
    let mut kinds = row.conditions().iter().map(|c| c.str_at(&["type"]));
    Some(kinds.rfind(|kind| matches!(*kind, "Issued" | "Denied" | "Failed")).unwrap_or("Pending").into())
}
