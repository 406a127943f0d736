//! What tests ask for through HTTP (`--enable-test-api`): everything of `kubelith-testing` that other languages can use.
//!
//! | request below /kubelith/v1 | does |
//! |---|---|
//! | `GET, POST snapshots`, `DELETE snapshots/ID` | lists, takes, forgets the state |
//! | `POST reset {"snapshot": ID}` | puts a state back |
//! | `POST fork {"snapshot": ID}` | starts another server with that state, or the present one, on a port of its own |
//! | `GET forks`, `DELETE forks/ID` | lists them, ends one |
//! | `GET, POST, DELETE faults`, `GET, DELETE faults/ID` | scripted answers (`kubelith_server::faults`) |
//! | `GET, POST clock {"advance": "1h"}` or `{"now": "2026-…"}` | tells and turns the time |

use crate::plane::{Plane, Seed, Snapshot};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use kubelith_auth::user::GROUP_MASTERS;
use kubelith_codec::json;
use kubelith_http::{Reply, Request, Response, respond};
use kubelith_meta::text::Quoted;
use kubelith_meta::time::{Duration, Time};
use kubelith_meta::{GroupResource, Status, Value};
use kubelith_server::faults::{Fault, Faults};
use kubelith_server::routes::{Listing, Routes};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const ROOT: &str = "/kubelith/v1/";
/// Of a request.
const MAX_BODY: usize = 1 << 20;
/// At a time; more is a test run that forgets them.
const MAX_FORKS: usize = 1_000;
const MAX_SNAPSHOTS: usize = 1_000;

pub struct TestApi {
    seed: Seed,
    faults: Arc<Faults>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    next: u64,
    snapshots: BTreeMap<u64, Snapshot>,
    /// They end with this server.
    forks: BTreeMap<u64, (SocketAddr, Plane)>,
}

type Outcome = Result<(StatusCode, Value), Status>;

impl TestApi {
    pub fn new(seed: Seed, faults: Arc<Faults>) -> Arc<TestApi> {
        Arc::new(TestApi { seed, faults, kept: Mutex::default() })
    }

    pub fn install(self: Arc<Self>, routes: &mut Routes) {
        let handler = move |request: Request| {
            let this = self.clone();
            Reply::pending(async move { this.serve(request).await })
        };
        routes.prefix(ROOT, Listing::Unlisted, Arc::new(handler));
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, request: Request) -> Response {
        match self.answer(request).await {
            Ok((code, value)) => respond::json(code, [&json::to_vec(&value)[..], b"\n"].concat()),
            Err(status) => respond::status_json(&status),
        }
    }

    async fn answer(&self, request: Request) -> Outcome {
        self.check_user(&request)?;
        let is_master = request.user().is_some_and(|user| user.in_group(GROUP_MASTERS));
        let method = request.method().clone();
        let path = request.info().path[ROOT.len()..].trim_end_matches('/').to_owned();
        let body = body(request).await?;
        let parts: Vec<&str> = path.split('/').collect();
        match (&method, parts.as_slice()) {
            (&Method::GET, ["snapshots"]) => Ok((StatusCode::OK, self.list_snapshots())),
            (&Method::POST, ["snapshots"]) => self.take_snapshot().await,
            (&Method::DELETE, ["snapshots", id]) => {
                found("snapshots", id, self.kept().snapshots.remove(&number(id)).is_some())
            }
            (&Method::POST, ["reset"]) => self.reset(body.str_at(&["snapshot"])).await,
            (&Method::POST, ["snapshots", id, "reset"]) => self.reset(id).await,
            (&Method::POST, ["fork"]) => self.fork(body.str_at(&["snapshot"]), is_master).await,
            (&Method::POST, ["snapshots", id, "fork"]) => self.fork(id, is_master).await,
            (&Method::GET, ["forks"]) => Ok((StatusCode::OK, self.list_forks())),
            (&Method::DELETE, ["forks", id]) => {
                let gone = self.kept().forks.remove(&number(id));
                found("forks", id, gone.is_some())
            }
            (&Method::GET, ["faults"]) => {
                Ok((StatusCode::OK, items(self.faults.list().iter().map(|fault| fault.to_value()))))
            }
            (&Method::POST, ["faults"]) => self.add_fault(&body),
            (&Method::DELETE, ["faults"]) => {
                self.faults.clear();
                done()
            }
            (&Method::GET, ["faults", id]) => {
                let fault = self.faults.list().into_iter().find(|fault| fault.id == number(id));
                fault.map(|fault| (StatusCode::OK, fault.to_value())).ok_or_else(|| unknown("faults", id))
            }
            (&Method::DELETE, ["faults", id]) => found("faults", id, self.faults.remove(number(id))),
            (&Method::GET, ["clock"]) => Ok((StatusCode::OK, time(self.seed.now()))),
            (&Method::POST, ["clock"]) => self.turn(&body),
            (_, ["snapshots" | "reset" | "fork" | "forks" | "faults" | "clock", ..]) => {
                Err(Status::method_not_supported(&GroupResource::new("", parts[0]), method.as_str()))
            }
            _ => Err(unknown("paths", &path)),
        }
    }

    /// Authorization has been asked. Where it lets everybody do everything, this is still for administrators.
    fn check_user(&self, request: &Request) -> Result<(), Status> {
        let is_master = request.user().is_some_and(|user| user.in_group(GROUP_MASTERS));
        if is_master || !self.seed.options.authorization.allows_always() {
            return Ok(());
        }
        let name = request.user().map_or("", |user| user.name.as_str());
        let (verb, path) = (&request.info().verb, &request.info().path);
        let why = format!("User {} cannot {verb} path {}", Quoted(name), Quoted(path));
        Err(Status::forbidden(&GroupResource::default(), "", why))
    }

