//! Certificates and requests for them, read as strictly as the reference's library does, with its words for what is wrong:
//! they reach clients in messages.

mod asn1;
mod certificate;
mod der;
mod extensions;
mod key;
mod names;
pub mod pem;
mod request;
#[cfg(test)]
mod tests;

pub use certificate::Certificate;
pub use key::{Curve, PublicKey};
pub use request::Request;
