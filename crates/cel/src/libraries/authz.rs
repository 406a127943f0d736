//! Asking the server's authorizer.

use super::{AUTHORIZER, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK, member, of};
use crate::decl::Function;
use crate::types::Type;

const AUTHZ: Type = Type::Named(AUTHORIZER);
const PATH: Type = Type::Named(PATH_CHECK);
const GROUP: Type = Type::Named(GROUP_CHECK);
const RESOURCE: Type = Type::Named(RESOURCE_CHECK);
const ANSWER: Type = Type::Named(DECISION);

pub fn functions() -> Vec<Function> {
    use Type::{Bool, String};
    vec![
        of("path", [member("authorizer_path", [AUTHZ, String], PATH)]),
        of("group", [member("authorizer_group", [AUTHZ, String], GROUP)]),
        of("serviceAccount", [member("authorizer_serviceaccount", [AUTHZ, String, String], AUTHZ)]),
        of("resource", [member("groupcheck_resource", [GROUP, String], RESOURCE)]),
        of("subresource", [member("resourcecheck_subresource", [RESOURCE, String], RESOURCE)]),
        of("namespace", [member("resourcecheck_namespace", [RESOURCE, String], RESOURCE)]),
        of("name", [member("resourcecheck_name", [RESOURCE, String], RESOURCE)]),
        of(
            "check",
            [
                member("pathcheck_check", [PATH, String], ANSWER),
                member("resourcecheck_check", [RESOURCE, String], ANSWER),
            ],
        ),
        of("errored", [member("decision_errored", [ANSWER], Bool)]),
        of("error", [member("decision_error", [ANSWER], String)]),
        of("allowed", [member("decision_allowed", [ANSWER], Bool)]),
        of("reason", [member("decision_reason", [ANSWER], String)]),
    ]
}

pub fn selector_functions() -> Vec<Function> {
    let with = |name, id| of(name, [member(id, [RESOURCE, Type::String], RESOURCE)]);
    vec![with("fieldSelector", "authorizer_fieldselector"), with("labelSelector", "authorizer_labelselector")]
}