    fn list_snapshots(&self) -> Value {
        items(self.kept().snapshots.iter().map(|(id, snapshot)| shown(*id, snapshot)))
    }

    async fn take_snapshot(&self) -> Outcome {
        let snapshot = self.seed.snapshot().await.map_err(Status::bad_request)?;
        let mut kept = self.kept();
        if kept.snapshots.len() >= MAX_SNAPSHOTS {
            return Err(Status::bad_request(format!("there are {MAX_SNAPSHOTS} snapshots already")));
        }
        let id = kept.id();
        let value = shown(id, &snapshot);
        kept.snapshots.insert(id, snapshot);
        Ok((StatusCode::CREATED, value))
    }

    fn snapshot(&self, id: &str) -> Result<Snapshot, Status> {
        self.kept().snapshots.get(&number(id)).cloned().ok_or_else(|| unknown("snapshots", id))
    }

    async fn reset(&self, id: &str) -> Outcome {
        let snapshot = self.snapshot(id)?;
        self.seed.reset(&snapshot).await.map_err(Status::bad_request)?;
        done()
    }

    async fn fork(&self, id: &str, is_master: bool) -> Outcome {
        let snapshot = match id {
            "" => self.seed.snapshot().await.map_err(Status::bad_request)?,
            id => self.snapshot(id)?,
        };
        if self.kept().forks.len() >= MAX_FORKS {
            return Err(Status::bad_request(format!("there are {MAX_FORKS} forks already")));
        }
        let plane = self.seed.fork(snapshot).await.map_err(Status::internal_error)?;
        let address = plane.listen((Ipv4Addr::LOCALHOST, 0).into()).map_err(Status::internal_error)?;
        let (server, ca) = (format!("https://{address}"), plane.authority().map_err(Status::internal_error)?);
        // Users come in with what they have. Only to whom it gives nothing more the administrator's certificate is given.
        let kubeconfig = match is_master {
            true => plane.kubeconfig(address).map_err(Status::internal_error)?.unwrap_or_default(),
            false => String::new(),
        };
        plane.ready().await.map_err(Status::internal_error)?;
        let mut kept = self.kept();
        let id = kept.id();
        kept.forks.insert(id, (address, plane));
        let id = id.to_string();
        let value = Value::from([
            ("id", Value::from(id.as_str())),
            ("server", server.as_str().into()),
            ("certificateAuthority", ca.as_str().into()),
            ("kubeconfig", kubeconfig.as_str().into()),
        ]);
        Ok((StatusCode::CREATED, value))
    }

    fn list_forks(&self) -> Value {
        let shown = |(id, (address, _)): (&u64, &(SocketAddr, Plane))| {
            let (id, server) = (id.to_string(), format!("https://{address}"));
            Value::from([("id", id.as_str()), ("server", server.as_str())])
        };
        items(self.kept().forks.iter().map(shown))
    }

    fn add_fault(&self, body: &Value) -> Outcome {
        let fault = Fault::from_value(body).map_err(Status::bad_request)?;
        let id = self.faults.add(fault)?;
        let added = self.faults.list().into_iter().find(|fault| fault.id == id);
        Ok((StatusCode::CREATED, added.map(|fault| fault.to_value()).unwrap_or_default()))
    }

    fn turn(&self, body: &Value) -> Outcome {
        let now = match (body.get("advance"), body.get("now")) {
            (Some(by), None) => {
                let text = by.as_str().unwrap_or_default();
                let by =
                    Duration::parse(text).map_err(|_| Status::bad_request("advance: must be a duration as 1h30m"))?;
                self.seed.advance(by)
            }
            (None, Some(now)) => {
                let now = Time::parse(now.as_str().unwrap_or_default());
                self.seed.set_time(now.map_err(|_| Status::bad_request("now: must be a time (RFC 3339)"))?)
            }
            _ => return Err(Status::bad_request("one of advance and now is needed")),
        };
        Ok((StatusCode::OK, time(now.map_err(Status::bad_request)?)))
    }
}

impl Kept {
    fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

async fn body(request: Request) -> Result<Value, Status> {
    let body = Limited::new(request.into_body(), MAX_BODY).collect().await;
    let body = body.map_err(|why| Status::bad_request(why.to_string()))?.to_bytes();
    if body.is_empty() {
        return Ok(Value::object());
    }
    json::parse(&body).map_err(|why| Status::bad_request(why.to_string()))
}

/// Ids are numbers that nobody has to know to be such; what is none is nobody's.
fn number(id: &str) -> u64 {
    id.parse().unwrap_or(0)
}

fn shown(id: u64, snapshot: &Snapshot) -> Value {
    Value::from([("id", Value::from(id.to_string().as_str())), ("revision", snapshot.revision().into())])
}

fn items(items: impl Iterator<Item = Value>) -> Value {
    Value::from([("items", Value::from(items.collect::<Vec<_>>()))])
}

fn time(now: Time) -> Value {
    Value::from([("now", now.rfc3339().as_str())])
}

fn done() -> Outcome {
    Ok((StatusCode::OK, Value::object()))
}

fn found(kind: &str, id: &str, is_there: bool) -> Outcome {
    if is_there { done() } else { Err(unknown(kind, id)) }
}

fn unknown(kind: &str, id: &str) -> Status {
    Status::not_found(&GroupResource::new("kubelith", kind), id)
}
