//! AlwaysAdmit and AlwaysDeny: for trying things out.

use crate::plugin::{Plugin, Verdict};
use kubelith_meta::Value;
use kubelith_registry::admission::Request;

#[derive(Debug, Clone, Copy)]
pub struct AlwaysAdmit;

impl Plugin for AlwaysAdmit {}

#[derive(Debug, Clone, Copy)]
pub struct AlwaysDeny;

const DENIED: &str = "admission control is denying all modifications";

impl Plugin for AlwaysDeny {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> Verdict<'a> {
        Verdict::Ready(Err(request.forbidden(object, DENIED)))
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> Verdict<'a> {
        Verdict::Ready(Err(request.forbidden(object, DENIED)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_meta::{GroupResource, GroupVersionKind, Str};
    use kubelith_registry::admission::Operation;
    use kubelith_registry::{Call, Mode, Warnings};

    #[test]
    fn whoever_denies_all_denies_all() {
        let call = Call {
            verb: "create".into(),
            user: Default::default(),
            resource: GroupResource::new("", "configmaps"),
            version: "v1".into(),
            kind: GroupVersionKind::new("", "v1", "ConfigMap"),
            namespace: "n".into(),
            name: "m".into(),
            subresource: Str::default(),
            mode: Mode::Real,
            deadline: None,
            warnings: Warnings::default(),
        };
        let request = Request::new(&call, Operation::Create);
        let object = Value::object();
        let Verdict::Ready(Err(status)) = AlwaysDeny.validate(request, &object) else { panic!("not denied") };
        let want = "configmaps \"m\" is forbidden: admission control is denying all modifications";
        assert_eq!((status.code, status.message.as_str()), (403, want));
        assert!(matches!(AlwaysAdmit.validate(request, &object), Verdict::Idle));
    }
}
