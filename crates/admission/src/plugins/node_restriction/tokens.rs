//! Tokens of service accounts: a node gets those of the pods on it, for the audiences that these ask for.

use super::{Checked, Visit};
use crate::plugins::list;
use kubelith_auth::Attributes;
use kubelith_meta::text::{Quoted, aggregate};
use kubelith_meta::{Str, Value};

/// Volumes from before CSI, and the drivers that serve them now.
const MIGRATED: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

impl Visit<'_> {
    pub(super) async fn token(&self) -> Checked {
        let reference = |field: &str| self.object.str_at(&["spec", "boundObjectRef", field]);
        let name = reference("name");
        if reference("apiVersion") != "v1" || reference("kind") != "Pod" || name.is_empty() {
            return self.refuse("node requested token not bound to a pod");
        }
        let uid = reference("uid");
        if uid.is_empty() {
            return self.refuse("node requested token with a pod binding without a uid");
        }
        let pod = self.find(("", "pods", "pod"), &self.request.call.namespace, name).await?;
        if uid != pod.meta().uid() {
            return self.refuse(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
                 deleted and then recreated"
            ));
        }
        if pod.str_at(&["spec", "nodeName"]) != self.node {
            return self.refuse("node requested token bound to a pod scheduled on a different node");
        }
        match self.plugin.gates.audience_restriction {
            true => self.audience(&pod).await,
            false => Ok(()),
        }
    }

    async fn audience(&self, pod: &Value) -> Checked {
        let audience = match list(self.object, &["spec", "audiences"]) {
            [] => "",
            [one] => one.as_str().unwrap_or_default(),
            _ => return self.refuse("node may only request 0 or 1 audiences"),
        };
        let shown = Quoted(audience);
        match self.is_used(pod, audience).await {
            Err(why) => return self.refuse(format!("error validating audience {shown}: {why}")),
            Ok(true) => return Ok(()),
            Ok(false) => {}
        }
        let call = self.request.call;
        let attributes = Attributes {
            user: call.user.clone(),
            verb: "request-serviceaccounts-token-audience".into(),
            namespace: call.namespace.clone(),
            version: "v1".into(),
            resource: Str::from(audience),
            name: call.name.clone(),
            resource_request: true,
            ..Attributes::default()
        };
        let decision = self.plugin.authorizer.authorize(&attributes).await;
        let user = &call.user.name;
        match decision.error {
            _ if decision.allowed() => Ok(()),
            Some(why) => self.refuse(format!(
                "audience {shown} not found in pod spec volume, error authorizing {user} to request tokens for this \
                 audience: {why}"
            )),
            None => self.refuse(format!(
                "audience {shown} not found in pod spec volume, {user} is not authorized to request tokens for this audience"
            )),
        }
    }

    /// Whether a volume of the pod needs tokens for the audience.
    async fn is_used(&self, pod: &Value, audience: &str) -> Result<bool, String> {
        let mut errors = Vec::new();
        for volume in list(pod, &["spec", "volumes"]) {
            let tokens = list(volume, &["projected", "sources"]).iter().filter_map(|s| s.get("serviceAccountToken"));
            if tokens.into_iter().any(|token| token.str_at(&["audience"]) == audience) {
                return Ok(true);
            }
            match self.driver_wants(pod, volume, audience).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(why) => errors.push(why),
            }
        }
        if errors.is_empty() { Ok(false) } else { Err(aggregate(errors).to_string()) }
    }

    async fn driver_wants(&self, pod: &Value, volume: &Value, audience: &str) -> Result<bool, String> {
        let driver = match claim_of(pod, volume) {
            Some(claim) => self.driver_of_claim(&claim).await?,
            None => driver_of(volume)?.map(Str::from),
        };
        let Some(driver) = driver.filter(|name| !name.is_empty()) else { return Ok(false) };
        let driver = self.find(("storage.k8s.io", "csidrivers", "csidriver"), "", &driver).await;
        let driver = driver.map_err(|why| why.message.to_string())?;
        Ok(list(&driver, &["spec", "tokenRequests"]).iter().any(|wanted| wanted.str_at(&["audience"]) == audience))
    }

    async fn driver_of_claim(&self, claim: &str) -> Result<Option<Str>, String> {
        const CLAIM: (&str, &str, &str) = ("", "persistentvolumeclaims", "persistentvolumeclaim");
        const VOLUME: (&str, &str, &str) = ("", "persistentvolumes", "persistentvolume");
        let claim = self.find(CLAIM, &self.request.call.namespace, claim).await;
        let claim = claim.map_err(|why| why.message.to_string())?;
        let volume = self.find(VOLUME, "", claim.str_at(&["spec", "volumeName"])).await;
        let volume = volume.map_err(|why| why.message.to_string())?;
        Ok(volume.get("spec").map(driver_of).transpose()?.flatten().map(Str::from))
    }
}

fn claim_of(pod: &Value, volume: &Value) -> Option<String> {
    if volume.at(&["ephemeral", "volumeClaimTemplate"]).is_some() {
        return Some(format!("{}-{}", pod.meta().name(), volume.str_at(&["name"])));
    }
    volume.get("persistentVolumeClaim").map(|claim| claim.str_at(&["claimName"]).to_owned())
}

/// The driver behind a source of a volume, in a pod or in a persistent volume; or why there can be none.
fn driver_of(source: &Value) -> Result<Option<&str>, String> {
    if let Some(csi) = source.get("csi") {
        return Ok(Some(csi.str_at(&["driver"])));
    }
    let kind = source.str_at(&["azureDisk", "kind"]);
    if !kind.is_empty() && !kind.eq_ignore_ascii_case("managed") {
        return Err(format!("kind({kind}) is not supported in csi migration"));
    }
    let disk = source.str_at(&["awsElasticBlockStore", "volumeID"]);
    if let Some((_, name)) = disk.strip_prefix("aws://").map(|rest| rest.split_once('/').unwrap_or((rest, "")))
        && !is_disk_of_aws(name.trim_matches('/'))
    {
        let why = format!("Invalid format for AWS volume ({disk})");
        return Err(format!("failed to translate Kubernetes ID to EBS Volume ID {why}"));
    }
    Ok(MIGRATED.iter().find(|(kind, _)| source.get(kind).is_some()).map(|(_, driver)| *driver))
}

fn is_disk_of_aws(name: &str) -> bool {
    name.strip_prefix("vol-").is_some_and(|rest| !rest.contains('/'))
}
