//! Which requests are the same to a webhook.

use crate::traits::{Attributes, Selector};
use aws_lc_rs::digest::{Context, SHA256};
use kubelith_meta::Str;

/// A hash of all that the webhook would be told, each part with its length so that none can pass for another.
pub fn cache_key(a: &Attributes) -> [u8; 32] {
    let mut key = Key(Context::new(&SHA256));
    let user = &a.user;
    let words = [&user.name, &user.uid, &a.verb, &a.namespace, &a.group, &a.version, &a.resource, &a.subresource];
    words.into_iter().chain([&a.name, &a.path]).for_each(|word| key.text(word));
    key.number(usize::from(a.resource_request));
    key.list(&user.groups);
    key.number(user.extra.len());
    for (name, values) in &user.extra {
        key.text(name);
        key.list(values);
    }
    key.selector(&a.field_selector);
    key.selector(&a.label_selector);
    key.0.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}

struct Key(Context);

impl Key {
    fn number(&mut self, n: usize) {
        self.0.update(&(n as u64).to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.update(text.as_bytes());
    }

    fn list(&mut self, list: &[Str]) {
        self.number(list.len());
        list.iter().for_each(|text| self.text(text));
    }

    fn selector(&mut self, selector: &Selector) {
        self.number(selector.requirements.len());
        for requirement in selector.requirements.iter() {
            self.text(&requirement.key);
            self.number(requirement.operator as usize);
            self.list(&requirement.values);
        }
    }
}
