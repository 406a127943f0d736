//! Collects warnings while a request is handled and puts them into the answer's headers:
//! `Warning: 299 - "text"`, each text once, bounded in length.

use super::Layer;
use http::header::WARNING;
use kubelith_http::warnings::{Warnings, header_values};

pub fn layer() -> Layer {
    Layer::from_fn("warnings", |mut request, next| {
        let warnings = Warnings::default();
        request.context_mut().warnings = Some(warnings.clone());
        next.handle(request).map(move |mut response| {
            for value in header_values(&warnings.take()) {
                response.headers_mut().append(WARNING, value);
            }
            response
        })
    })
}
