//! `--allow-privileged` is the operator's word on privileged containers; without it they are refused.

use crate::support::Server;

const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},
    "spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
    "spec":{"containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}}}}"#;

#[test]
fn privileged_containers_need_a_flag() {
    for (flags, code) in [(&[][..], 422), (&["--allow-privileged"][..], 201)] {
        let server = Server::start(flags);
        let answer = server.post("/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT).unwrap();
        let body = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, code, "{flags:?}: {body}");
        let why =
            "spec.template.spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy";
        assert_eq!(body.contains(why), code == 422, "{flags:?}: {body}");
    }
}
