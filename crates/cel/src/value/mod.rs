pub mod escape;
