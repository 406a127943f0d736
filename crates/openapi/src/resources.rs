//! The paths of a resource: each verb of a descriptor as an operation at its place.

use super::model::{Answer, Body, Content, Method, Operation, Parameter, PathItem, Paths, Place};
use super::names::{Scope, title, with_article};
use super::parameters::Parameters;
use super::{DeleteAnswer, Detail, Published, meta};
use kubelith_meta::{GroupVersion, GroupVersionKind, Str};
use kubelith_schema::{self as schema, Subresource, TypedSchema};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";

const UNAUTHORIZED: Answer = Answer { code: 401, description: "Unauthorized", content: None };

/// Adds the paths of one resource to those of its group version.
pub fn add(paths: &mut Paths, gv: &GroupVersion, resource: &Published, parameters: &Parameters<'_>) {
    let version = resource.version();
    let names = Names::new(gv, resource);
    let object = Target {
        kind: resource.descriptor.gvk(&version.name),
        model: Content::Model(resource.model()),
        subresource: None,
    };
    let mut builder = Builder { paths, names, resource, parameters, target: object };
    builder.add_verbs(&version.verbs);
    for subresource in &version.subresources {
        let own = subresource.schema.as_ref().and_then(TypedSchema::root_struct);
        // A brief description knows only the resource's own kind, whatever a subresource answers with.
        let kind = match resource.detail {
            Detail::Full => subresource.kind.clone(),
            Detail::Brief => resource.descriptor.gvk(&version.name),
        };
        builder.target = Target {
            kind,
            model: Content::Model(own.map_or_else(|| resource.model(), |s| s.name.clone())),
            subresource: Some(subresource.name.clone()),
        };
        if subresource.kind.kind.ends_with("Options") {
            builder.add_connect(subresource);
        } else {
            builder.add_subresource(subresource);
        }
    }
}

/// What an operation acts on: objects of the resource, or a subresource of them.
struct Target {
    kind: GroupVersionKind,
    model: Content,
    subresource: Option<Str>,
}

/// The parts that paths and names of operations are made of.
struct Names {
    scope: Scope,
    /// `/apis/apps/v1`
    root: String,
    plural: Str,
    kind: Str,
    namespaced: bool,
}

impl Names {
    fn new(gv: &GroupVersion, resource: &Published) -> Names {
        Names {
            scope: Scope::new(&gv.group, Some(&gv.version)),
            root: format!("/{}", super::path_of(gv)),
            plural: resource.descriptor.plural.clone(),
            kind: resource.descriptor.kind.clone(),
            namespaced: resource.descriptor.scope == schema::Scope::Namespaced,
        }
    }
}

/// Which of a resource's places an operation is at.
#[derive(Clone, Copy, PartialEq)]
enum At {
    /// `/api/v1/pods`
    AllNamespaces,
    /// `/api/v1/namespaces/{namespace}/pods`, `/api/v1/nodes`
    Collection,
    /// `…/{name}`, `…/{name}/status`
    Item,
    /// `…/{name}/proxy/{path}`
    Below,
}

struct Builder<'a> {
    paths: &'a mut Paths,
    names: Names,
    resource: &'a Published,
    parameters: &'a Parameters<'a>,
    target: Target,
}

