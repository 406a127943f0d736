//! `kubelith kubeconfig`: shows the kubeconfig of a data folder, merges it into the user's own, and makes certificates for
//! other users. No server is asked: who can read the folder is its administrator.

use super::Words;
use kubelith_codec::yaml;
use kubelith_meta::Value;
use kubelith_tls::files::{self, Access};
use kubelith_tls::signing::Authority;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

pub const HELP: &str = "\
Shows the kubeconfig of the administrator, or makes one for another user.

Usage:
  kubelith kubeconfig [flags]

Flags:
      --data-dir DIR     The data folder of the server (default \"kubelith-data\").
      --merge            Adds it to your kubeconfig instead of showing it, and makes it the current context.
      --kubeconfig FILE  The file to merge into (default: the first of $KUBECONFIG, or ~/.kube/config).
      --name NAME        What cluster and context are called (default \"kubelith\").
      --keep-context     Leaves the current context as it is.
      --server URL       The address of the server, if clients reach it by another one.
      --user NAME        A new certificate for this user instead of the administrator's. Roles say what the
                         user may do.
      --group NAME       A group of that user. May be given several times.
      --days N           How long the certificate is good for (default 365).
  -h, --help             Shows this help.

Examples:
  kubelith kubeconfig --merge
  kubelith kubeconfig --user jane --group devs > jane.kubeconfig
  kubectl create rolebinding jane --clusterrole=edit --user=jane
";

/// Days that a new certificate is good for, and the most that may be asked for: no authority of ours lasts longer.
const DAYS: u32 = 365;
const MAX_DAYS: u32 = 3650;
/// The largest kubeconfig that is read, in bytes.
const MAX_FILE: u64 = 16 << 20;

#[derive(Debug, PartialEq, Eq)]
struct Command {
    data_dir: PathBuf,
    merge: bool,
    file: Option<PathBuf>,
    name: String,
    keep_context: bool,
    server: Option<String>,
    user: Option<NewUser>,
}

#[derive(Debug, PartialEq, Eq)]
struct NewUser {
    name: String,
    groups: Vec<String>,
    days: u32,
}

/// What goes into a kubeconfig, with the names it has there.
struct Entry {
    cluster_name: String,
    user_name: String,
    context_name: String,
    cluster: Value,
    user: Value,
}

/// Runs the words behind `kubeconfig`.
pub fn run(words: &[String]) -> Result<String, String> {
    let Some(command) = parse(words)? else { return Ok(HELP.to_owned()) };
    let entry = entry(&command)?;
    if !command.merge {
        let config = merged(Value::Null, &entry, Current::Switched)?;
        return Ok(String::from_utf8_lossy(&yaml::to_vec(&config)).into_owned());
    }
    let file = match &command.file {
        Some(file) => file.clone(),
        None => {
            // As kubectl does: Windows has the second only.
            let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
            own_file(std::env::var("KUBECONFIG").ok().as_deref(), home.map(PathBuf::from))?
        }
    };
    let current = if command.keep_context { Current::Kept } else { Current::Switched };
    merge_into(&file, &entry, current)?;
    let says = match current {
        Current::Switched => format!("kubectl uses context {:?} now", entry.context_name),
        Current::Kept => format!("kubectl --context {} uses it", entry.context_name),
    };
    Ok(format!("wrote context {:?} to {}; {says}\n", entry.context_name, file.display()))
}

/// `None`: help is wanted.
fn parse(words: &[String]) -> Result<Option<Command>, String> {
    let mut command = Command {
        data_dir: "kubelith-data".into(),
        merge: false,
        file: None,
        name: "kubelith".to_owned(),
        keep_context: false,
        server: None,
        user: None,
    };
    let (mut user, mut groups, mut days) = (None, Vec::new(), None);
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "-h" | "--help" => return Ok(None),
            "--merge" => command.merge = true,
            "--keep-context" => command.keep_context = true,
            "--data-dir" => command.data_dir = words.value()?.into(),
            "--kubeconfig" => command.file = Some(words.value()?.into()),
            "--name" => command.name = words.value()?,
            "--server" => command.server = Some(words.value()?),
            "--user" => user = Some(words.value()?),
            "--group" => groups.push(words.value()?),
            "--days" => days = Some(words.value()?),
            flag if flag.starts_with('-') => return Err(format!("unknown flag: {flag}\n\n{HELP}")),
            word => return Err(format!("unknown word: {word}\n\n{HELP}")),
        }
    }
    let number = days.as_ref().map_or(Some(DAYS), |text| text.parse().ok().filter(|n| (1..=MAX_DAYS).contains(n)));
    let Some(number) = number else { return Err(format!("--days is a number from 1 to {MAX_DAYS}")) };
    match user {
        Some(name) if name.is_empty() || groups.iter().any(String::is_empty) => {
            return Err("users and groups have names".to_owned());
        }
        Some(name) => command.user = Some(NewUser { name, groups, days: number }),
        None if !groups.is_empty() || days.is_some() => return Err("--group and --days are for --user".to_owned()),
        None => {}
    }
    if !command.merge && (command.file.is_some() || command.keep_context) {
        return Err("--kubeconfig and --keep-context are for --merge".to_owned());
    }
    Ok(Some(command))
}

