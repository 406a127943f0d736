//! Static tokens from a CSV file: token, user name, user uid, and optionally a quoted list of groups.

use super::csv;
use crate::traits::{Answer, AuthResponse, Authentication, TokenAuthenticator};
use crate::user::User;
use kubelith_meta::Str;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct TokenFile {
    tokens: HashMap<String, Arc<User>>,
}

impl TokenFile {
    pub fn new(tokens: impl IntoIterator<Item = (String, User)>) -> TokenFile {
        TokenFile { tokens: tokens.into_iter().map(|(t, u)| (t, Arc::new(u))).collect() }
    }

    /// Reads the file's `content`; `path` is for messages only.
    pub fn parse(content: &str, path: &str) -> Result<TokenFile, String> {
        let mut tokens = HashMap::new();
        for (i, record) in csv::parse(content)?.into_iter().enumerate() {
            let number = i + 1;
            let [token, name, uid, rest @ ..] = record.as_slice() else {
                return Err(format!(
                    "token file '{path}' must have at least 3 columns (token, user name, user uid), found {}",
                    record.len()
                ));
            };
            if token.is_empty() {
                tracing::warn!("empty token has been found in token file '{path}', record number '{number}'");
                continue;
            }
            let groups = rest.first().map(|g| g.split(',').map(Str::from).collect()).unwrap_or_default();
            let user = User { name: name.into(), uid: uid.into(), groups, ..User::default() };
            if tokens.insert(token.clone(), Arc::new(user)).is_some() {
                tracing::warn!("duplicate token has been found in token file '{path}', record number '{number}'");
            }
        }
        Ok(TokenFile { tokens })
    }
}

impl TokenAuthenticator for TokenFile {
    fn authenticate_token<'a>(&'a self, token: &'a str, _audiences: &'a [Str]) -> Answer<'a, Authentication> {
        Answer::Ready(Ok(self.tokens.get(token).map(|user| AuthResponse::user(user.clone()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns() {
        let file = "\ntoken1,user1,uid1\r\ntoken3,user3,uid3,\"group1,group2\"\n,empty,uid\n\
                    token5,user5,uid5,group5,otherdata\ntoken1,again,uid9";
        let parsed = TokenFile::parse(file, "f").unwrap();
        let user = |t: &str| parsed.tokens.get(t).map(|u| (u.name.as_str(), u.uid.as_str(), u.groups.join("|")));
        assert_eq!(user("token1"), Some(("again", "uid9", String::new())));
        assert_eq!(user("token3"), Some(("user3", "uid3", "group1|group2".into())));
        assert_eq!(user("token5"), Some(("user5", "uid5", "group5".into())));
        assert_eq!(user(""), None);
        assert_eq!(
            TokenFile::parse("a,b,c\nd,e", "/etc/t.csv").unwrap_err(),
            "token file '/etc/t.csv' must have at least 3 columns (token, user name, user uid), found 2"
        );
        assert_eq!(
            TokenFile::parse("a,b\"x,c", "f").unwrap_err(),
            r#"parse error on line 1, column 4: bare " in non-quoted field"#
        );
    }
}
