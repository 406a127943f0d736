//! The objects that authenticators look up: tokens are only as good as what they are bound to.

use crate::error::AuthError;
use crate::traits::Answer;
use kubelith_meta::Value;
use std::sync::Arc;

/// Kinds that are looked up, all of the core group's v1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Looked {
    ServiceAccount,
    Secret,
    Pod,
    /// Cluster-scoped: the namespace is empty.
    Node,
}

impl Looked {
    pub fn resource(self) -> &'static str {
        match self {
            Looked::ServiceAccount => "serviceaccounts",
            Looked::Secret => "secrets",
            Looked::Pod => "pods",
            Looked::Node => "nodes",
        }
    }
}

/// Reads current objects; `None` if there is none of that name.
pub trait ObjectGetter: Send + Sync {
    fn get<'a>(
        &'a self,
        kind: Looked,
        namespace: &'a str,
        name: &'a str,
    ) -> Answer<'a, Result<Option<Arc<Value>>, AuthError>>;
}

#[cfg(test)]
pub mod testing {
    use super::*;
    use std::collections::HashMap;
    use std::sync::Mutex;

    /// Objects by kind, namespace and name.
    #[derive(Default)]
    pub struct Objects(pub Mutex<HashMap<(Looked, String, String), Arc<Value>>>);

    impl Objects {
        pub fn put(&self, kind: Looked, object: Value) {
            let key = |f: &str| object.str_at(&["metadata", f]).to_string();
            self.0.lock().unwrap().insert((kind, key("namespace"), key("name")), Arc::new(object));
        }

        pub fn delete(&self, kind: Looked, namespace: &str, name: &str) {
            self.0.lock().unwrap().remove(&(kind, namespace.into(), name.into()));
        }
    }

    impl ObjectGetter for Objects {
        fn get<'a>(
            &'a self,
            kind: Looked,
            namespace: &'a str,
            name: &'a str,
        ) -> Answer<'a, Result<Option<Arc<Value>>, AuthError>> {
            Answer::Ready(Ok(self.0.lock().unwrap().get(&(kind, namespace.into(), name.into())).cloned()))
        }
    }
}
