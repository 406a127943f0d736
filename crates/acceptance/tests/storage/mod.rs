//! Storage through the real program: encryption, flags, the store's commands, crashes, etcd.

mod commands;
mod crash;
mod definitions;
mod encryption;
mod etcd;
mod flags;
mod past;
mod quota;
mod refused;
mod stored_values;
mod support;
