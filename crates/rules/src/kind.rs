//! A kind as a value: facts and functions, each with a default. A kind overrides what it does differently.

use crate::cells::Cells;
use crate::defaults::Defaults;
use crate::gated::{Below, Gates};
use crate::{Env, Rules};
use kubelith_meta::call::Call;
use kubelith_meta::field::ErrorList;
use kubelith_meta::time::Time;
use kubelith_meta::{Status, Value};
use kubelith_schema::lifecycle::{DeleteOptions, DeleteStep, Deletion, GarbageCollection, Generation, Part};
use std::time::Duration;

/// What a kind does in the generic life cycles. The hooks are those of the registry's `Strategy`, where their time is told.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Of its resource.
    pub group: &'static str,
    pub plural: &'static str,
    /// Defaults that the catalogue cannot say, by type. A type stands in one kind's list, whoever else has it.
    pub defaults: Defaults,
    pub switched: &'static [Switched],
    /// Fields that exist only while a gate is on, each list below a path.
    pub features: &'static [Below],
    /// What the kind is instead while a gate is on.
    pub variants: &'static [Variant],
    pub generation: Generation,
    pub creates_on_update: bool,
    pub updates_unconditionally: bool,
    pub delete_returns_object: bool,
    pub garbage_collection: GarbageCollection,
    pub complete_read: fn(&mut Value),
    pub prepare_for_create: fn(&Env, &Call, &mut Value),
    pub prepare_for_update: fn(&Env, &Call, Part<'_>, &mut Value, &Value),
    pub rules: Rules,
    /// The rules are no milder about metadata than what is asked of all kinds.
    pub validates_metadata: bool,
    /// What else is checked.
    pub validate: fn(&Call, &Value) -> ErrorList,
    pub validate_update: fn(&Call, Part<'_>, &Value, &Value) -> ErrorList,
    pub warnings_on_create: fn(&Call, &Value) -> Vec<String>,
    pub warnings_on_update: fn(&Call, Part<'_>, &Value, &Value) -> Vec<String>,
    pub canonicalize: fn(&mut Value),
    /// `None`: deletion is never graceful.
    pub graceful_delete: Option<fn(&Value, &mut DeleteOptions) -> bool>,
    pub before_delete: fn(&Call, &DeleteOptions, Deletion) -> Result<(), Status>,
    pub deletes_in_steps: bool,
    pub delete_step: fn(&mut Value, &DeleteOptions, Time) -> DeleteStep,
    pub may_vanish: fn(&Value) -> bool,
    pub time_to_live: fn(&Value) -> Option<Duration>,
    /// Fields that nobody owns by writing to a part: what the part cannot change.
    pub reset_fields: fn(Part<'_>) -> &'static [&'static [&'static str]],
    /// Status is kept on main updates and dropped on create. False for kinds whose status anybody may write.
    pub owns_status: bool,
    /// A create may bring a status.
    pub keeps_status_on_create: bool,
    pub complete_blank: fn(&mut Value),
    /// Fields whose gate is off count in metadata.generation all the same.
    pub counts_dropped: bool,
    /// Cells of tables that no path gives, by the names that the catalogue calls them. A name stands in one kind's list.
    pub cells: Cells,
}

/// What a kind is while a gate is on.
pub type Variant = (&'static str, fn(Kind) -> Kind);

/// Defaults that hold while a gate is on, and those in their place while it is off.
pub struct Switched {
    pub gate: &'static str,
    pub on: Defaults,
    pub off: Defaults,
}

impl Kind {
    pub const PLAIN: Kind = Kind {
        group: "",
        plural: "",
        defaults: &[],
        switched: &[],
        features: &[],
        variants: &[],
        generation: Generation::None,
        creates_on_update: false,
        updates_unconditionally: true,
        delete_returns_object: false,
        garbage_collection: GarbageCollection::DeleteDependents,
        complete_read: |_| {},
        prepare_for_create: |_, _, _| {},
        prepare_for_update: |_, _, _, _, _| {},
        rules: Rules::NONE,
        validates_metadata: false,
        validate: |_, _| ErrorList::default(),
        validate_update: |_, _, _, _| ErrorList::default(),
        warnings_on_create: |_, _| Vec::new(),
        warnings_on_update: |_, _, _, _| Vec::new(),
        canonicalize: |_| {},
        graceful_delete: None,
        before_delete: |_, _, _| Ok(()),
        deletes_in_steps: false,
        delete_step: |_, _, _| DeleteStep::Generic,
        may_vanish: |_| true,
        time_to_live: |_| None,
        reset_fields: |part| match part {
            Part::Main => &[&["status"]],
            Part::Status => &[&["spec"]],
            Part::Other(_) => &[],
        },
        owns_status: true,
        keeps_status_on_create: false,
        complete_blank: |_| {},
        counts_dropped: false,
        cells: &[],
    };

    /// Counts changes of spec in metadata.generation.
    pub const fn generation(mut self, generation: Generation) -> Kind {
        self.generation = generation;
        self
    }

    /// PUT creates.
    pub const fn upserts(mut self) -> Kind {
        self.creates_on_update = true;
        self
    }

    /// PUT needs a resourceVersion.
    pub const fn guarded(mut self) -> Kind {
        self.updates_unconditionally = false;
        self
    }

    /// DELETE answers with the object.
    pub const fn returned(mut self) -> Kind {
        self.delete_returns_object = true;
        self
    }

    pub const fn collects(mut self, policy: GarbageCollection) -> Kind {
        self.garbage_collection = policy;
        self
    }

    /// As it is with these gates.
    pub fn under(self, gates: Gates<'_>) -> Kind {
        self.variants.iter().fold(self, |kind, (gate, variant)| if gates(gate) { variant(kind) } else { kind })
    }
}
