//! The credentials that AWS's own tools read from the environment, for Bedrock.

use crate::environment::Environment;
use crate::secret::{Redactor, Secret};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AwsSettings {
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<Secret>,
    pub session_token: Option<Secret>,
    pub region: Option<String>,
}

impl AwsSettings {
    pub(crate) fn read(environment: &Environment, redactor: &Redactor) -> Self {
        let secret = |name| {
            let secret = environment.var(name)?;
            redactor.add_secret(secret);
            Some(Secret::new(secret))
        };
        let text = |names: &[&str]| environment.first(names).map(|(_, value)| value.to_owned());
        Self {
            access_key_id: text(&["AWS_ACCESS_KEY_ID"]),
            secret_access_key: secret("AWS_SECRET_ACCESS_KEY"),
            session_token: secret("AWS_SESSION_TOKEN"),
            region: text(&["AWS_REGION", "AWS_DEFAULT_REGION"]),
        }
    }
}
