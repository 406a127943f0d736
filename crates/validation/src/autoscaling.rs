//! To be written.
use crate::Rules;
pub fn rules(_: &str) -> Option<Rules> {
    None
}
