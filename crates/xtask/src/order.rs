//! `order`: in which order functions are to lie in the program. `crates/kubelith/build/order.rs` tells the linker.
//!
//! A server runs under callgrind, with the loads of `bench`. The functions that are called often are put down as a walk through the
//! graph of calls comes by them, the most frequent call first: a function stands behind one that calls it.

use crate::run::{cargo, root, run, target};
use crate::tools::make_executable;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;

#[rustfmt::skip]
const LOADS: &[&str] = &[
    "--pods", "400", "--clients", "16", "--seconds", "15", "--watchers", "20", "--writes", "40",
    "create", "get", "list", "list-label", "patch", "apply", "watch", "delete",
];

/// Functions that are called less often than for every second create are left where they are.
const OFTEN: u64 = 200;

/// What more functions are called, but for the hash, tells nothing without it: the standard library makes one for each type.
const NAMESAKES: usize = 20;
/// Behind such a name.
const EXACT: &str = " exact";

/// `cargo xtask order`
pub fn make(arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask order".to_owned());
    }
    let folder = target().join("order");
    let (server, counts) = (folder.join("server"), folder.join("callgrind.out"));
    run(cargo().args(["build", "--release", "--package", "kubelith"]))?;
    let program = target().join("release/kubelith");
    std::fs::create_dir_all(&folder).map_err(|error| told(&folder, &error))?;
    let script = format!(
        "#!/bin/sh\nexec valgrind --tool=callgrind --demangle=no --callgrind-out-file='{}' '{}' \"$@\"\n",
        counts.display(),
        program.display()
    );
    let written = std::fs::write(&server, script).and_then(|()| make_executable(&server));
    written.map_err(|error| told(&server, &error))?;
    let bench = ["run", "--release", "--package", "kubelith-bench", "--", "--binary"];
    run(cargo().args(bench).arg(&server).args(LOADS))?;

    let calls = read(&counts, |bytes| Calls::parse(&String::from_utf8_lossy(bytes)))?;
    let names = read(&program, Names::of)?;
    let order = calls.order(|name| names.all.contains(name));
    let lines: Vec<String> = order.iter().map(|name| names.line(name)).collect();
    let list = root().join("crates/kubelith/order.txt");
    std::fs::write(&list, lines.concat()).map_err(|error| told(&list, &error))?;
    println!("{}: {} functions", list.display(), lines.len());
    Ok(())
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn read<T>(path: &Path, parse: impl FnOnce(&[u8]) -> T) -> Result<T, String> {
    std::fs::read(path).map(|bytes| parse(&bytes)).map_err(|error| told(path, &error))
}

/// The name of a function in Rust without the hash that the compiler ends it with. C has none.
fn plain(name: &str) -> &str {
    name.rfind("17h").filter(|_| name.starts_with("_ZN")).map_or(name, |at| &name[..at])
}

/// What functions of a program are called, and how many are called the same but for their hash.
struct Names {
    all: HashSet<String>,
    namesakes: HashMap<String, usize>,
}

impl Names {
    /// Any text between zero bytes may be a name: nobody asks for the others.
    fn of(program: &[u8]) -> Names {
        let texts = program.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
        let all: HashSet<String> = texts.filter(|text| !text.is_empty()).map(str::to_owned).collect();
        let mut namesakes = HashMap::new();
        for name in &all {
            *namesakes.entry(plain(name).to_owned()).or_default() += 1;
        }
        Names { all, namesakes }
    }

    fn line(&self, name: &str) -> String {
        let is_shared = self.namesakes.get(plain(name)).is_some_and(|count| *count > NAMESAKES);
        // Of a name of the next mangling nothing is left without its hashes.
        let exact = if is_shared || name.starts_with("_R") { EXACT } else { "" };
        format!("{name}{exact}\n")
    }
}

/// Who called whom how often.
#[derive(Default)]
struct Calls {
    names: Vec<String>,
    called: Vec<HashMap<usize, u64>>,
}

