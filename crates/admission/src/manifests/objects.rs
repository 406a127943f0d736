//! What manifests hold: objects of the kinds of a plugin, or lists of them, completed and validated as if they had been sent.

use super::{GROUP, Of};
use kubelith_catalog::builtin;
use kubelith_codec::json::{self, Strictness};
use kubelith_codec::{typed, yaml};
use kubelith_meta::text::{aggregate, quote};
use kubelith_meta::{GroupVersion, GroupVersionKind, Value};
use kubelith_registry::Objects;
use kubelith_rules::Env;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What names end with, and no other names do.
const SUFFIX: &str = ".static.k8s.io";
const VERSION: &str = "v1";

/// The kinds that a plugin takes.
pub struct Kinds {
    /// A configuration of webhooks, or a policy: kind and plural.
    main: (&'static str, &'static str),
    binding: Option<(&'static str, &'static str)>,
    /// The part of the reference that reads them, as it calls itself in errors.
    scheme: &'static str,
}

/// What objects are completed and validated with.
#[derive(Clone, Copy)]
struct Server<'a> {
    objects: &'a Objects,
    env: &'a Env,
}

#[derive(Debug, Default)]
pub struct Read {
    pub objects: Vec<Value>,
    pub bindings: Vec<Value>,
}

/// Names with the files that have them.
#[derive(Default)]
struct Names([HashMap<String, PathBuf>; 2]);

/// Which of the two a kind is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Main,
    Binding,
}

const WEBHOOKS: &str = "pkg/admission/plugin/webhook/manifest/loader/loader.go:41";
const POLICIES: &str = "pkg/admission/plugin/policy/manifest/loader/validating_loader.go:35";

impl Kinds {
    pub const fn of(of: Of) -> Kinds {
        let (main, binding, scheme) = match of {
            Of::ValidatingWebhooks => {
                (("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"), None, WEBHOOKS)
            }
            Of::MutatingWebhooks => (("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"), None, WEBHOOKS),
            Of::ValidatingPolicies => (
                ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
                Some(("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")),
                POLICIES,
            ),
            Of::MutatingPolicies => (
                ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
                Some(("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")),
                POLICIES,
            ),
        };
        Kinds { main, binding, scheme }
    }

    pub fn read(&self, documents: &[(PathBuf, String)], objects: &Objects, env: &Env) -> Result<Read, String> {
        let (mut read, mut names) = (Read::default(), Names::default());
        let server = Server { objects, env };
        for (path, text) in documents {
            let located = |why: String| format!("error loading {}: {why}", path.display());
            let document = yaml::read(text.as_bytes()).map_err(|e| located(e.to_string()))?;
            let repeated = document.strict_error();
            if let Some(repeated) = repeated {
                return Err(located(format!("strict decoding error: {repeated}")));
            }
            self.take(document.value, text, path, server, &mut names, &mut read).map_err(located)?;
        }
        let name = |object: &Value| object.meta().name().to_owned();
        let is_there = |binding: &&Value| {
            let policy = binding.str_at(&["spec", "policyName"]);
            read.objects.iter().any(|object| object.meta().name() == policy)
        };
        if let Some(lost) = read.bindings.iter().find(|binding| !is_there(binding)) {
            return Err(format!(
                "binding {} references policy {} which does not exist in the manifest directory",
                quote(lost.meta().name()),
                quote(lost.str_at(&["spec", "policyName"]))
            ));
        }
        read.objects.sort_by_key(name);
        read.bindings.sort_by_key(name);
        Ok(read)
    }

    fn role(&self, kind: &str) -> Option<(Role, &'static str)> {
        match self.binding {
            _ if kind == self.main.0 => Some((Role::Main, self.main.1)),
            Some((name, plural)) if kind == name => Some((Role::Binding, plural)),
            _ => None,
        }
    }

    fn take(
        &self,
        document: Value,
        text: &str,
        path: &Path,
        server: Server<'_>,
        names: &mut Names,
        read: &mut Read,
    ) -> Result<(), String> {
        let kind = self.kind_of(&document, text)?;
        if kind.kind == "List" {
            for item in document.get("items").and_then(Value::as_array).unwrap_or(&[]) {
                let shown = json::to_string(item);
                self.kind_of(item, &shown).map_err(|why| format!("failed to decode list item: {why}"))?;
                self.take(item.clone(), &shown, path, server, names, read)?;
            }
            return Ok(());
        }
        let unsupported = || Err(format!("unsupported resource type *{}.{}", kind.version, kind.kind));
        if kind.group != GROUP || kind.version != VERSION {
            return unsupported();
        }
        let single = kind.kind.strip_suffix("List").filter(|single| self.role(single).is_some());
        let name = single.unwrap_or(&kind.kind);
        let Some((role, plural)) = self.role(name) else { return unsupported() };
        let items = match single {
            None => vec![document],
            Some(_) => document.get("items").and_then(Value::as_array).unwrap_or(&[]).to_vec(),
        };
        let made: Result<Vec<Value>, String> =
            items.into_iter().map(|item| complete(item, name, plural, server)).collect();
        for object in made? {
            check_name(object.meta().name(), path, &mut names.0[role as usize])?;
            check(&object, name, role, path)?;
            match role {
                Role::Main => read.objects.push(object),
                Role::Binding => read.bindings.push(object),
            }
        }
        Ok(())
    }

