//! Clients of kube-rs, over pipes.

use crate::connector::Connector;
use crate::{Builder, Error, Kubelith, Result};
use http::header::AUTHORIZATION;
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder};
use kube::{Client, CustomResourceExt};
use tower::ServiceBuilder;

/// Hyper wants to know where a request goes; the pipe does not.
const ORIGIN: &str = "http://kubelith";

impl Kubelith {
    /// A client of the administrator, in namespace `default`.
    pub fn client(&self) -> Client {
        client(self.connector(), Some(self.token()))
    }

    /// A client of a user that the builder was told of.
    pub fn client_as(&self, user: &str) -> Result<Client> {
        let token = self.token_of(user).ok_or_else(|| Error(format!("the builder was not told of {user}")))?;
        Ok(client(self.connector(), Some(token)))
    }

    /// A client that comes with a certificate, which is made for it.
    pub fn client_with_certificate(&self, user: &str, group: Option<&str>) -> Result<Client> {
        Ok(client(self.connector_with_certificate(user, group)?, None))
    }
}

impl Builder {
    /// The definition of a type that `#[derive(CustomResource)]` made.
    pub fn resource<R: CustomResourceExt>(self) -> Builder {
        self.definition(serde_json::to_string(&R::crd()).unwrap_or_default())
    }
}

fn client(connector: Connector, token: Option<&str>) -> Client {
    let hyper: HyperClient<Connector, Body> = HyperClient::builder(TokioExecutor::new()).build(connector);
    let token = token.and_then(|token| http::HeaderValue::try_from(format!("Bearer {token}")).ok());
    let address = move |mut request: http::Request<Body>| {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        if let Ok(uri) = http::Uri::try_from(format!("{ORIGIN}{path}")) {
            *request.uri_mut() = uri;
        }
        if let Some(token) = &token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        request
    };
    let service = ServiceBuilder::new().map_request(address).service(hyper);
    ClientBuilder::new(service, "default").build()
}
