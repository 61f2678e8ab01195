//! Accounts with providers, as clients show and change them. No type here can hold a key, but the one that brings it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::notifications::Notification;

#[derive(Debug, Serialize)]
pub(crate) struct ProviderList {
    pub providers: Vec<ProviderStatus>,
}

/// An entry of the list, and what `providers/updated` carries.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct ProviderStatus {
    pub id: String,
    pub label: String,
    pub configured: bool,
    pub auth: ProviderAuth,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginMethods>,
    pub models: Vec<ProviderModel>,
}

impl Notification for ProviderStatus {
    const NAME: &'static str = "providers/updated";
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProviderAuth {
    pub status: &'static str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_var: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct LoginMethods {
    pub methods: Vec<LoginMethod>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct LoginMethod {
    pub key: &'static str,
    pub label: &'static str,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct ProviderModel {
    pub id: String,
    pub capabilities: ModelCapabilities,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<ModelCost>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelCapabilities {
    pub reason: bool,
    pub vision: bool,
    pub tools: bool,
    pub web_search: bool,
}

/// Dollars per million tokens.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct ModelCost {
    pub input: f64,
    pub output: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LoginParams {
    pub provider: Option<String>,
    pub method: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct LoginInputParams {
    pub provider: Option<String>,
    /// May hold a key.
    pub data: BTreeMap<String, String>,
}

/// What the client shows next.
#[derive(Debug, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub(crate) enum LoginAction {
    ChooseMethod { methods: Vec<LoginMethod> },
    DeviceCode { url: String, code: String, message: String },
    Input { fields: Vec<InputField> },
    Done,
}

#[derive(Debug, Serialize)]
pub(crate) struct InputField {
    pub key: &'static str,
    pub label: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
}
