//! Starting and stopping: named hooks, supervised tasks, the signals of a graceful stop and what waits for
//! them.

pub mod hooks;
pub mod signals;
pub mod tasks;
pub mod termination;
pub mod wait_group;

pub use hooks::{Begun, HookContext, PostStartHook, PreShutdownHook};
pub use signals::Lifecycle;
pub use tasks::Tasks;
pub use wait_group::WaitGroup;
