//! Why the server does not start, and what whoever started it can do about it.

use kubelith_listen::BindOptions;
use kubelith_store::StoreError;
use kubelith_system::sockets;
use kubelith_tls::pki::PkiError;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// A message for logs, in the reference's words where it has any, and advice for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    pub advice: Option<String>,
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure { message, advice: None }
    }
}

/// For those who start servers within their process: they can read the message, and need no advice about this machine.
impl From<Failure> for String {
    fn from(failure: Failure) -> String {
        failure.message
    }
}

impl Failure {
    fn advised(message: String, advice: impl Into<Option<String>>) -> Failure {
        Failure { message, advice: advice.into() }
    }

    /// The socket could not be opened.
    pub fn of_listening(bind: &BindOptions, error: &io::Error) -> Failure {
        let (address, port) = (SocketAddr::new(bind.address, bind.port), bind.port);
        let message = format!("failed to create listener: failed to listen on {address}: {error}");
        let advice = match error.kind() {
            io::ErrorKind::AddrInUse => {
                let owner = owner_of_port(port).map_or_else(|| "another process".to_owned(), |who| who.to_string());
                format!(
                    "Port {port} is taken by {owner}. Stop it, or take another port: --secure-port={}",
                    port.saturating_add(1)
                )
            }
            io::ErrorKind::PermissionDenied if port < 1024 => {
                format!(
                    "Ports below 1024 are for privileged processes. Take another one: --secure-port={}",
                    port + 6000
                )
            }
            io::ErrorKind::AddrNotAvailable => {
                "No interface of this machine has that address. See --bind-address; 0.0.0.0 is all of them".to_owned()
            }
            _ => return Failure::from(message),
        };
        Failure::advised(message, advice)
    }

    /// The embedded store could not be opened.
    pub fn of_store(error: &StoreError, folder: &Path) -> Failure {
        Failure::advised(error.to_string(), store_advice(error, folder))
    }
}

impl From<PkiError> for Failure {
    fn from(error: PkiError) -> Failure {
        let advice = match &error {
            PkiError::Io { path, source } => io_advice(source.kind(), path),
            PkiError::Bad { path, .. } => Some(format!(
                "{} cannot be read as a certificate. If Kubelith made it, move it away: it is made anew at the next start",
                path.display()
            )),
            PkiError::HalfAPair { .. } | PkiError::Make(_) => None,
        };
        Failure::advised(error.to_string(), advice)
    }
}

/// What helps against an error of the embedded store in this folder.
pub fn store_advice(error: &StoreError, folder: &Path) -> Option<String> {
    let shown = folder.display();
    match error {
        StoreError::Locked(by) => {
            let owner = pid_in(by).map(Process::of);
            let owner = owner.map_or_else(|| "Another process".to_owned(), |who| capital(&who.to_string()));
            let backup = match sockets::SUPPORTED {
                true => ". A backup can be made while it runs: kubelith store backup",
                false => "",
            };
            Some(format!("{owner} has {shown} open. Stop it, or name another folder: --data-dir{backup}"))
        }
        StoreError::NewerFormat { .. } => Some(format!(
            "A newer release of Kubelith wrote {shown}. Start that release, or restore a backup that this one made into \
             another folder: kubelith store restore --data-dir DIR FILE"
        )),
        StoreError::Corrupt(_) => Some(format!(
            "kubelith store check tells what is wrong. Move {shown} away, and restore a backup: kubelith store restore FILE"
        )),
        StoreError::NoSpace(_) => io_advice(io::ErrorKind::StorageFull, folder),
        // Errors of the disk come as texts; these two are those that people can do something about.
        StoreError::Unavailable(why) if why.contains("os error 28") => io_advice(io::ErrorKind::StorageFull, folder),
        StoreError::Unavailable(why) if why.contains("os error 13") => {
            io_advice(io::ErrorKind::PermissionDenied, folder)
        }
        _ => None,
    }
}

