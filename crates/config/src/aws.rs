//! What AWS's own tools read from the environment, for Bedrock: keys, the profile and its files, the addresses that give
//! credentials to containers and machines.

use std::path::PathBuf;

use crate::environment::Environment;
use crate::secret::{Redactor, Secret};

/// Where the credentials of a machine of EC2 are.
const METADATA_ENDPOINT: &str = "http://169.254.169.254";
/// Where relative addresses of containers begin.
const CONTAINER_ENDPOINT: &str = "http://169.254.170.2";

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AwsSettings {
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<Secret>,
    pub session_token: Option<Secret>,
    pub region: Option<String>,
    /// The profile that the environment names.
    pub profile: Option<String>,
    pub config_file: PathBuf,
    pub credentials_file: PathBuf,
    /// The folder with the tokens of `aws sso login`.
    pub sso_cache: PathBuf,
    /// In place of the address of the sign-in service.
    pub sso_endpoint: Option<String>,
    pub container: Option<AwsContainer>,
    /// The address of the machine's metadata; `None`: it is switched off.
    pub metadata_endpoint: Option<String>,
}

/// The address that gives a container its credentials.
#[derive(Debug, Clone, PartialEq)]
pub struct AwsContainer {
    pub url: String,
    pub token: Option<Secret>,
    pub token_file: Option<PathBuf>,
}

impl AwsSettings {
    pub(crate) fn read(environment: &Environment, redactor: &Redactor) -> Self {
        let secret = |name: &str| {
            let secret = environment.var(name)?;
            redactor.add_secret(secret);
            Some(Secret::new(secret))
        };
        let text = |names: &[&str]| environment.first(names).map(|(_, value)| value.to_owned());
        let folder = environment.home().join(".aws");
        let path = |name: &str, otherwise: &str| {
            environment.var(name).map_or_else(|| folder.join(otherwise), |path| environment.expand_home(path))
        };
        let relative = text(&["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"]);
        let relative = relative.map(|path| format!("{CONTAINER_ENDPOINT}{path}"));
        let container = relative.or_else(|| text(&["AWS_CONTAINER_CREDENTIALS_FULL_URI"]));
        Self {
            access_key_id: text(&["AWS_ACCESS_KEY_ID"]),
            secret_access_key: secret("AWS_SECRET_ACCESS_KEY"),
            session_token: secret("AWS_SESSION_TOKEN"),
            region: text(&["AWS_REGION", "AWS_DEFAULT_REGION"]),
            profile: text(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]),
            config_file: path("AWS_CONFIG_FILE", "config"),
            credentials_file: path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            sso_cache: folder.join("sso/cache"),
            sso_endpoint: text(&["AWS_ENDPOINT_URL_SSO"]),
            container: container.map(|url| AwsContainer {
                url,
                token: secret("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
                token_file: text(&["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).map(PathBuf::from),
            }),
            metadata_endpoint: (!environment.flag("AWS_EC2_METADATA_DISABLED")).then(|| {
                text(&["AWS_EC2_METADATA_SERVICE_ENDPOINT"]).unwrap_or_else(|| METADATA_ENDPOINT.to_owned())
            }),
        }
    }
}
