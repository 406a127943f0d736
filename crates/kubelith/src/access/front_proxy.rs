//! Front proxies that vouch for users in headers: their authorities are read from a file and followed.

use super::authorities::Authorities;
use super::files::{self, Followed};
use crate::options::RequestHeaderOptions;
use arc_swap::ArcSwapOption;
use kubelith_auth::authn::request_header::{RequestHeaderConfig, RequestHeaderNames};
use kubelith_auth::authn::x509::CaPool;
use kubelith_server::lifecycle::Tasks;
use std::sync::Arc;

pub struct FrontProxy {
    file: Followed,
    current: RequestHeaderConfig,
    pub config: Arc<ArcSwapOption<RequestHeaderConfig>>,
}

impl FrontProxy {
    pub fn load(options: &RequestHeaderOptions, known: &Authorities) -> Result<FrontProxy, String> {
        let file = Followed::read(vec![options.client_ca_file.clone()])?;
        let current = RequestHeaderConfig {
            headers: options.names.clone().normalized()?,
            allowed_names: options.allowed_names.clone(),
            ca: known.read(file.content())?,
        };
        let config = Arc::new(ArcSwapOption::from_pointee(current.clone()));
        Ok(FrontProxy { file, current, config })
    }

    pub fn names(&self) -> &RequestHeaderNames {
        &self.current.headers
    }

    pub fn follow(mut self, tasks: &Tasks) {
        files::every_interval(tasks, "front-proxy-ca-reload", move || self.reload());
    }

    fn reload(&mut self) -> Result<(), String> {
        let Some(pem) = self.file.changed()? else { return Ok(()) };
        self.current.ca = CaPool::from_pem(&pem)?;
        self.config.store(Some(Arc::new(self.current.clone())));
        self.file.accept(pem);
        tracing::info!("authorities of front proxies reloaded");
        Ok(())
    }
}
