//! Every built-in API as data: `api/*.api` are texts for people, compiled by the build script into bytes that
//! load within a few milliseconds. Nothing here knows behaviour; conversion between versions is the one thing
//! that data does not say.

mod api;
mod catalog;
mod decode;
#[cfg(test)]
mod encode;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod text;
#[cfg(test)]
mod wire;

pub use api::{Api, Serve};
pub use catalog::{Catalog, Gate, builtin};

pub fn convert(
    mut object: kubelith_meta::Value,
    _from: &kubelith_meta::GroupVersionKind,
    to: &kubelith_meta::GroupVersionKind,
) -> Result<kubelith_meta::Value, String> {
    object.set_at(&["apiVersion"], to.api_version().into());
    Ok(object)
}
