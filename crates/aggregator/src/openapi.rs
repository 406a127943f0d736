//! OpenAPI of extension servers: their part of the document of version 2 is joined with ours; their documents of version 3
//! are listed with ours, and asked for at the server that has them. A server that has none gets one made of its document
//! of version 2.

use crate::api_service::{ApiService, ApiServices, ServiceReference, group_version_of};
use crate::resolve::Resolver;
use crate::routes::{Backend, Routes, Transports};
use http::header::ETAG;
use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};
use kubelith_auth::User;
use kubelith_codec::json;
use kubelith_meta::{GroupVersion, Map, Str, Value};
use kubelith_openapi::{Foreign, OpenApi};
use kubelith_outbound::proxy::{Fetched, Target};
use kubelith_server::controller::Next;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How often documents are looked at again.
pub const REFRESH: Duration = Duration::from_secs(60);
/// For one document.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Of one document: a server with every built-in API has a sixth of it.
const MAX_BYTES: usize = 32 * 1024 * 1024;

pub struct OpenApiAggregation {
    pub api_services: ApiServices,
    pub routes: Arc<Routes>,
    pub resolver: Arc<Resolver>,
    pub transports: Arc<Transports>,
    pub openapi: Arc<OpenApi>,
    pub state: Mutex<OpenApiState>,
}

#[derive(Default)]
pub struct OpenApiState {
    /// Parts of version 2 by APIService.
    parts: HashMap<Str, Part>,
    /// Documents of version 3: URLs by path, by APIService.
    listed: BTreeMap<Str, BTreeMap<String, String>>,
    /// APIServices whose document of version 3 we make, with the tag of what it is made of.
    upgraded: HashMap<Str, Option<HeaderValue>>,
}

struct Part {
    group: Str,
    group_priority: i32,
    version_priority: i32,
    etag: Option<HeaderValue>,
    /// `None` while the server has not answered yet.
    content: Option<Arc<Foreign>>,
}

