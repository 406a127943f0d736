//! The server, from flags to a control plane that runs: for the program, and for tests that have many of them in one process
//! (`kubelith-testing`). Nothing in here is global: what a plane has, it owns.

mod access;
mod admission_metrics;
mod audit;
mod blueprint;
mod cel_command;
mod certificates;
mod chain;
pub mod command;
mod commands;
mod companion;
mod console;
mod egress_metrics;
mod failure;
mod flags;
mod flow_control;
mod limits;
mod options;
pub mod plane;
mod progress;
mod run;
mod storage;
mod store_command;
mod store_export;
mod test_api;
mod version;
mod welcome;