impl Calls {
    /// From what callgrind writes. <https://valgrind.org/docs/manual/cl-format.html>
    fn parse(text: &str) -> Calls {
        let mut calls = Calls::default();
        // Names are told once, with a number that stands for them later.
        let (mut numbers, mut functions) = (HashMap::new(), HashMap::new());
        let mut function = |calls: &mut Calls, word: &str| {
            let (number, name) = word.split_once(' ').unwrap_or((word, ""));
            if !name.is_empty() {
                // Further levels of a recursion have names of their own here.
                let name = name.split_once('\'').map_or(name, |(name, _)| name);
                let next = functions.len();
                let index = *functions.entry(name.to_owned()).or_insert(next);
                if index == next {
                    calls.names.push(name.to_owned());
                    calls.called.push(HashMap::new());
                }
                numbers.insert(number.to_owned(), index);
            }
            numbers.get(number).copied()
        };
        let (mut caller, mut callee) = (None, None);
        for line in text.lines() {
            if let Some(word) = line.strip_prefix("fn=") {
                caller = function(&mut calls, word);
            } else if let Some(word) = line.strip_prefix("cfn=") {
                callee = function(&mut calls, word);
            } else if let Some(words) = line.strip_prefix("calls=") {
                let count = words.split(' ').next().and_then(|count| count.parse::<u64>().ok());
                if let (Some(caller), Some(callee), Some(count)) = (caller, callee, count) {
                    *calls.called[caller].entry(callee).or_default() += count;
                }
            }
        }
        calls
    }

    /// The functions that are wanted, and worth it.
    fn order(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<&str> {
        let mut times = vec![0; self.names.len()];
        for (callee, count) in self.called.iter().flatten() {
            times[*callee] += count;
        }
        let mut roots: Vec<usize> = (0..self.names.len()).collect();
        // Whoever is called by nobody begins: threads.
        roots.sort_by_cached_key(|f| (times[*f] > 0, Reverse(self.calls_of(*f)), &self.names[*f]));
        let (mut walked, mut order) = (HashSet::new(), Vec::new());
        // The next one to walk to is the last one.
        let mut next: Vec<usize> = roots.into_iter().rev().collect();
        while let Some(f) = next.pop() {
            if !walked.insert(f) {
                continue;
            }
            if times[f] >= OFTEN && is_wanted(&self.names[f]) {
                order.push(self.names[f].as_str());
            }
            let mut callees: Vec<_> = self.called[f].iter().filter(|(callee, _)| !walked.contains(callee)).collect();
            callees.sort_by_key(|(callee, count)| (**count, &self.names[**callee]));
            next.extend(callees.into_iter().map(|(callee, _)| *callee));
        }
        order
    }

    fn calls_of(&self, function: usize) -> u64 {
        self.called[function].values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_whether_they_mean_something_without_the_hash() {
        let shared = (0..30).map(|i| format!("_ZN4core4drop17h01234567{i:08x}E\0")).collect::<String>();
        let once = "_ZN8kubelith5serve17h0123456789abcdefE";
        let names = Names::of(format!("\x7fELF\0mi_free\0{once}\0{shared}").as_bytes());
        let exact = "_ZN4core4drop17h0123456700000007E";
        let table = [
            (once, format!("{once}\n")),
            (exact, format!("{exact} exact\n")),
            ("mi_free", "mi_free\n".to_owned()),
            ("_RNvCs1_7___rustc", "_RNvCs1_7___rustc exact\n".to_owned()),
        ];
        for (name, want) in table {
            assert_eq!(names.line(name), want);
        }
        assert_eq!(plain(once), "_ZN8kubelith5serve");
    }

    /// `main` calls `once`, `often`, which calls itself and `below`, and `oftener`.
    const COUNTS: &str = "\
positions: line
events: Ir

fn=(1) main
10 500
cfn=(2) often
calls=300 0
11 900000
cfn=(3) once
calls=1 0
* 900000
cfn=(4) oftener
calls=900 0
* 900000

fn=(2)
20 30000
cfn=(5) below
calls=400 0
21 4000
cfn=(6) often'2
calls=6 0
31 1

fn=(3)
30 40000
cfn=(4)
calls=2 0
30 40000
";

    #[test]
    fn functions_stand_behind_those_that_call_them() {
        let calls = Calls::parse(COUNTS);
        assert_eq!(calls.names, ["main", "often", "once", "oftener", "below"]);
        assert_eq!(calls.called[1], [(4, 400), (1, 6)].into());
        assert_eq!(calls.order(|_| true), ["oftener", "often", "below"]);
        assert_eq!(calls.order(|name| name != "often"), ["oftener", "below"]);
    }
}