fn io_advice(kind: io::ErrorKind, path: &Path) -> Option<String> {
    let shown = path.display();
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(format!(
            "There is no room left on the disk of {shown}. Make some, or move the data folder and name its new place: \
             --data-dir"
        )),
        io::ErrorKind::PermissionDenied => Some(format!(
            "This user may not use {shown}. Start as the user that the folder belongs to, or name another one: --data-dir"
        )),
        io::ErrorKind::ReadOnlyFilesystem => {
            Some(format!("The disk of {shown} cannot be written to. Name a folder elsewhere: --data-dir"))
        }
        _ => None,
    }
}

/// The number in `… (process 123)`.
fn pid_in(text: &str) -> Option<u32> {
    text.rsplit_once("(process ")?.1.strip_suffix(')')?.parse().ok()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    pid: u32,
    /// Empty if nobody tells.
    name: String,
}

impl Process {
    fn of(pid: u32) -> Process {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Process { pid, name: name.trim().to_owned() }
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "process {}", self.pid),
            name => write!(f, "process {} ({name})", self.pid),
        }
    }
}

/// Who listens on a port of this machine. Only Linux tells, and only of processes that this user may look at.
fn owner_of_port(port: u16) -> Option<Process> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| std::fs::read_to_string(table).unwrap_or_default());
    let socket = tables.iter().find_map(|table| listening_socket(table, port))?;
    let wanted = format!("socket:[{socket}]");
    let has_it = |pid: &u32| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|link| link.as_os_str() == wanted.as_str())
    };
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(has_it).map(Process::of)
}

/// The number of the socket that listens on a port, in a table of the kernel's: the second word of a line is the address
/// and the port, the fourth the state, the tenth the number.
fn listening_socket(table: &str, port: u16) -> Option<u64> {
    const LISTEN: &str = "0A";
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let here = words.get(1)?.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok())?;
        (here == port && *words.get(3)? == LISTEN).then(|| words.get(9)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_listen::Sharing;

    #[test]
    fn whoever_has_the_port_is_named() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(owner_of_port(port).map(|who| who.pid), Some(std::process::id()));
        let taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap_err();
        let bind = BindOptions { address: [127, 0, 0, 1].into(), port, sharing: Sharing::Exclusive };
        let failure = Failure::of_listening(&bind, &taken);
        let start = format!("failed to create listener: failed to listen on 127.0.0.1:{port}: ");
        assert!(failure.message.starts_with(&start), "{}", failure.message);
        let advice = failure.advice.unwrap();
        assert!(advice.starts_with(&format!("Port {port} is taken by process {} (", std::process::id())), "{advice}");
        drop(socket);
        assert_eq!(owner_of_port(port), None);
    }

    #[test]
    fn tables_of_the_kernel_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:192B 0100007F:0001 01 00000000:00000000 00:00000000 00000000     0        0 11 1\n   \
                     1: 00000000:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n";
        assert_eq!(listening_socket(table, 6443), Some(4711));
        assert_eq!(listening_socket(table, 6444), None);
        assert_eq!(listening_socket("x\ny", 1), None);
    }

    #[test]
    fn advice_fits_the_error() {
        let folder = Path::new("/d/store");
        let own = std::process::id();
        let locked = StoreError::Locked(format!("/d/store (process {own})"));
        for (error, words) in [
            (locked, format!("Process {own} (")),
            (StoreError::Locked("/d/store (process unknown)".into()), "Another process has /d/store open".into()),
            (StoreError::NewerFormat { found: 3, supported: 2 }, "A newer release of Kubelith wrote /d/store".into()),
            (StoreError::Corrupt("x".into()), "kubelith store check tells".into()),
            (StoreError::NoSpace("x".into()), "There is no room left on the disk of /d/store".into()),
            (
                StoreError::Unavailable("disk: No space left on device (os error 28)".into()),
                "There is no room left".into(),
            ),
            (StoreError::Unavailable("making: Permission denied (os error 13)".into()), "This user may not use".into()),
        ] {
            let advice = store_advice(&error, folder).unwrap_or_default();
            assert!(advice.starts_with(&words), "{error}: {advice}");
        }
        assert_eq!(store_advice(&StoreError::Closed, folder), None);
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let failure = Failure::from(PkiError::Io { path: "/d/pki".into(), source: denied });
        assert!(failure.advice.unwrap().starts_with("This user may not use /d/pki"));
    }
}
