//! One generic create, read, update and delete over the store, for every resource.
//!
//! `create.rs`, `update.rs` and `delete.rs` each fix the order of one life cycle; what a kind does differently
//! is its `Strategy`. Only this crate turns errors of the store into Statuses.

pub mod admission;
mod create;
mod delete;
mod error;
mod judged;
pub mod objects;
mod options;
mod prepared;
mod resource;
mod rewrite;
pub mod served;
mod strategy;
mod turns;
mod typed;
mod update;
mod working;

pub use create::{Created, Wanted};
pub use delete::{DeleteBy, DeleteOutcome, DeleteResult};
pub use kubelith_meta::call::{Call, Mode, Warnings};
pub use kubelith_schema::lifecycle::{
    DeleteOptions, DeleteStep, Deletion, GarbageCollection, Generation, Part, Preconditions, Propagation, count_change,
};
pub use objects::{Objects, Resources};
pub use options::ReadAt;
pub use prepared::{Prepared, TIME as TIME_OF_PREPARED};
pub use resource::{Conversion, Current, Encoder, Resource, WorkingVersion, resource_version_of, set_resource_version};
pub use strategy::{Begun, Plain, Reservation, Strategy};
pub use turns::Turns;
pub use typed::{TypedCodec, TypedShape, render, select};
pub use update::{Change, IfAbsent, Judged, OPTIMISTIC_LOCK, Outcome, Updated};
pub use working::Working;
