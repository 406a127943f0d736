//! Who answers a pod's request for a certificate must be allowed to sign in the name of the signer that it is for.

use futures::future::BoxFuture;
use kubelith_auth::{Attributes, Authorizer};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::text::Quoted;
use kubelith_meta::user::User;
use kubelith_meta::{Status, Str, Value};
use kubelith_registry::admission::{Admission, Operation, Request};
use std::sync::Arc;

/// Stands before everything that validates: the reference has it in its strategy.
pub struct SignerCheck {
    authorizer: Arc<dyn Authorizer>,
    inner: Arc<dyn Admission>,
}

/// `inner` with the check, if the resource is that of pods' requests.
pub fn guard(
    group: &str,
    plural: &str,
    authorizer: &Arc<dyn Authorizer>,
    inner: Arc<dyn Admission>,
) -> Arc<dyn Admission> {
    match (group, plural) {
        ("certificates.k8s.io", "podcertificaterequests") => {
            Arc::new(SignerCheck { authorizer: authorizer.clone(), inner })
        }
        _ => inner,
    }
}

impl SignerCheck {
    async fn may_sign(&self, user: &Arc<User>, signer: &str) -> bool {
        let domain = signer.split('/').next().unwrap_or_default();
        for name in [signer.to_owned(), format!("{domain}/*")] {
            let attributes = Attributes {
                user: user.clone(),
                verb: "sign".into(),
                group: "certificates.k8s.io".into(),
                version: "*".into(),
                resource: "signers".into(),
                name: Str::from(name),
                resource_request: true,
                ..Attributes::default()
            };
            if self.authorizer.authorize(&attributes).await.allowed() {
                return true;
            }
        }
        false
    }
}

impl Admission for SignerCheck {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        self.inner.admit(request, object)
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let changes = request.old.is_some_and(|old| old.get("status") != object.get("status"));
            if request.operation == Operation::Update && request.call.subresource == "status" && changes {
                let signer = object.str_at(&["spec", "signerName"]);
                let user = &request.call.user;
                if !self.may_sign(user, signer).await {
                    let (name, signer) = (Quoted(&user.name), Quoted(signer));
                    let detail = format!("User {name} is not permitted to \"sign\" for signer {signer}");
                    let error = Error::forbidden(&Path::of(&["spec", "signerName"]), detail);
                    let errors = ErrorList::from(error);
                    return Err(Status::invalid(&request.call.group_kind(), object.meta().name(), &errors));
                }
            }
            self.inner.validate(request, object).await
        })
    }
}