    /// What a document says that it is, if that is known here.
    fn kind_of(&self, document: &Value, text: &str) -> Result<GroupVersionKind, String> {
        let (version, kind) = (document.str_at(&["apiVersion"]), document.str_at(&["kind"]));
        if kind.is_empty() {
            return Err(format!("Object 'Kind' is missing in '{text}'"));
        }
        if version.is_empty() {
            return Err(format!("Object 'apiVersion' is missing in '{text}'"));
        }
        let named = GroupVersion::parse(version)
            .ok_or_else(|| format!("unexpected GroupVersion string: {version}"))?
            .with_kind(kind);
        let is_any = matches!(kind, "List" | "Status");
        let single = named.kind.strip_suffix("List").unwrap_or(&named.kind);
        let of_group = GroupVersionKind::new(named.group.clone(), named.version.clone(), single);
        match is_any || (named.group == GROUP && builtin().kind_schema(&of_group).is_some()) {
            true => Ok(named),
            false => {
                Err(format!("no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{}\"", self.scheme))
            }
        }
    }
}

/// An object, read strictly by its type, with defaults, and found right.
fn complete(item: Value, kind: &str, plural: &str, server: Server<'_>) -> Result<Value, String> {
    let gvk = GroupVersionKind::new(GROUP, VERSION, kind);
    let Some(schema) = builtin().kind_schema(&gvk) else { return Err(format!("{kind} is not known")) };
    let decoded = typed::decode(&json::to_vec(&item), &schema, Strictness::Report).map_err(|e| e.to_string())?;
    if !decoded.strict.is_empty() {
        let problems: Vec<String> = decoded.strict.iter().map(ToString::to_string).collect();
        return Err(format!("strict decoding error: {}", problems.join(", ")));
    }
    let mut object = decoded.value;
    let map = object.make_object();
    map.insert("apiVersion", gvk.api_version());
    map.insert("kind", gvk.kind.clone());
    if let Some(resource) = server.objects.resource(GROUP, plural) {
        resource.strategy.default_object(VERSION, &mut object);
    }
    let request = kubelith_rules::Request { group: GROUP, version: VERSION, subresource: "", env: server.env };
    let mut errors = kubelith_meta::object::validate_object_meta(
        object.meta(),
        kubelith_meta::object::Namespacing::Forbidden,
        kubelith_meta::names::name_is_path_segment,
        &kubelith_meta::field::Path::new("metadata"),
    );
    errors.extend((kubelith_kinds::kind(kubelith_kinds::BUILTIN, GROUP, plural).rules.create)(request, &object));
    match errors.is_empty() {
        true => Ok(object),
        false => {
            let name = quote(object.meta().name());
            Err(format!("{kind} {name}: {}", aggregate(errors.iter().map(ToString::to_string))))
        }
    }
}

fn check_name(name: &str, path: &Path, names: &mut HashMap<String, PathBuf>) -> Result<(), String> {
    let file = path.display();
    if name.is_empty() {
        return Err(format!("resource in file \"{file}\" must have a name"));
    }
    if !name.ends_with(SUFFIX) {
        return Err(format!("{} in file \"{file}\" must have a name ending with \"{SUFFIX}\"", quote(name)));
    }
    if let Some(before) = names.insert(name.to_owned(), path.to_owned()) {
        let before = before.display();
        return Err(format!(
            "duplicate name {} found in file \"{file}\" (previously seen in \"{before}\")",
            quote(name)
        ));
    }
    Ok(())
}

/// What only manifests may not have: nothing that has to be looked up in the cluster.
fn check(object: &Value, kind: &str, role: Role, path: &Path) -> Result<(), String> {
    let name = quote(object.meta().name());
    let given = |path: &[&str]| object.at(path).is_some_and(|value| !value.is_null());
    for hook in object.get("webhooks").and_then(Value::as_array).unwrap_or(&[]) {
        let at = || format!("webhook {} in {name} (file \"{}\")", quote(hook.str_at(&["name"])), path.display());
        if hook.at(&["clientConfig", "service"]).is_some_and(|service| !service.is_null()) {
            let why = "clientConfig.service is not supported for static manifests; use clientConfig.url instead";
            return Err(format!("{}: {why}", at()));
        }
        if hook.str_at(&["clientConfig", "url"]).is_empty() {
            return Err(format!("{}: clientConfig.url is required for static manifests", at()));
        }
    }
    if role == Role::Main {
        return match given(&["spec", "paramKind"]) {
            true => Err(format!("{kind} {name}: spec.paramKind is not supported for static manifests")),
            false => Ok(()),
        };
    }
    let policy = object.str_at(&["spec", "policyName"]);
    if policy.is_empty() {
        return Err(format!("binding {name} must reference a policy (spec.policyName)"));
    }
    if !policy.ends_with(SUFFIX) {
        return Err(format!("binding {name}: spec.policyName {} must end with \"{SUFFIX}\"", quote(policy)));
    }
    match given(&["spec", "paramRef"]) {
        true => Err(format!("binding {name}: spec.paramRef is not supported for static manifests")),
        false => Ok(()),
    }
}
