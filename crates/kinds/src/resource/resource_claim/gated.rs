//! Fields of claims and their templates that belong to a feature gate.

use kubelith_rules::gated::{Feature, feature};

pub const CLAIM: &[Feature] = &[
    feature(&["DRAPrioritizedList"], &["spec.devices.requests[].firstAvailable"]),
    feature(&["DRAAdminAccess"], &["spec.devices.requests[].exactly.adminAccess"]),
    feature(
        &["DRADeviceTaints"],
        &["spec.devices.requests[].exactly.tolerations", "spec.devices.requests[].firstAvailable[].tolerations"],
    ),
    feature(
        &["DRAConsumableCapacity"],
        &[
            "spec.devices.requests[].exactly.capacity",
            "spec.devices.requests[].firstAvailable[].capacity",
            "spec.devices.constraints[].distinctAttribute",
        ],
    ),
    feature(&["DRAResourceClaimDeviceStatus"], &["status.devices"]),
    feature(&["DRAAdminAccess"], &["status.allocation.devices.results[].adminAccess"]),
    feature(
        &["DRAConsumableCapacity"],
        &[
            "status.allocation.devices.results[].shareID",
            "status.allocation.devices.results[].consumedCapacity",
            "status.devices[].shareID",
        ],
    ),
    feature(
        &["DRADeviceBindingConditions"],
        &[
            "status.allocation.devices.results[].bindingConditions",
            "status.allocation.devices.results[].bindingFailureConditions",
        ],
    ),
];

pub const TEMPLATE: &[Feature] = &[
    feature(&["DRAPrioritizedList"], &["spec.spec.devices.requests[].firstAvailable"]),
    feature(&["DRAAdminAccess"], &["spec.spec.devices.requests[].exactly.adminAccess"]),
    feature(
        &["DRADeviceTaints"],
        &[
            "spec.spec.devices.requests[].exactly.tolerations",
            "spec.spec.devices.requests[].firstAvailable[].tolerations",
        ],
    ),
    feature(
        &["DRAConsumableCapacity"],
        &[
            "spec.spec.devices.requests[].exactly.capacity",
            "spec.spec.devices.requests[].firstAvailable[].capacity",
            "spec.spec.devices.constraints[].distinctAttribute",
        ],
    ),
];