impl Builder<'_> {
    fn add_verbs(&mut self, verbs: &[Str]) {
        let has = |verb: &str| verbs.iter().any(|v| v == verb);
        let watchable = has("watch") && self.resource.detail == Detail::Full;
        let everywhere = self.names.namespaced.then_some(At::AllNamespaces);
        if has("list") {
            for at in everywhere.into_iter().chain([At::Collection]) {
                self.list(at, watchable);
                if watchable {
                    self.watch_list(at);
                }
            }
        }
        if has("create") {
            self.create(At::Collection);
        }
        if has("deletecollection") {
            self.delete_collection();
        }
        if has("get") {
            self.read(None);
        }
        if has("update") {
            self.replace();
        }
        if has("patch") {
            self.patch();
        }
        if has("delete") {
            self.delete();
        }
        if watchable {
            self.watch();
        }
    }

    fn add_subresource(&mut self, subresource: &Subresource) {
        let has = |verb: &str| subresource.verbs.iter().any(|v| v == verb);
        if has("get") {
            // A kind `PodLogOptions` says that `log` is read with options of its own, and is no object but text.
            let model = self.resource.model();
            let package = model.strip_suffix(self.names.kind.as_str()).unwrap_or_default();
            let options = format!("{package}{}{}Options", self.names.kind, title(&subresource.name));
            self.read(self.parameters.knows(&options).then_some(options.as_str()));
        }
        if has("update") {
            self.replace();
        }
        if has("patch") {
            self.patch();
        }
        if has("create") {
            self.create(At::Item);
        }
    }

    /// Streams and proxies: any method that discovery names is passed on.
    fn add_connect(&mut self, subresource: &Subresource) {
        let has = |verb: &str| subresource.verbs.iter().any(|v| v == verb);
        // A proxy passes everything on, below any path, and discovery has no words for two of its methods.
        let proxies = has("update");
        let methods = [
            (Method::Get, has("get")),
            (Method::Put, proxies),
            (Method::Post, has("create")),
            (Method::Delete, has("delete")),
            (Method::Options, proxies),
            (Method::Head, proxies),
            (Method::Patch, has("patch")),
        ];
        for (method, _) in methods.into_iter().filter(|(_, served)| *served) {
            self.connect(method, At::Item);
            if proxies {
                self.connect(method, At::Below);
            }
        }
    }

    fn list(&mut self, at: At, watchable: bool) {
        let verbs = if watchable { "list or watch" } else { "list" };
        let description = format!("{verbs} objects of kind {}", self.names.kind);
        let mut operation = self.operation("list", "list", at, description);
        operation.produces.extend(self.resource.stream_media_types());
        self.take_options(&mut operation, meta::LIST_OPTIONS, &[]);
        let list = Content::Model(self.resource.list_model());
        self.put(Method::Get, at, operation.answers(200, "OK", list));
    }

    fn watch_list(&mut self, at: At) {
        let description = format!(
            "watch individual changes to a list of {}. deprecated: use the 'watch' parameter with a list operation \
             instead.",
            self.names.kind
        );
        self.watch_at(at, "watchlist", description);
    }

    fn watch(&mut self) {
        let description = format!(
            "watch changes to an object of kind {}. deprecated: use the 'watch' parameter with a list operation \
             instead, filtered to a single item with the 'fieldSelector' parameter.",
            self.names.kind
        );
        self.watch_at(At::Item, "watch", description);
    }

    fn watch_at(&mut self, at: At, action: &'static str, description: String) {
        let mut operation = self.operation("watch", action, at, description);
        if at != At::Item {
            // The name says what is watched before it says where.
            let all = operation.id.strip_suffix("ForAllNamespaces").map(str::len);
            operation.id.insert_str(all.unwrap_or(operation.id.len()), "List");
        }
        operation.produces.extend(self.resource.stream_media_types());
        self.take_options(&mut operation, meta::LIST_OPTIONS, &[]);
        let operation = operation.answers(200, "OK", Content::Model(meta::WATCH_EVENT.into()));
        let path = self.path(at).replacen(&self.names.root, &format!("{}/watch", self.names.root), 1);
        self.put_at(path, Method::Get, operation);
    }

    fn read(&mut self, options: Option<&str>) {
        let mut operation = self.operation("read", "get", At::Item, self.describe("read", "of the specified"));
        let answer = match options {
            Some(options) => {
                self.take_options(&mut operation, options, &[]);
                operation.produces.insert(0, "text/plain");
                Content::Text
            }
            None => self.target.model.clone(),
        };
        if self.resource.detail == Detail::Brief {
            self.take_options(&mut operation, meta::GET_OPTIONS, &[]);
        }
        self.put(Method::Get, At::Item, operation.answers(200, "OK", answer));
    }

    fn replace(&mut self) {
        let description = self.describe("replace", "of the specified");
        let mut operation = self.operation("replace", "put", At::Item, description);
        self.take_options(&mut operation, meta::UPDATE_OPTIONS, &[]);
        operation.body = Some(Body { content: self.target.model.clone(), required: true });
        let model = self.target.model.clone();
        let operation = operation.answers(200, "OK", model.clone()).answers(201, "Created", model);
        self.put(Method::Put, At::Item, operation);
    }

    fn patch(&mut self) {
        let description = self.describe("partially update", "of the specified");
        let mut operation = self.operation("patch", "patch", At::Item, description);
        self.take_options(&mut operation, meta::PATCH_OPTIONS, &[]);
        operation.consumes = match self.resource.detail {
            Detail::Full => vec![JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH],
            Detail::Brief => vec![JSON_PATCH, MERGE_PATCH, APPLY_PATCH],
        };
        operation.body = Some(Body { content: Content::Model(meta::PATCH.into()), required: true });
        let mut operation = operation.answers(200, "OK", self.target.model.clone());
        if self.resource.detail == Detail::Full {
            // An apply creates what is not there.
            operation = operation.answers(201, "Created", self.target.model.clone());
        }
        self.put(Method::Patch, At::Item, operation);
    }

    fn create(&mut self, at: At) {
        let noun = with_article(&self.names.kind);
        let description = match &self.target.subresource {
            Some(subresource) => format!("create {subresource} of {noun}"),
            None => format!("create {noun}"),
        };
        let mut operation = self.operation("create", "post", at, description);
        self.take_options(&mut operation, meta::CREATE_OPTIONS, &[]);
        operation.body = Some(Body { content: self.target.model.clone(), required: true });
        let model = || self.target.model.clone();
        let operation =
            operation.answers(200, "OK", model()).answers(201, "Created", model()).answers(202, "Accepted", model());
        self.put(Method::Post, at, operation);
    }

    fn delete(&mut self) {
        let description = format!("delete {}", with_article(&self.names.kind));
        let mut operation = self.operation("delete", "delete", At::Item, description);
        self.take_options(&mut operation, meta::DELETE_OPTIONS, &[]);
        operation.body = Some(Body { content: Content::Model(meta::DELETE_OPTIONS.into()), required: false });
        let answer = match self.resource.delete_answer {
            DeleteAnswer::Object => self.target.model.clone(),
            DeleteAnswer::Status => Content::Model(meta::STATUS.into()),
        };
        let operation = operation.answers(200, "OK", answer.clone()).answers(202, "Accepted", answer);
        self.put(Method::Delete, At::Item, operation);
    }

    fn delete_collection(&mut self) {
        let description = format!("delete collection of {}", self.names.kind);
        let mut operation = self.operation("deletecollection", "deletecollection", At::Collection, description);
        match self.resource.detail {
            Detail::Full => {
                self.take_options(&mut operation, meta::DELETE_OPTIONS, &[]);
                self.take_options(&mut operation, meta::LIST_OPTIONS, &["watch", "allowWatchBookmarks"]);
                operation.body = Some(Body { content: Content::Model(meta::DELETE_OPTIONS.into()), required: false });
            }
            Detail::Brief => self.take_options(&mut operation, meta::LIST_OPTIONS, &[]),
        }
        let status = Content::Model(meta::STATUS.into());
        self.put(Method::Delete, At::Collection, operation.answers(200, "OK", status));
    }

    fn connect(&mut self, method: Method, at: At) {
        let upper = method.name().to_uppercase();
        let subresource = self.target.subresource.as_deref().unwrap_or_default();
        let description = format!("connect {upper} requests to {subresource} of {}", self.names.kind);
        let verb = format!("connect{}", title(method.name()));
        let mut operation = self.operation(&verb, "connect", at, description);
        operation.parameters.retain(|p| p.name != "pretty");
        if let Content::Model(options) = self.target.model.clone() {
            self.take_options(&mut operation, &options, &[]);
        }
        operation.produces = vec!["*/*"];
        self.put(method, at, operation.answers(200, "OK", Content::Text));
    }

    /// `read the specified Pod`, `read status of the specified Pod`.
    fn describe(&self, verb: &str, of: &str) -> String {
        let kind = &self.names.kind;
        match &self.target.subresource {
            Some(subresource) => format!("{verb} {subresource} {of} {kind}"),
            None => format!("{verb} {} {kind}", of.trim_start_matches("of ")),
        }
    }

    /// An operation with its name and what the place asks for.
    fn operation(&self, verb: &str, action: &'static str, at: At, description: String) -> Operation {
        let names = &self.names;
        let namespaced = if names.namespaced && at != At::AllNamespaces { "Namespaced" } else { "" };
        let subresource = title(self.target.subresource.as_deref().unwrap_or_default());
        let suffix = match at {
            At::AllNamespaces => "ForAllNamespaces",
            At::Below => "WithPath",
            At::Collection | At::Item => "",
        };
        let mut operation = Operation {
            id: names.scope.operation_id(&format!("{verb}{namespaced}{}{subresource}{suffix}", names.kind)),
            tag: names.scope.tag.clone(),
            description,
            consumes: self.resource.consumes(),
            produces: self.resource.media_types(),
            action: Some((action, self.target.kind.clone())),
            ..Operation::default()
        };
        operation.parameters.insert(self.parameters.pretty());
        let mut path = |name: &'static str, description: String| {
            let (name, place) = (Str::const_new(name), Place::Path);
            operation.parameters.insert(Parameter { name, place, kind: "string", description });
        };
        if names.namespaced && at != At::AllNamespaces {
            path("namespace", "object name and auth scope, such as for teams and projects".to_owned());
        }
        if matches!(at, At::Item | At::Below) {
            path("name", format!("name of the {}", self.target.kind.kind));
        }
        if at == At::Below {
            path("path", "path to the resource".to_owned());
        }
        operation
    }

    fn take_options(&self, operation: &mut Operation, options: &str, except: &[&str]) {
        for parameter in self.parameters.of(options, except) {
            if !operation.parameters.iter().any(|p| p.name == parameter.name && p.place == parameter.place) {
                operation.parameters.insert(parameter);
            }
        }
    }

    fn path(&self, at: At) -> String {
        let Names { root, plural, namespaced, .. } = &self.names;
        let mut path = match (at, namespaced) {
            (At::AllNamespaces, _) | (_, false) => format!("{root}/{plural}"),
            (_, true) => format!("{root}/namespaces/{{namespace}}/{plural}"),
        };
        if matches!(at, At::Item | At::Below) {
            path.push_str("/{name}");
            if let Some(subresource) = &self.target.subresource {
                path.push('/');
                path.push_str(subresource);
            }
        }
        if at == At::Below {
            path.push_str("/{path}");
        }
        path
    }

    fn put(&mut self, method: Method, at: At, operation: Operation) {
        let path = self.path(at);
        self.put_at(path, method, operation);
    }

    fn put_at(&mut self, path: String, method: Method, mut operation: Operation) {
        operation.responses.push(UNAUTHORIZED);
        let item: &mut PathItem = self.paths.entry(path).or_default();
        item.operations.insert(method, operation);
    }
}
