//! Who is served when not all can be: the pure part of API priority and fairness, and of service quality.
//!
//! Nothing here waits, locks or reads a clock. Time comes in as nanoseconds since some start ([`Nanos`]), so a
//! simulation of an hour of overload runs in milliseconds and always the same way.
//!
//! A request is matched to a flow schema ([`matching`]), which names a priority level and the flow it is part
//! of. The flow's hand of queues is dealt ([`dealer`]), the shortest of them takes the request, and the level's
//! [`queue_set`] lets requests out by virtual time, as far as it has seats. How many seats a request needs is
//! estimated ([`work`]); how many a level has is its share of the server ([`limits`]), and what others lend it
//! ([`borrowing`]).

pub mod borrowing;
pub mod dealer;
pub mod dropped;
pub mod integrator;
pub mod limits;
pub mod matching;
pub mod quality;
pub mod queue;
pub mod queue_set;
pub mod seat_seconds;
pub mod spec;
pub mod timing;
pub mod watches;
pub mod work;

pub use matching::Digest;
pub use queue_set::{Admission, QueueSet, Ticket};
pub use seat_seconds::SeatSeconds;
pub use spec::{FlowSchema, PriorityLevel};
pub use work::Work;

/// Nanoseconds since a start that all who share it agree on.
pub type Nanos = u64;

pub const SECOND: Nanos = 1_000_000_000;
