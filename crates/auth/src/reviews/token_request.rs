//! TokenRequest: a token for a service account, perhaps bound to a pod, a node or a secret.

use super::strings;
use crate::objects::{Looked, ObjectGetter};
use crate::service_account::{BoundTo, NodeRef, TokenIssuer, TokenSpec};
use crate::traits::Notes;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::time::{Clock, Duration, Time};
use kubelith_meta::{GroupKind, GroupResource, GroupVersion, Status, Str, Value};
use std::sync::Arc;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;
/// Kubelets ask for this life when the token is one that old clients may not refresh.
pub const WARN_ONLY_SECONDS: i64 = 3607;

/// How tokens are given out.
pub struct TokenRequests {
    pub issuer: Arc<TokenIssuer>,
    pub objects: Arc<dyn ObjectGetter>,
    pub clock: Arc<dyn Clock>,
    /// The API's own audiences: the default, and those for which life is extended.
    pub api_audiences: Vec<Str>,
    /// `--service-account-max-token-expiration`; zero: no limit.
    pub max_expiration_seconds: i64,
    /// `--service-account-extend-token-expiration`: for how long; zero: off.
    pub extended_expiration_seconds: i64,
}

impl TokenRequests {
    /// Completes and checks a request for the account `namespace/name`; admission comes after it.
    pub async fn prepare(&self, mut request: Value, namespace: &str, name: &str) -> Result<Value, Status> {
        let kind = GroupKind { group: GROUP.into(), kind: KIND.into() };
        for (field, ours) in [("name", name), ("namespace", namespace)] {
            let sent = request.str_at(&["metadata", field]).to_string();
            if !sent.is_empty() && sent != ours {
                let detail = format!("must match the service account {field} if specified");
                let error = Error::invalid(&Path::of(&["metadata", field]), sent, detail);
                return Err(Status::invalid(&kind, name, &ErrorList(vec![error])));
            }
        }
        let account = self.find(Looked::ServiceAccount, namespace, name).await?;
        let uid = account.str_at(&["metadata", "uid"]);
        let sent_uid = request.str_at(&["metadata", "uid"]);
        if !sent_uid.is_empty() && sent_uid != uid {
            let why = format!(
                "the UID in the token request ({sent_uid}) does not match the UID of the service account ({uid})"
            );
            return Err(Status::conflict(&GroupResource::new(GROUP, KIND), name, why));
        }
        if strings(request.at(&["spec", "audiences"])).is_empty() {
            request.set_at(&["spec", "audiences"], self.api_audiences.clone().into());
        }
        request.set_at(&["metadata", "name"], name.into());
        request.set_at(&["metadata", "namespace"], namespace.into());
        request.set_at(&["metadata", "uid"], uid.into());
        let now = self.clock.now().rfc3339();
        request.set_at(&["metadata", "creationTimestamp"], now.into());
        request.remove_at(&["status"]);

        let errors = validate_expiration(expiration(&request));
        if errors.is_empty() { Ok(request) } else { Err(Status::invalid(&kind, "", &errors)) }
    }

    /// Makes the token: the request with its status.
    pub async fn issue(&self, mut request: Value) -> Result<(Value, Notes), Status> {
        let namespace = request.str_at(&["metadata", "namespace"]).to_string();
        let name = request.str_at(&["metadata", "name"]).to_string();
        let account = self.find(Looked::ServiceAccount, &namespace, &name).await?;
        let bound = self.bound_object(&request, &namespace, &name).await?;
        let mut notes = Notes::default();

        let asked = expiration(&request);
        let mut seconds = asked;
        if self.max_expiration_seconds > 0 && asked > self.max_expiration_seconds {
            seconds = self.max_expiration_seconds;
            notes.warnings.push(format!("requested expiration of {asked} seconds shortened to {seconds} seconds"));
            request.set_at(&["spec", "expirationSeconds"], seconds.into());
        }
        let audiences = strings(request.at(&["spec", "audiences"]));
        let extend = self.extended_expiration_seconds > 0
            && matches!(bound, Bound::Pod { .. })
            && seconds == WARN_ONLY_SECONDS
            && audiences.iter().all(|a| self.api_audiences.contains(a));
        let now = self.clock.now();
        let spec = TokenSpec {
            service_account: &account,
            bound_to: bound.as_claim(),
            audiences: &audiences,
            expiration_seconds: if extend { self.extended_expiration_seconds } else { seconds },
            warn_after_seconds: if extend { seconds } else { 0 },
            now,
        };
        let issued = self.issuer.issue(&spec).await;
        let issued = issued.map_err(|e| Status::internal_error(format!("failed to generate token: {e}")))?;
        notes.annotations.push(("authentication.kubernetes.io/issued-credential-id", format!("JTI={}", issued.id)));
        request.set_at(&["status", "token"], issued.token.into());
        request.set_at(&["status", "expirationTimestamp"], at(now, seconds).into());
        Ok((request, notes))
    }