/// From the kubeconfig in the data folder.
fn entry(command: &Command) -> Result<Entry, String> {
    let path = command.data_dir.join("admin.kubeconfig");
    let admin = match read(&path)? {
        Some(config) => config,
        None => {
            return Err(format!(
                "{} is not there. It is written by a server that keeps its data there (kubelith --data-dir {}), unless \
                 --client-ca-file names another authority",
                path.display(),
                command.data_dir.display()
            ));
        }
    };
    let inside = |list: &str, what: &str| {
        let found = admin.get(list).and_then(Value::as_array).and_then(<[Value]>::first).and_then(|one| one.get(what));
        found.cloned().ok_or(format!("{}: there is nothing in {list}", path.display()))
    };
    let mut cluster = inside("clusters", "cluster")?;
    if let Some(server) = &command.server {
        cluster.set_at(&["server"], Value::from(server.as_str()));
    }
    let name = &command.name;
    // Not the names that kubeadm uses: what others wrote into the same file must stay theirs.
    let (user_name, context_name, user) = match &command.user {
        None => (format!("{name}-admin"), name.clone(), inside("users", "user")?),
        Some(user) => {
            let full = format!("{}@{name}", user.name);
            (full.clone(), full, certificate(&command.data_dir.join("pki"), user)?)
        }
    };
    Ok(Entry { cluster_name: name.clone(), user_name, context_name, cluster, user })
}

fn certificate(pki: &Path, user: &NewUser) -> Result<Value, String> {
    let read = |name: &str| {
        let path = pki.join(name);
        std::fs::read(&path).map_err(|e| format!("the authority for clients cannot be used: {}: {e}", path.display()))
    };
    let authority = Authority::from_pem(&read("ca.crt")?, &read("ca.key")?)?;
    let groups: Vec<&str> = user.groups.iter().map(String::as_str).collect();
    let pair = authority.client_pair(&user.name, &groups, user.days)?;
    let encoded = |pem: &str| Value::from(kubelith_codec::base64::encode(pem.as_bytes()).as_str());
    let mut object = Value::object();
    object.set_at(&["client-certificate-data"], encoded(&pair.certificate));
    object.set_at(&["client-key-data"], encoded(&pair.key));
    Ok(object)
}

/// `None`: there is no such file.
fn read(path: &Path) -> Result<Option<Value>, String> {
    use std::io::Read;
    let told = |why: String| format!("{}: {why}", path.display());
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(error.to_string())),
    };
    let mut text = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut text).map_err(|e| told(e.to_string()))?;
    let value = yaml::read(&text).map_err(|e| told(e.to_string()))?.value;
    match value {
        Value::Null | Value::Object(_) => Ok(Some(value)),
        _ => Err(told("is no kubeconfig".to_owned())),
    }
}

/// Which context is current afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    Switched,
    Kept,
}

/// The configuration with the entry in it; what had its names is replaced, all else is left as it is.
fn merged(config: Value, entry: &Entry, current: Current) -> Result<Value, String> {
    let mut config = if config.is_null() { Value::object() } else { config };
    config.set_at(&["apiVersion"], Value::from("v1"));
    config.set_at(&["kind"], Value::from("Config"));
    let mut context = Value::object();
    context.set_at(&["cluster"], Value::from(entry.cluster_name.as_str()));
    context.set_at(&["user"], Value::from(entry.user_name.as_str()));
    for (list, inner, name, value) in [
        ("clusters", "cluster", &entry.cluster_name, entry.cluster.clone()),
        ("users", "user", &entry.user_name, entry.user.clone()),
        ("contexts", "context", &entry.context_name, context),
    ] {
        let members = config.make_object().entry_or_null(list);
        if members.is_null() {
            *members = Value::Array(Vec::new());
        }
        let Some(members) = members.as_array_mut() else { return Err(format!("{list} is no list")) };
        let mut member = Value::object();
        member.set_at(&["name"], Value::from(name.as_str()));
        member.set_at(&[inner], value);
        match members.iter_mut().find(|member| member.str_at(&["name"]) == name) {
            Some(old) => *old = member,
            None => members.push(member),
        }
    }
    if current == Current::Switched || config.str_at(&["current-context"]).is_empty() {
        config.set_at(&["current-context"], Value::from(entry.context_name.as_str()));
    }
    Ok(config)
}

/// As kubectl finds the file to write to: the first of `KUBECONFIG` that exists, else the last one; else the usual one.
fn own_file(variable: Option<&str>, home: Option<PathBuf>) -> Result<PathBuf, String> {
    let named: Vec<PathBuf> =
        std::env::split_paths(variable.unwrap_or_default()).filter(|path| !path.as_os_str().is_empty()).collect();
    if let Some(path) = named.iter().find(|path| path.exists()).or(named.last()) {
        return Ok(path.clone());
    }
    home.map(|home| home.join(".kube/config"))
        .ok_or("neither KUBECONFIG nor HOME is set; name a file: --kubeconfig".into())
}

/// Reads, changes and replaces the file while nobody else does: kubectl keeps to the same lock.
fn merge_into(path: &Path, entry: &Entry, current: Current) -> Result<(), String> {
    // A link stays one: what it leads to is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let told = |why: std::io::Error| format!("{}: {why}", path.display());
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        files::make_private_folder(folder).map_err(told)?;
    }
    let _lock = Lock::take(&path)?;
    let old = read(&path)?.unwrap_or(Value::Null);
    let new = merged(old, entry, current).map_err(|why| format!("{}: {why}", path.display()))?;
    files::write(&path, &yaml::to_vec(&new), Access::Private).and_then(|()| files::sync(&path)).map_err(told)
}

struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> Result<Lock, String> {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".lock");
        let lock = path.with_file_name(name);
        match OpenOptions::new().write(true).create_new(true).open(&lock) {
            Ok(_) => Ok(Lock(lock)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(format!(
                "{} is there: another program changes the file now. If none does, remove it",
                lock.display()
            )),
            Err(error) => Err(format!("{}: {error}", lock.display())),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests;
