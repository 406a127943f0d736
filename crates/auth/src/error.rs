//! Errors of authenticators and authorizers: one message, or several collected on the way.

use std::fmt;

/// Several errors read `[first, second]`, each wording once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthError {
    messages: Vec<String>,
}

impl AuthError {
    pub fn new(message: impl Into<String>) -> AuthError {
        AuthError { messages: vec![message.into()] }
    }

    /// All of `errors` as one; `None` if there are none.
    pub fn aggregate(errors: impl IntoIterator<Item = AuthError>) -> Option<AuthError> {
        let mut messages: Vec<String> = Vec::new();
        for message in errors.into_iter().flat_map(|e| e.messages) {
            if !messages.contains(&message) {
                messages.push(message);
            }
        }
        if messages.is_empty() { None } else { Some(AuthError { messages }) }
    }

    pub fn messages(&self) -> &[String] {
        &self.messages
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.messages.as_slice() {
            [one] => f.write_str(one),
            many => write!(f, "[{}]", many.join(", ")),
        }
    }
}

impl std::error::Error for AuthError {}

impl From<String> for AuthError {
    fn from(message: String) -> AuthError {
        AuthError::new(message)
    }
}

impl From<&str> for AuthError {
    fn from(message: &str) -> AuthError {
        AuthError::new(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregates_read_as_a_list_of_distinct_messages() {
        let of = |all: &[&str]| AuthError::aggregate(all.iter().map(|m| AuthError::new(*m))).map(|e| e.to_string());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["a"]).unwrap(), "a");
        assert_eq!(of(&["a", "a"]).unwrap(), "a");
        assert_eq!(of(&["a", "b", "a"]).unwrap(), "[a, b]");
    }
}