    async fn bound_object(&self, request: &Value, namespace: &str, account: &str) -> Result<Bound, Status> {
        let Some(reference) = request.at(&["spec", "boundObjectRef"]).filter(|r| !r.is_null()) else {
            return Ok(Bound::Nothing);
        };
        let (kind, name) = (reference.str_at(&["kind"]), reference.str_at(&["name"]));
        let version = GroupVersion::parse(reference.str_at(&["apiVersion"])).unwrap_or_default();
        let bound = match (version.group.as_str(), kind) {
            ("", "Pod") => self.bound_pod(namespace, name, account).await?,
            ("", "Node") => Bound::Node(self.find(Looked::Node, "", name).await?),
            ("", "Secret") => Bound::Secret(self.find(Looked::Secret, namespace, name).await?),
            _ => {
                let kind = version.with_kind(kind);
                return Err(Status::bad_request(format!("cannot bind token to object of type {kind}")));
            }
        };
        let claimed = reference.str_at(&["uid"]);
        if !claimed.is_empty() && claimed != bound.uid() {
            let why = format!(
                "the UID in the bound object reference ({claimed}) does not match the UID in record. \
                 The object might have been deleted and then recreated"
            );
            return Err(Status::conflict(&GroupResource::new(version.group, kind), name, why));
        }
        Ok(bound)
    }

    async fn bound_pod(&self, namespace: &str, name: &str, account: &str) -> Result<Bound, Status> {
        let pod = self.find(Looked::Pod, namespace, name).await?;
        if pod.str_at(&["spec", "serviceAccountName"]) != account {
            let account = kubelith_meta::text::quote(account);
            return Err(Status::bad_request(format!(
                "cannot bind token for serviceaccount {account} to pod running with different serviceaccount name."
            )));
        }
        let node_name = pod.str_at(&["spec", "nodeName"]);
        let node = match node_name {
            "" => None,
            // A node that is gone is named all the same: the pod was there.
            name => {
                let node = self.objects.get(Looked::Node, "", name).await.map_err(Status::internal_error)?;
                Some(node.map(|n| n.str_at(&["metadata", "uid"]).to_string()).unwrap_or_default())
            }
        };
        Ok(Bound::Pod { node_uid: node, pod })
    }

    async fn find(&self, kind: Looked, namespace: &str, name: &str) -> Result<Arc<Value>, Status> {
        let found = self.objects.get(kind, namespace, name).await.map_err(Status::internal_error)?;
        found.ok_or_else(|| Status::not_found(&GroupResource::new("", kind.resource()), name))
    }
}

enum Bound {
    Nothing,
    Pod { pod: Arc<Value>, node_uid: Option<String> },
    Node(Arc<Value>),
    Secret(Arc<Value>),
}

impl Bound {
    fn uid(&self) -> &str {
        match self {
            Bound::Nothing => "",
            Bound::Pod { pod: object, .. } | Bound::Node(object) | Bound::Secret(object) => {
                object.str_at(&["metadata", "uid"])
            }
        }
    }

    fn as_claim(&self) -> BoundTo<'_> {
        match self {
            Bound::Nothing => BoundTo::Nothing,
            Bound::Pod { pod, node_uid } => {
                let name = pod.str_at(&["spec", "nodeName"]);
                BoundTo::Pod { pod, node: node_uid.as_deref().map(|uid| NodeRef { name, uid }) }
            }
            Bound::Node(node) => BoundTo::Node(node),
            Bound::Secret(secret) => BoundTo::Secret(secret),
        }
    }
}

fn expiration(request: &Value) -> i64 {
    request.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64).unwrap_or(0)
}

fn validate_expiration(seconds: i64) -> ErrorList {
    let path = Path::of(&["spec", "expirationSeconds"]);
    let mut errors = ErrorList::new();
    if seconds < MIN_SECONDS {
        errors.push(Error::invalid(&path, seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > MAX_SECONDS {
        errors.push(Error::invalid(&path, seconds, "may not specify a duration larger than 2^32 seconds"));
    }
    errors
}

fn at(now: Time, seconds: i64) -> String {
    (now + Duration::from_secs(seconds)).rfc3339()
}
