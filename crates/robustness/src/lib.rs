//! Robustness runs: clients write, read and watch while faults are injected; every request is recorded with its answer, and
//! the history is checked against what the server promises.
//!
//! `plan` says what to run, `run` runs it, `checker` judges. A seed repeats the plan (which operations, which faults, in
//! which order); it cannot repeat how the operating system interleaves them.

pub mod checker;
pub mod faults;
pub mod fuzz;
pub mod history;
pub mod isolation;
pub mod load;
pub mod memory;
pub mod overload;
pub mod plan;
pub mod pressure;
pub mod proxy;
pub mod run;
pub mod serving;
pub mod site;
pub mod soak;
pub mod watchers;
pub mod wire;
