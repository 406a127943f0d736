//! Who gets in and who may what, tried on the real program over its socket: every kind of credential, the servers that
//! it asks (also when they hang, fail or lie), the audit log, and attacks that must be refused.

mod attacks;
mod audit;
mod authority;
mod authorization;
mod catalogue;
mod certificates;
mod cves;
mod effects;
mod egress;
mod floods;
mod images;
mod issuer;
mod placement;
mod plugins;
mod raw;
mod rbac;
mod service_accounts;
mod stub;
mod tokens;

use crate::support::{Server, TOKEN};
use raw::Answer;

/// The token of alice, a user of the group devs without rights.
const ALICE: &str = "alicetoken";

/// A server that knows alice.
fn server(flags: &[&str]) -> (Server, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, format!("{TOKEN},admin,u,\"system:masters\"\n{ALICE},alice,a,devs\n")).unwrap();
    let tokens = format!("--token-auth-file={}", tokens.display());
    let mut all = vec![tokens.as_str()];
    all.extend(flags);
    (Server::start(&all), dir)
}

/// What the tests say to a server.
impl Server {
    fn as_admin(&self, method: &str, path: &str, body: &str) -> Answer {
        raw::send(self.address(), None, method, path, &[bearer(TOKEN)], body)
    }

    fn with_token(&self, token: &str, method: &str, path: &str) -> Answer {
        raw::send(self.address(), None, method, path, &[bearer(token)], "")
    }

    /// Whom the server takes the sender of these headers for: the name and the groups, or the code of the refusal.
    fn who(&self, headers: &[(String, String)]) -> Result<String, u16> {
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let mut headers = headers.to_vec();
        headers.push(("content-type".into(), "application/json".into()));
        let answer = raw::send(self.address(), None, "POST", path, &headers, "{}");
        whose(&answer)
    }

    fn who_has(&self, token: &str) -> Result<String, u16> {
        self.who(&[bearer(token)])
    }
}

/// Name and groups in a SelfSubjectReview.
fn whose(answer: &Answer) -> Result<String, u16> {
    if answer.status != 201 {
        return Err(answer.status);
    }
    let info = &answer.json()["status"]["userInfo"];
    let groups = info["groups"].as_array().map_or(&[][..], Vec::as_slice);
    let groups: Vec<&str> = groups.iter().filter_map(|g| g.as_str()).collect();
    Ok(format!("{} {}", info["username"].as_str().unwrap_or(""), groups.join(",")))
}

fn bearer(token: &str) -> (String, String) {
    ("authorization".into(), format!("Bearer {token}"))
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

/// What needs no flags of its own shares a server. The order matters: some of it gives alice rights.
#[test]
fn with_the_usual_flags() {
    let (server, _dir) = server(&["--runtime-config=api/all=true"]);
    catalogue::nobody_gets_anywhere_without_rights(&server);
    attacks::paths_lead_nowhere_else(&server);
    attacks::verbs_are_what_the_method_says(&server);
    attacks::nobody_becomes_more_than_they_may(&server);
    attacks::sizes_have_limits_and_the_server_goes_on(&server);
    rbac::a_change_counts_with_the_next_request(&server);
    rbac::nodes_see_what_their_pods_need(&server);
    rbac::claims_tell_what_is_forbidden_and_what_is_wrong(&server);
}
