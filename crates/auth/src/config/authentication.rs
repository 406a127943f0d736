//! AuthenticationConfiguration: issuers of tokens, how their claims become users, and who may be anonymous.

use super::read::{Reader, document};
use kubelith_meta::{Str, Value};

const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthenticationConfig {
    pub jwt: Vec<JwtConfig>,
    /// `None`: the flag `--anonymous-auth` decides.
    pub anonymous: Option<AnonymousConfig>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnonymousConfig {
    pub enabled: bool,
    /// Paths to which it is limited; empty: all.
    pub paths: Vec<Str>,
}

/// One issuer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JwtConfig {
    pub issuer: IssuerConfig,
    pub claim_rules: Vec<ClaimRule>,
    pub username: Mapping,
    pub groups: Mapping,
    pub uid: Mapping,
    pub extra: Vec<ExtraMapping>,
    pub user_rules: Vec<Rule>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct IssuerConfig {
    pub url: Str,
    pub discovery_url: Str,
    /// PEM; empty: the system's authorities.
    pub certificate_authority: Str,
    pub audiences: Vec<Str>,
    pub audience_match_policy: Str,
    pub egress_selector_type: Str,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClaimRule {
    pub claim: Str,
    pub required_value: Str,
    pub rule: Rule,
}

/// An expression that must be true.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    pub expression: Str,
    pub message: Str,
}

/// Where a property of the user comes from: a claim or an expression.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mapping {
    pub claim: Str,
    pub prefix: Option<Str>,
    pub expression: Str,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExtraMapping {
    pub key: Str,
    pub expression: Str,
}

/// The flags `--oidc-*`, which are one issuer without expressions.
#[derive(Debug, Clone, Default)]
pub struct OidcFlags {
    pub issuer_url: Str,
    pub client_id: Str,
    pub username_claim: Str,
    pub username_prefix: Str,
    pub groups_claim: Str,
    pub groups_prefix: Str,
    pub ca_pem: Str,
    pub required_claims: Vec<(Str, Str)>,
}

impl AuthenticationConfig {
    /// Decodes the file's content.
    pub fn decode(value: &Value) -> Result<AuthenticationConfig, String> {
        let mut reader = document(value, "AuthenticationConfiguration", &VERSIONS)?;
        let config = AuthenticationConfig {
            jwt: reader.objects("jwt", JwtConfig::decode)?,
            anonymous: reader.optional_object("anonymous", |r| {
                let paths = |r: &mut Reader<'_>| r.text("path");
                Ok(AnonymousConfig {
                    enabled: r.optional_flag("enabled")?.unwrap_or(false),
                    paths: r.objects("conditions", paths)?,
                })
            })?,
        };
        reader.finish()?;
        Ok(config)
    }
}

impl JwtConfig {
    fn decode(r: &mut Reader<'_>) -> Result<JwtConfig, String> {
        let issuer = r.object("issuer", |r| {
            Ok(IssuerConfig {
                url: r.text("url")?,
                discovery_url: r.text("discoveryURL")?,
                certificate_authority: r.text("certificateAuthority")?,
                audiences: r.texts("audiences")?,
                audience_match_policy: r.text("audienceMatchPolicy")?,
                egress_selector_type: r.text("egressSelectorType")?,
            })
        })?;
        let claim_rules = r.objects("claimValidationRules", |r| {
            Ok(ClaimRule {
                claim: r.text("claim")?,
                required_value: r.text("requiredValue")?,
                rule: Rule { expression: r.text("expression")?, message: r.text("message")? },
            })
        })?;
        let prefixed = |r: &mut Reader<'_>| {
            Ok(Mapping {
                claim: r.text("claim")?,
                prefix: r.optional_text("prefix")?,
                expression: r.text("expression")?,
            })
        };
        let plain = |r: &mut Reader<'_>| {
            Ok(Mapping { claim: r.text("claim")?, prefix: None, expression: r.text("expression")? })
        };
        let (username, groups, uid, extra) = r.object("claimMappings", |r| {
            let extra =
                |r: &mut Reader<'_>| Ok(ExtraMapping { key: r.text("key")?, expression: r.text("valueExpression")? });
            Ok((
                r.object("username", prefixed)?,
                r.object("groups", prefixed)?,
                r.object("uid", plain)?,
                r.objects("extra", extra)?,
            ))
        })?;
        let user_rules = r.objects("userValidationRules", |r| {
            Ok(Rule { expression: r.text("expression")?, message: r.text("message")? })
        })?;
        Ok(JwtConfig { issuer, claim_rules, username, groups, uid, extra, user_rules })
    }

    /// The issuer that the flags describe.
    pub fn from_flags(flags: &OidcFlags) -> JwtConfig {
        let prefix = match flags.username_prefix.as_str() {
            "-" => Str::default(),
            // Other claims than a mail address are unique for their issuer only.
            "" if flags.username_claim != "email" => format!("{}#", flags.issuer_url).into(),
            prefix => prefix.into(),
        };
        let groups = match flags.groups_claim.is_empty() {
            true => Mapping::default(),
            false => Mapping {
                claim: flags.groups_claim.clone(),
                prefix: Some(flags.groups_prefix.clone()),
                expression: Str::default(),
            },
        };
        let required = flags.required_claims.iter().map(|(claim, value)| ClaimRule {
            claim: claim.clone(),
            required_value: value.clone(),
            rule: Rule::default(),
        });
        JwtConfig {
            issuer: IssuerConfig {
                url: flags.issuer_url.clone(),
                audiences: vec![flags.client_id.clone()],
                certificate_authority: flags.ca_pem.clone(),
                ..IssuerConfig::default()
            },
            claim_rules: required.collect(),
            username: Mapping { claim: flags.username_claim.clone(), prefix: Some(prefix), expression: Str::default() },
            groups,
            ..JwtConfig::default()
        }
    }
}
