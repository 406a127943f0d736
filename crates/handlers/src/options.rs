//! Options of requests from their query strings (and, for deletes, their bodies): decoded with the
//! reference's conversions, validated with its messages, typed from here on.

use kubelith_http::query;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::{FieldSelector, GroupKind, LabelSelector, Status, Str, Value};
use kubelith_registry::{DeleteOptions, Mode, Preconditions, Propagation, ReadAt};
use kubelith_store::cache::Malformed;

/// Query parameters by name; the first value of each counts.
pub struct Query(Vec<(String, String)>);

impl Query {
    pub fn parse(query: Option<&str>) -> Query {
        Query(query::pairs(query.unwrap_or("")).map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    fn text(&self, key: &str) -> Str {
        self.get(key).unwrap_or("").into()
    }

    fn all(&self, key: &str) -> Vec<Str> {
        self.0.iter().filter(|(k, _)| k == key).map(|(_, v)| v.as_str().into()).collect()
    }

    /// Anything but `false` and `0` is true, the empty value included.
    pub fn bool(&self, key: &str) -> Option<bool> {
        self.get(key).map(|v| !matches!(v.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    fn int(&self, key: &str) -> Result<Option<i64>, Status> {
        self.get(key).map(parse_int).transpose()
    }
}

/// What Go's strconv.ParseInt accepts and says.
fn parse_int(text: &str) -> Result<i64, Status> {
    text.parse::<i64>().map_err(|e| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let problem = match e.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        Status::bad_request(format!("strconv.ParseInt: parsing {}: {problem}", kubelith_meta::text::Quoted(text)))
    })
}

/// Whether watches may ask for the state at their start (WatchList).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialEvents {
    Served,
    Refused,
}

#[derive(Debug, Clone)]
pub struct ListOptions {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    pub watch: bool,
    pub bookmarks: bool,
    pub resource_version: Str,
    pub version_match: VersionMatch,
    pub timeout_seconds: Option<i64>,
    /// 0 is no limit.
    pub limit: usize,
    pub continue_token: Str,
    pub send_initial_events: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    Unset,
    Exact,
    NotOlderThan,
}

impl ListOptions {
    /// Whether one object is asked for, by its name.
    pub(crate) fn is_named(&self) -> bool {
        self.fields.exact_value("metadata.name").is_some()
    }

    /// Deletions of collections read in pages, and a revision without a word on how to match it is met exactly by those, unless a name
    /// is asked for: that is no page.
    pub(crate) fn read_in_pages(&mut self) {
        let has_revision = !matches!(self.resource_version.as_str(), "" | "0");
        if self.version_match == VersionMatch::Unset
            && self.continue_token.is_empty()
            && has_revision
            && !self.is_named()
        {
            self.version_match = VersionMatch::Exact;
        }
    }

    /// Reads what was there some revisions before `now`, unless a page of another list is to be gone on with.
    pub(crate) fn read_stale(&mut self, now: i64, revisions: u64) {
        if self.continue_token.is_empty() {
            let then = now.saturating_sub_unsigned(revisions).max(1);
            self.resource_version = then.to_string().into();
            self.version_match = VersionMatch::Exact;
        }
    }

    pub fn parse(query: &Query, initial_events: InitialEvents) -> Result<ListOptions, Status> {
        let bad = |e: kubelith_meta::selector::SelectorError| Status::bad_request(e.to_string());
        let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or("")).map_err(bad)?;
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or("")).map_err(bad)?;
        let limit = query.int("limit")?.unwrap_or(0);
        let mut options = ListOptions {
            labels,
            fields,
            watch: query.bool("watch").unwrap_or(false),
            bookmarks: query.bool("allowWatchBookmarks").unwrap_or(false),
            resource_version: query.text("resourceVersion"),
            version_match: VersionMatch::Unset,
            timeout_seconds: query.int("timeoutSeconds")?,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: query.text("continue"),
            send_initial_events: query.bool("sendInitialEvents"),
        };
        let mut version_match = query.text("resourceVersionMatch");
        let asks = options.send_initial_events.is_some();
        // A legacy watch "from any state" is the same as asking for the initial events.
        if options.watch
            && options.send_initial_events.is_none()
            && version_match.is_empty()
            && matches!(options.resource_version.as_str(), "" | "0")
        {
            options.send_initial_events = Some(true);
            version_match = "NotOlderThan".into();
        }
        let errors = if options.watch {
            options.validate_watch(&version_match, asks && initial_events == InitialEvents::Refused)
        } else {
            options.validate_list(&version_match)
        };
        if !errors.is_empty() {
            let kind = GroupKind { group: "meta.k8s.io".into(), kind: "ListOptions".into() };
            return Err(Status::invalid(&kind, "", &errors));
        }
        options.version_match = match version_match.as_str() {
            "Exact" => VersionMatch::Exact,
            "NotOlderThan" => VersionMatch::NotOlderThan,
            _ => VersionMatch::Unset,
        };
        Ok(options)
    }

    fn validate_list(&self, version_match: &str) -> ErrorList {
        let mut errors = ErrorList::default();
        let path = Path::new("resourceVersionMatch");
        let mut forbid = |text: &str| errors.push(Error::forbidden(&path, text));
        if !version_match.is_empty() {
            if self.resource_version.is_empty() {
                forbid("resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if !self.continue_token.is_empty() {
                forbid("resourceVersionMatch is forbidden when continue is provided");
            }
            if !matches!(version_match, "Exact" | "NotOlderThan") {
                errors.push(Error::not_supported(&path, version_match, ["Exact", "NotOlderThan", ""]));
            }
            if version_match == "Exact" && self.resource_version == "0" {
                errors.push(Error::forbidden(
                    &path,
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.send_initial_events.is_some() {
            let path = Path::new("sendInitialEvents");
            errors.push(Error::forbidden(&path, "sendInitialEvents is forbidden for list"));
        }
        errors
    }

    fn validate_watch(&self, version_match: &str, asks_in_vain: bool) -> ErrorList {
        let mut errors = ErrorList::default();
        let path = Path::new("resourceVersionMatch");
        if self.send_initial_events.is_some() && version_match != "NotOlderThan" {
            errors.push(Error::forbidden(
                &path,
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if asks_in_vain {
            let detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            errors.push(Error::forbidden(&Path::new("sendInitialEvents"), detail));
        }
        if !version_match.is_empty() {
            if self.send_initial_events.is_none() {
                let text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(Error::forbidden(&path, text));
            }
            if version_match != "NotOlderThan" {
                errors.push(Error::not_supported(&path, version_match, ["NotOlderThan"]));
            }
            if !self.continue_token.is_empty() {
                errors.push(Error::forbidden(&path, "resourceVersionMatch is forbidden when continue is provided"));
            }
        }
        errors
    }
}

/// `resourceVersion` of a GET.
pub fn read_at(text: &str) -> Result<ReadAt, Status> {
    match text {
        "" => Ok(ReadAt::Latest),
        "0" => Ok(ReadAt::AnyAge),
        text => Ok(ReadAt::NotOlderThan(parse_revision(text).map_err(Status::unknown)?)),
    }
}

/// A resourceVersion as a number; the error is what the reference prints for it.
pub fn parse_revision(text: &str) -> Result<u64, String> {
    let problem = |p: &str| {
        let quoted = kubelith_meta::text::Quoted(text);
        format!("resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {p}")
    };
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(problem("invalid syntax"));
    }
    text.parse().map_err(|_| problem("value out of range"))
}

/// What creates, updates and patches share.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    pub mode: Mode,
    pub field_manager: Str,
    pub field_validation: FieldValidation,
    /// Only for apply patches.
    pub force: Option<bool>,
    /// The options object as admission sees it.
    pub object: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The options kinds of writes, which differ in name and in a few rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    Create,
    Update,
    Patch,
    Apply,
}

impl Write {
    fn kind(self) -> &'static str {
        match self {
            Write::Create => "CreateOptions",
            Write::Update => "UpdateOptions",
            Write::Patch | Write::Apply => "PatchOptions",
        }
    }
}

/// Names of field managers are at most this long: managedFields entries repeat them.
const FIELD_MANAGER_MAX: usize = 128;

impl WriteOptions {
    pub fn parse(query: &Query, write: Write) -> Result<WriteOptions, Status> {
        let dry_run = query.all("dryRun");
        let manager = query.text("fieldManager");
        let validation = query.text("fieldValidation");
        let force = if matches!(write, Write::Patch | Write::Apply) { query.bool("force") } else { None };

        let mut errors = ErrorList::default();
        if matches!(write, Write::Patch) && force.is_some() {
            errors.push(Error::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
        }
        if write == Write::Apply && manager.is_empty() {
            errors.push(Error::required(&Path::new("fieldManager"), "is required for apply patch"));
        }
        validate_field_manager(&manager, &mut errors);
        validate_dry_run(&dry_run, &mut errors);
        validate_field_validation(&validation, &mut errors);
        if !errors.is_empty() {
            let kind = GroupKind { group: "meta.k8s.io".into(), kind: write.kind().into() };
            return Err(Status::invalid(&kind, "", &errors));
        }
        let mut object = Value::from([("kind", write.kind()), ("apiVersion", "meta.k8s.io/v1")]);
        for (key, value) in [("fieldManager", &manager), ("fieldValidation", &validation)] {
            if !value.is_empty() {
                object.set_at(&[key], Value::String(value.clone()));
            }
        }
        if !dry_run.is_empty() {
            object.set_at(&["dryRun"], dry_run.clone().into());
        }
        if let Some(force) = force {
            object.set_at(&["force"], Value::Bool(force));
        }
        Ok(WriteOptions {
            mode: if dry_run.is_empty() { Mode::Real } else { Mode::DryRun },
            field_manager: manager,
            field_validation: match validation.as_str() {
                "Ignore" => FieldValidation::Ignore,
                "Strict" => FieldValidation::Strict,
                _ => FieldValidation::Warn,
            },
            force,
            object,
        })
    }
}

fn validate_field_manager(manager: &str, errors: &mut ErrorList) {
    let path = Path::new("fieldManager");
    if manager.len() > FIELD_MANAGER_MAX {
        errors.push(Error::too_long(&path, FIELD_MANAGER_MAX));
    }
    for (i, c) in manager.char_indices() {
        if !kubelith_meta::text::is_printable(c) {
            let text = format!("invalid character U+{:04X} (at position {i})", c as u32);
            errors.push(Error::invalid(&path, Value::from(manager), text));
        }
    }
}

fn validate_dry_run(dry_run: &[Str], errors: &mut ErrorList) {
    let known = dry_run.iter().all(|d| d == "All");
    if !known {
        let value = Value::from(dry_run.to_vec());
        errors.push(Error::not_supported(&Path::new("dryRun"), kubelith_meta::field::BadValue::json(value), ["All"]));
    }
}

fn validate_field_validation(validation: &str, errors: &mut ErrorList) {
    if !matches!(validation, "" | "Ignore" | "Warn" | "Strict") {
        let path = Path::new("fieldValidation");
        errors.push(Error::not_supported(&path, validation, ["", "Ignore", "Strict", "Warn"]));
    }
}

/// The option to delete even what cannot be read.
pub const IGNORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// Delete options from a decoded DeleteOptions body, or from the query if there was no body.
pub fn delete_options(
    body: Option<&Value>,
    query: &Query,
    malformed: Malformed,
) -> Result<(DeleteOptions, Mode, Value), Status> {
    let mut object = match body {
        Some(body) => body.clone(),
        None => delete_options_from_query(query)?,
    };
    if malformed == Malformed::Reported {
        object.remove_at(&[IGNORE_READ_ERROR]);
    }
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).map(Str::from);
    let dry_run: Vec<Str> = object
        .get("dryRun")
        .and_then(Value::as_array)
        .map(|a| a.iter().filter_map(Value::as_str).map(Str::from).collect())
        .unwrap_or_default();
    let propagation = text(&["propagationPolicy"]);
    let orphan = object.get("orphanDependents").and_then(Value::as_bool);

    let mut errors = ErrorList::default();
    let path = Path::new("propagationPolicy");
    if propagation.is_some() && orphan.is_some() {
        let value = Value::from(propagation.clone());
        errors.push(Error::invalid(&path, value, "orphanDependents and deletionPropagation cannot be both set"));
    }
    if let Some(other) = propagation.as_deref().filter(|p| policy(p).is_none()) {
        errors.push(Error::not_supported(&path, other, ["Foreground", "Background", "Orphan", "nil"]));
    }
    validate_dry_run(&dry_run, &mut errors);
    if object.get(IGNORE_READ_ERROR).and_then(Value::as_bool) == Some(true) {
        validate_ignore_read_error(&object, &dry_run, &mut errors);
    }
    if !errors.is_empty() {
        let kind = GroupKind { group: "meta.k8s.io".into(), kind: "DeleteOptions".into() };
        return Err(Status::invalid(&kind, "", &errors));
    }
    let options = typed_delete_options(&object);
    let mode = if dry_run.is_empty() { Mode::Real } else { Mode::DryRun };
    Ok((options, mode, object))
}

/// A DeleteOptions object as the registry takes it. What it cannot mean counts as not said.
pub fn typed_delete_options(object: &Value) -> DeleteOptions {
    let text = |path: &[&str]| object.at(path).and_then(Value::as_str).map(Str::from);
    DeleteOptions {
        grace_period_seconds: object.get("gracePeriodSeconds").and_then(Value::as_i64),
        preconditions: Preconditions {
            uid: text(&["preconditions", "uid"]),
            resource_version: text(&["preconditions", "resourceVersion"]),
        },
        orphan_dependents: object.get("orphanDependents").and_then(Value::as_bool),
        propagation: policy(object.str_at(&["propagationPolicy"])),
        ignore_read_error: object.get(IGNORE_READ_ERROR).and_then(Value::as_bool).unwrap_or(false),
    }
}

fn policy(text: &str) -> Option<Propagation> {
    match text {
        "Foreground" => Some(Propagation::Foreground),
        "Background" => Some(Propagation::Background),
        "Orphan" => Some(Propagation::Orphan),
        _ => None,
    }
}

/// 422 for a collection: each unreadable object must be named.
pub fn not_for_collections() -> Status {
    let mut errors = ErrorList::default();
    errors.push(Error::invalid(
        &Path::new(IGNORE_READ_ERROR),
        Value::Bool(true),
        "is not allowed with DELETECOLLECTION, try again after removing the option",
    ));
    let kind = GroupKind { group: "meta.k8s.io".into(), kind: "DeleteOptions".into() };
    Status::invalid(&kind, "", &errors)
}

/// Deleting the unreadable goes together with no other option.
fn validate_ignore_read_error(object: &Value, dry_run: &[Str], errors: &mut ErrorList) {
    let path = Path::new(IGNORE_READ_ERROR);
    let mut refuse = |with: &str| {
        errors.push(Error::invalid(&path, Value::Bool(true), format!("cannot be set together with .{with}")));
    };
    if !dry_run.is_empty() {
        refuse("dryRun");
    }
    for with in ["propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions"] {
        if object.get(with).is_some() {
            refuse(with);
        }
    }
}

fn delete_options_from_query(query: &Query) -> Result<Value, Status> {
    let mut object = Value::from([("kind", "DeleteOptions"), ("apiVersion", "meta.k8s.io/v1")]);
    if let Some(seconds) = query.int("gracePeriodSeconds")? {
        object.set_at(&["gracePeriodSeconds"], seconds.into());
    }
    for key in ["orphanDependents", IGNORE_READ_ERROR] {
        if let Some(flag) = query.bool(key) {
            object.set_at(&[key], flag.into());
        }
    }
    if let Some(policy) = query.get("propagationPolicy") {
        object.set_at(&["propagationPolicy"], policy.into());
    }
    for key in ["uid", "resourceVersion"] {
        if let Some(wanted) = query.get(key).filter(|wanted| !wanted.is_empty()) {
            object.set_at(&["preconditions", key], wanted.into());
        }
    }
    let dry_run = query.all("dryRun");
    if !dry_run.is_empty() {
        object.set_at(&["dryRun"], dry_run.into());
    }
    Ok(object)
}
