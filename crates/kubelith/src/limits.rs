//! What the system lets a process have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets the process open as many files as it may: each connection is one, and the usual first limit of 1024 is for
/// programs that use `select`.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Without it the server still serves, fewer.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