impl OpenApiAggregation {
    fn state(&self) -> MutexGuard<'_, OpenApiState> {
        self.state.lock().expect("no panic under this lock")
    }

    fn remote(&self, name: &str) -> Option<(Arc<ApiService>, ServiceReference)> {
        let api_service = self.api_services.get(name)?;
        let service = api_service.service.clone()?;
        Some((api_service, service))
    }

    pub async fn reconcile_v2(self: Arc<Self>, name: Str) -> Result<Next, String> {
        let Some((api_service, service)) = self.remote(&name) else {
            let mut state = self.state();
            if state.parts.remove(&name).is_some_and(|part| part.content.is_some()) {
                self.join(&state);
            }
            return Ok(Next::Done);
        };
        let etag = self.state().parts.get(&name).and_then(|part| part.etag.clone());
        let answer = self.get("/openapi/v2", &api_service, &service, etag.as_ref()).await?;
        let content = match answer.status {
            StatusCode::NOT_MODIFIED => return Ok(Next::Done),
            // A server without OpenAPI has none to join.
            StatusCode::NOT_FOUND => None,
            StatusCode::OK => {
                let gv = api_service.gv.clone();
                let body = answer.body.clone();
                let part = tokio::task::spawn_blocking(move || part_of(&gv, &body)).await;
                Some(part.map_err(|e| e.to_string())??)
            }
            other => return Err(format!("failed to retrieve openAPI spec, http error: {}", other.as_u16())),
        };
        let mut state = self.state();
        let same = state.parts.get(&name).is_some_and(|known| known.content == content);
        let part = Part {
            group: api_service.gv.group.clone(),
            group_priority: api_service.group_priority,
            version_priority: api_service.version_priority,
            etag: answer.headers.get(ETAG).cloned(),
            content,
        };
        state.parts.insert(name, part);
        if !same {
            self.join(&state);
        }
        Ok(Next::Done)
    }

    /// Under the lock, so that no older state follows a newer one.
    fn join(&self, state: &OpenApiState) {
        let priority = |group: &Str| state.parts.values().filter(|p| p.group == *group).map(|p| p.group_priority).max();
        let mut parts: Vec<(&Str, &Part)> = state.parts.iter().collect();
        parts.sort_by_key(|(name, p)| (Reverse(priority(&p.group)), &p.group, Reverse(p.version_priority), *name));
        self.openapi.join(parts.into_iter().filter_map(|(_, part)| part.content.clone()).collect());
    }

    pub async fn reconcile_v3(self: Arc<Self>, name: Str) -> Result<Next, String> {
        let Some((api_service, service)) = self.remote(&name) else {
            self.list(&name, BTreeMap::new());
            self.forget_upgraded(&name);
            return Ok(Next::Done);
        };
        let answer = self.get("/openapi/v3", &api_service, &service, None).await?;
        match answer.status {
            StatusCode::OK => {
                self.list(&name, urls_of(&api_service.gv, &answer.body)?);
                self.forget_upgraded(&name);
            }
            StatusCode::NOT_FOUND => {
                self.list(&name, BTreeMap::new());
                self.upgrade(name, &api_service, &service).await?;
            }
            _ => return Err("Error, could not get list of group versions for APIService".to_owned()),
        }
        Ok(Next::Done)
    }

    /// Makes a document of version 3 of the one that the server has.
    async fn upgrade(&self, name: Str, api_service: &ApiService, service: &ServiceReference) -> Result<(), String> {
        let etag = self.state().upgraded.get(&name).cloned().flatten();
        let answer = self.get("/openapi/v2", api_service, service, etag.as_ref()).await?;
        match answer.status {
            StatusCode::NOT_MODIFIED => {}
            StatusCode::NOT_FOUND => self.forget_upgraded(&name),
            StatusCode::OK => {
                let (openapi, path, body) = (self.openapi.clone(), path_of(&name), answer.body.clone());
                let made = tokio::task::spawn_blocking(move || {
                    let document = json::parse(&body).map_err(|e| e.to_string())?;
                    openapi.put_upgraded(&path, &document);
                    Ok::<_, String>(())
                });
                made.await.map_err(|e| e.to_string())??;
                self.state().upgraded.insert(name, answer.headers.get(ETAG).cloned());
            }
            other => return Err(format!("failed to retrieve openAPI spec, http error: {}", other.as_u16())),
        }
        Ok(())
    }

    fn forget_upgraded(&self, name: &Str) {
        if self.state().upgraded.remove(name).is_some() {
            self.openapi.remove_upgraded(&path_of(name));
        }
    }

    fn list(&self, name: &Str, urls: BTreeMap<String, String>) {
        let mut state = self.state();
        let changed = match urls.is_empty() {
            true => state.listed.remove(name).is_some(),
            false => state.listed.insert(name.clone(), urls.clone()).as_ref() != Some(&urls),
        };
        if changed {
            // Under the lock, so that no older state follows a newer one.
            let all = state.listed.values().flatten().map(|(path, url)| (path.clone(), url.clone()));
            self.openapi.list_foreign(all.collect());
        }
    }

    /// The server that has a document of version 3.
    pub fn backend(&self, path: &str) -> Option<Arc<Backend>> {
        let state = self.state();
        let (name, _) = state.listed.iter().find(|(_, urls)| urls.contains_key(path))?;
        self.routes.get(&group_version_of(name))
    }

    async fn get(
        &self,
        path: &'static str,
        api_service: &ApiService,
        service: &ServiceReference,
        etag: Option<&HeaderValue>,
    ) -> Result<Fetched, String> {
        let transport = self.transports.get(api_service, service)?;
        let authority = self.resolver.resolve(service).map_err(|e| e.to_string())?;
        let target = Target { authority, path_and_query: PathAndQuery::from_static(path) };
        let user = User::named("system:aggregator");
        let limits = (MAX_BYTES, TIMEOUT);
        transport.fetch(target, &user, "application/json", etag, limits).await.map_err(|e| e.to_string())
    }
}

/// Of the document of an APIService, below `/openapi/v3/`.
fn path_of(name: &str) -> String {
    let gv = group_version_of(name);
    format!("apis/{}/{}", gv.group, gv.version)
}

fn part_of(gv: &GroupVersion, body: &[u8]) -> Result<Arc<Foreign>, String> {
    let document = json::parse(body).map_err(|e| e.to_string())?;
    Ok(Arc::new(Foreign::below(&format!("/apis/{}/{}/", gv.group, gv.version), &document)))
}

/// The documents of this group and version that a server lists. It may list more, but has no say about what others serve.
fn urls_of(gv: &GroupVersion, body: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let document = json::parse(body).map_err(|e| e.to_string())?;
    let (group, version) = (format!("apis/{}", gv.group), format!("apis/{}/{}", gv.group, gv.version));
    let listed = document.get("paths").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let own = listed.filter(|(path, _)| *path == group || *path == version);
    let local = |url: &str| url.starts_with("/openapi/v3/");
    Ok(own
        .map(|(path, entry)| (path.to_owned(), entry.str_at(&["serverRelativeURL"]).to_owned()))
        .filter(|(_, url)| local(url))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_lists_only_its_own_documents() {
        let gv = GroupVersion::new("g.io", "v1");
        let body = br#"{"paths":{"apis/g.io/v1":{"serverRelativeURL":"/openapi/v3/apis/g.io/v1?hash=A"},
            "apis/g.io":{"serverRelativeURL":"https://elsewhere/"},
            "api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=B"}}}"#;
        let urls = urls_of(&gv, body).unwrap();
        assert_eq!(
            urls.into_iter().collect::<Vec<_>>(),
            [("apis/g.io/v1".to_owned(), "/openapi/v3/apis/g.io/v1?hash=A".to_owned())]
        );
        assert!(urls_of(&gv, b"<html>").is_err());
    }
}
