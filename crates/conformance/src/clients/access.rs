//! kubectl's commands about identity and rights, and certificates.

use super::kubectl::Kubectl;
use super::process::eventually;
use super::{Check, Context, Outcome, ensure};

pub fn checks() -> Vec<Check> {
    vec![
        Check::new("access/whoami", whoami),
        Check::new("access/can-i", can_i),
        Check::new("access/reconcile", reconcile),
        Check::new("access/service-account-token", service_account_token),
        Check::new("access/certificates", certificates),
    ]
}

fn whoami(context: &Context) -> Outcome {
    let kubectl = Kubectl::plain(context);
    kubectl.says(&["auth", "whoami"], &["ATTRIBUTE", "Username", "system:masters"])?;
    kubectl.says(&["auth", "whoami", "--as=jane", "--as-group=readers"], &["jane", "readers", "system:authenticated"])
}

fn can_i(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-can-i")?;
    kubectl.says(&["auth", "can-i", "delete", "nodes"], &["yes"])?;
    kubectl.says(&["auth", "can-i", "--list"], &["*.*", "[*]"])?;
    let refused = kubectl.run(&["auth", "can-i", "delete", "nodes", "--as=jane"])?;
    ensure!(!refused.success && refused.stdout.contains("no"), "jane may delete nodes: {}", refused.stdout);
    kubectl.ok(&["create", "role", "reader", "--verb=list", "--resource=pods"])?;
    kubectl.ok(&["create", "rolebinding", "jane", "--role=reader", "--user=jane"])?;
    // Authorizers follow the bindings through a watch.
    eventually(|| kubectl.says(&["auth", "can-i", "list", "pods", "--as=jane"], &["yes"]))?;
    kubectl.ok(&["get", "pods", "--as=jane"])?;
    let message = "User \"jane\" cannot list resource \"secrets\" in API group \"\" in the namespace \"clients-can-i\"";
    kubectl.refuses(&["get", "secrets", "--as=jane"], &["(Forbidden)", message])?;
    kubectl.ok(&["delete", "rolebinding/jane", "role/reader"]).map(|_| ())
}

fn reconcile(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-reconcile")?;
    let role = |verbs: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: r, namespace: clients-reconcile}}\nrules:\n- {{apiGroups: [''], resources: [pods], verbs: [{verbs}]}}\n"
        )
    };
    kubectl.feed(&["auth", "reconcile", "-f", "-"], &role("get"))?;
    kubectl.feed(&["auth", "reconcile", "-f", "-"], &role("get, list"))?;
    ensure!(kubectl.field("role/r", "{.rules[*].verbs}")?.contains("list"), "the role has not grown");
    kubectl.ok(&["delete", "role", "r"]).map(|_| ())
}

fn service_account_token(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-token")?;
    let token = kubectl.ok(&["create", "token", "default"])?;
    let review =
        format!("apiVersion: authentication.k8s.io/v1\nkind: TokenReview\nspec: {{token: {}}}\n", token.trim());
    let answer = kubectl.feed(&["create", "-f", "-", "-o", "yaml"], &review)?;
    ensure!(answer.contains("authenticated: true"), "the token is not known:\n{answer}");
    ensure!(
        answer.contains("username: system:serviceaccount:clients-token:default"),
        "the token is someone else's:\n{answer}"
    );
    Ok(())
}

fn certificates(context: &Context) -> Outcome {
    let kubectl = Kubectl::plain(context);
    let manifest = context.fixture("manifests/certificatesigningrequests.yaml");
    let text = std::fs::read_to_string(&manifest).map_err(|error| error.to_string())?;
    for (verb, condition) in [("approve", "Approved"), ("deny", "Denied")] {
        let name = format!("to-{verb}");
        kubectl.feed(&["create", "-f", "-"], &text.replace("name: sample", &format!("name: {name}")))?;
        kubectl.ok(&["certificate", verb, &name])?;
        kubectl.has(&format!("csr/{name}"), "{.status.conditions[0].type}", condition)?;
        kubectl.says(&["get", "csr", &name], &["REQUESTOR", condition])?;
        kubectl.ok(&["delete", "csr", &name])?;
    }
    Ok(())
}
