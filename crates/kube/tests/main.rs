//! The built-in resources, from request to response. One program, for to link one takes longer than to run most of these tests.

mod support;
mod widgets;

mod adding_a_resource;
mod admission;
mod answers;
mod initial_events;
mod kinds;
mod rules;
mod selectors;
mod verbs;
mod watch_model;
