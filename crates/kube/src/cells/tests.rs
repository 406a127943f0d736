//! dummy
