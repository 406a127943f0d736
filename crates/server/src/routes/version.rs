//! `/version`: which release of the API this is, and which build.

use super::{Listing, Routes};
use crate::api::route_error;
use crate::filters::instrument::not_routed;
use crate::handlers::context::accept_of;
use crate::http::{BoxHandler, Reply, Request, Response};
use crate::respond;
use http::{Method, StatusCode};
use kubelith_codec::negotiate::route_accepts;
use kubelith_meta::Status;
use kubelith_meta::status::ForeignResponse;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionInfo {
    pub major: String,
    pub minor: String,
    /// The release that the server behaves as.
    pub emulation_major: String,
    pub emulation_minor: String,
    /// The oldest minor release whose features are kept compatible.
    pub min_compatibility_minor: String,
    /// A semantic version; what stands behind `+` names the build and orders nothing.
    pub git_version: String,
    pub git_commit: String,
    pub git_tree_state: String,
    pub build_date: String,
    pub compiler: String,
    pub platform: String,
}

impl VersionInfo {
    /// This project at the release of the API that it speaks.
    pub fn kubelith(commit: &str, tree_state: &str, build_date: &str) -> VersionInfo {
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        VersionInfo {
            major: "1".into(),
            minor: "36".into(),
            emulation_major: "1".into(),
            emulation_minor: "36".into(),
            min_compatibility_minor: "35".into(),
            git_version: "v1.36.4+kubelith".into(),
            git_commit: commit.into(),
            git_tree_state: tree_state.into(),
            build_date: build_date.into(),
            compiler: "rustc".into(),
            platform: format!("{}/{arch}", std::env::consts::OS),
        }
    }

    /// Members in the reference's order. There is no Go here, so its version is that of no toolchain.
    fn members(&self) -> [(&'static str, &str); 13] {
        [
            ("major", &self.major),
            ("minor", &self.minor),
            ("emulationMajor", &self.emulation_major),
            ("emulationMinor", &self.emulation_minor),
            ("minCompatibilityMajor", &self.major),
            ("minCompatibilityMinor", &self.min_compatibility_minor),
            ("gitVersion", &self.git_version),
            ("gitCommit", &self.git_commit),
            ("gitTreeState", &self.git_tree_state),
            ("buildDate", &self.build_date),
            ("goVersion", "none"),
            ("compiler", &self.compiler),
            ("platform", &self.platform),
        ]
    }

    /// Labels of the metric `kubernetes_build_info`.
    pub fn metric_labels(&self) -> [(&'static str, String); 9] {
        [
            ("major", self.major.clone()),
            ("minor", self.minor.clone()),
            ("git_version", self.git_version.clone()),
            ("git_commit", self.git_commit.clone()),
            ("git_tree_state", self.git_tree_state.clone()),
            ("build_date", self.build_date.clone()),
            ("go_version", "none".into()),
            ("compiler", self.compiler.clone()),
            ("platform", self.platform.clone()),
        ]
    }

    /// Without the `v` and what stands behind `+`.
    pub fn binary_version(&self) -> String {
        let version = self.git_version.trim_start_matches('v');
        version.split_once('+').map_or(version, |(version, _)| version).to_owned()
    }

    pub fn to_json(&self) -> String {
        let mut out = String::from("{");
        for (i, (name, value)) in self.members().into_iter().enumerate() {
            out.push_str(if i == 0 { "\n  \"" } else { ",\n  \"" });
            out.push_str(name);
            out.push_str("\": ");
            kubelith_meta::text::push_json_string(&mut out, value);
        }
        out.push_str("\n}");
        out
    }
}

/// `/version` and `/version/` with GET; below it nothing.
pub fn install(routes: &mut Routes, version: &VersionInfo) {
    let json: bytes::Bytes = version.to_json().into();
    let handler: BoxHandler = Arc::new(move |request: Request| -> Reply {
        let response = if request.info().path.trim_end_matches('/') != "/version" {
            refuse(404)
        } else if request.method() != Method::GET {
            refuse(405)
        } else if let Err(error) = route_accepts(&accept_of(request.headers()), &["application/json"]) {
            not_routed(respond::status(&request, &route_error(error)))
        } else {
            respond::json(StatusCode::OK, json.clone())
        };
        Reply::Ready(response)
    });
    routes.exact("/version", Listing::Listed, handler.clone());
    routes.prefix("/version/", Listing::Unlisted, handler);
}

fn refuse(code: u16) -> Response {
    not_routed(respond::status_json(&Status::from(ForeignResponse { code, ..ForeignResponse::default() })))
}
