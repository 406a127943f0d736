//! AlwaysPullImages: who runs a pod must be able to pull its images, even if the node has them.

use super::list;
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::text::aggregate;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::{Operation, Request};

const ALWAYS: &str = "Always";
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

#[derive(Debug, Clone, Copy)]
pub struct AlwaysPullImages;

impl Plugin for AlwaysPullImages {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> Verdict<'a> {
        if !applies(request, pod) {
            return Verdict::Idle;
        }
        for kind in CONTAINERS {
            for container in pod.at_mut(&["spec", kind]).and_then(Value::as_array_mut).into_iter().flatten() {
                container.set_at(&["imagePullPolicy"], ALWAYS.into());
            }
        }
        let volumes = pod.at_mut(&["spec", "volumes"]).and_then(Value::as_array_mut);
        for volume in volumes.into_iter().flatten().filter(|volume| volume.get("image").is_some()) {
            volume.set_at(&["image", "pullPolicy"], ALWAYS.into());
        }
        Verdict::PASSED
    }

    fn validate<'a>(&'a self, request: Request<'a>, pod: &'a Value) -> Verdict<'a> {
        if !applies(request, pod) {
            return Verdict::Idle;
        }
        let mut wrong = Vec::new();
        let mut check = |policy: &str, path: String| {
            if policy != ALWAYS {
                wrong.push(format!("{path}: Unsupported value: {policy:?}: supported values: \"{ALWAYS}\""));
            }
        };
        for kind in CONTAINERS {
            for (i, container) in list(pod, &["spec", kind]).iter().enumerate() {
                check(container.str_at(&["imagePullPolicy"]), format!("spec.{kind}[{i}].imagePullPolicy"));
            }
        }
        for (i, volume) in list(pod, &["spec", "volumes"]).iter().enumerate() {
            if volume.get("image").is_some() {
                check(volume.str_at(&["image", "pullPolicy"]), format!("spec.volumes[{i}].image.pullPolicy"));
            }
        }
        // Several refusals become an error without a code of its own.
        let refused: Vec<Status> = wrong.into_iter().map(|why| request.forbidden(pod, why)).collect();
        Verdict::Ready(match refused.is_empty() {
            true => Ok(()),
            false => Err(Status::unknown(aggregate(refused.into_iter().map(|status| status.message)).to_string())),
        })
    }
}

/// Pods that are new, or bring images that they did not have.
fn applies(request: Request<'_>, pod: &Value) -> bool {
    if !request.is_for("", "pods") {
        return false;
    }
    let Some(old) = request.old.filter(|_| request.operation == Operation::Update) else { return true };
    let had = |image: &str| images(old).any(|known| known == image);
    images(pod).any(|image| !had(image))
}

fn images(pod: &Value) -> impl Iterator<Item = &str> {
    CONTAINERS.into_iter().flat_map(|kind| list(pod, &["spec", kind])).map(|container| container.str_at(&["image"]))
}
