//! The user's accounts with providers, as clients show them. No key and no token is ever part of them.

use crate::model::ModelInfo;

#[derive(Clone, PartialEq, Debug)]
pub struct ProviderStatus {
    pub id: String,
    /// The settings name it.
    pub is_configured: bool,
    pub state: AccountState,
    pub source: Option<KeySource>,
    /// Ways to log in; empty: none is needed or possible here.
    pub methods: Vec<LoginMethod>,
    pub models: Vec<ModelInfo>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccountState {
    LoggedIn,
    LoggedOut,
    /// No key is needed.
    Local,
}

/// Where a key comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeySource {
    Settings,
    Login,
    /// The name of the variable.
    Environment(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoginMethod {
    pub key: &'static str,
    pub label: &'static str,
}

/// What a login needs next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoginStep {
    Choose {
        methods: Vec<LoginMethod>,
    },
    /// The user types `code` at `url`; the login ends by itself.
    DeviceCode {
        url: String,
        code: String,
    },
    /// The user types something here.
    Fields(Vec<LoginField>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoginField {
    pub key: &'static str,
    pub label: String,
    pub is_secret: bool,
}
