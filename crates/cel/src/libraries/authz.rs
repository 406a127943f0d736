//! Asking the server's authorizer.

use super::{AUTHORIZER, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK, Run, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{AuthorizerHandle, AuthzRequest, Decision, DecisionVal, EvalError, Opaque, Res, ResourceCheck, Val};
use kubelith_meta::names::{self, NameUse};
use kubelith_meta::user::User;
use std::sync::Arc;

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

pub fn run(id: &str) -> Option<Run> {
    Some(match id {
        "authorizer_path" => Run::Binary(|a, path| {
            let of = authorizer(a)?;
            let path = text(path)?;
            if path.trim().is_empty() {
                return Err(EvalError::fixed("path must not be empty"));
            }
            Ok(Val::opaque(Opaque::PathCheck(of.clone(), path.into())))
        }),
        "authorizer_group" => {
            Run::Binary(|a, group| Ok(Val::opaque(Opaque::GroupCheck(authorizer(a)?.clone(), text(group)?.into()))))
        }
        "authorizer_serviceaccount" => Run::Many(|a| service_account(authorizer(&a[0])?, text(&a[1])?, text(&a[2])?)),
        "groupcheck_resource" => Run::Binary(group_resource),
        "resourcecheck_subresource" => Run::Binary(|c, x| with(c, x, |c| &mut c.subresource)),
        "resourcecheck_namespace" => Run::Binary(|c, x| with(c, x, |c| &mut c.namespace)),
        "resourcecheck_name" => Run::Binary(|c, x| with(c, x, |c| &mut c.name)),
        "authorizer_fieldselector" => Run::Binary(|c, x| with(c, x, |c| &mut c.field_selector)),
        "authorizer_labelselector" => Run::Binary(|c, x| with(c, x, |c| &mut c.label_selector)),
        "pathcheck_check" | "resourcecheck_check" => Run::Binary(check),
        "decision_errored" => Run::Unary(|d| Ok(Val::Bool(decision(d)?.error.is_some()))),
        "decision_error" => Run::Unary(|d| Ok(Val::text(decision(d)?.error.as_deref().unwrap_or_default()))),
        "decision_allowed" => Run::Unary(|d| Ok(Val::Bool(decision(d)?.decision == Decision::Allow))),
        "decision_reason" => Run::Unary(|d| Ok(Val::text(decision(d)?.reason.as_str()))),
        _ => return None,
    })
}

fn authorizer<'v>(val: &'v Val<'_>) -> Result<&'v AuthorizerHandle, EvalError> {
    match val.as_opaque() {
        Some(Opaque::Authorizer(of)) => Ok(of),
        _ => Err(EvalError::no_overload()),
    }
}

fn decision<'v>(val: &'v Val<'_>) -> Result<&'v DecisionVal, EvalError> {
    match val.as_opaque() {
        Some(Opaque::Decision(decision)) => Ok(decision),
        _ => Err(EvalError::no_overload()),
    }
}

fn service_account<'a>(of: &AuthorizerHandle, namespace: &str, name: &str) -> Res<'a> {
    if !names::name_is_dns_subdomain(name, NameUse::Full).is_empty() {
        return Err(EvalError::fixed("Invalid service account name"));
    }
    if !names::name_is_dns_label(namespace, NameUse::Full).is_empty() {
        return Err(EvalError::fixed("Invalid service account namespace"));
    }
    let groups =
        ["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}"), "system:authenticated".into()];
    let user = User::named(format!("system:serviceaccount:{namespace}:{name}")).with_groups(&groups);
    Ok(Val::opaque(Opaque::Authorizer(AuthorizerHandle { authorizer: of.authorizer.clone(), user: Arc::new(user) })))
}

fn group_resource<'a>(check: &Val<'a>, resource: &Val<'a>) -> Res<'a> {
    let Some(Opaque::GroupCheck(of, group)) = check.as_opaque() else { return Err(EvalError::no_overload()) };
    let resource = text(resource)?;
    if resource.trim().is_empty() {
        return Err(EvalError::fixed("resource must not be empty"));
    }
    Ok(Val::opaque(Opaque::ResourceCheck(ResourceCheck::new(of.clone(), group, resource))))
}

fn with<'a>(check: &Val<'a>, value: &Val<'a>, field: impl Fn(&mut ResourceCheck) -> &mut String) -> Res<'a> {
    let Some(Opaque::ResourceCheck(check)) = check.as_opaque() else { return Err(EvalError::no_overload()) };
    let mut check = check.clone();
    *field(&mut check) = text(value)?.into();
    Ok(Val::opaque(Opaque::ResourceCheck(check)))
}

fn check<'a>(check: &Val<'a>, verb: &Val<'a>) -> Res<'a> {
    let verb = text(verb)?;
    let (of, request) = match check.as_opaque() {
        Some(Opaque::PathCheck(of, path)) => (of, AuthzRequest::Path { path, verb }),
        Some(Opaque::ResourceCheck(check)) => (&check.of, AuthzRequest::Resource { check, verb }),
        _ => return Err(EvalError::no_overload()),
    };
    Ok(Val::opaque(Opaque::Decision(of.authorizer.authorize(&of.user, request))))
}
