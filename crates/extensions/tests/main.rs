//! Custom resources, from request to response.

mod common;

mod serving;
mod shadows;
mod webhook;
