//! Reads raw layers of settings and resolves them, with the origin of each value. The only crate that reads the
//! environment and knows where home is. It decides nothing by the settings: the engine decides about approvals, and llm
//! speaks to providers.
//!
//! From the lowest layer to the highest: defaults, keys in environment variables, `initializationOptions`,
//! `ECA_CONFIG`, `DRAGOMAN_CONFIG`, the global files, the project files, plugins, extra files, the command line; in each place
//! ECA's file lies below Dragoman's. Managed settings of the machine are read first and only take away (`managed`).
//!
//! Invariants:
//! - A file that cannot be read as a whole is not used at all, and every tool call asks until it is corrected.
//! - The author of a repository writes its project files: keys that could do harm take effect only in a folder that
//!   the user trusts (`trust`); keys that make approvals stricter or limits smaller always take effect.
//! - A deny rule is never lost, whichever layer it stands in.
//! - Each key is in the schema (`schema`) and has a reader, or is reported as not supported.
//! - Secrets are looked up at their first use, shown masked, and known to the `Redactor`.

mod acp_agents;
mod address;
mod agent_files;
mod approval;
mod auto_compact;
mod aws;
mod behavior;
mod budget;
mod changed_files;
mod chat;
mod claude;
mod clock;
mod credentials;
mod cursor;
mod custom_tools;
mod defaults;
mod destination;
mod eca_names;
mod environment;
pub mod front_matter;
mod goal;
mod hooks;
mod ignored_keys;
mod inline_chat;
mod jsonc;
mod language_servers;
mod layer;
mod lazy_text;
mod legacy_keys;
mod log_level;
mod managed;
mod managed_layer;
mod map;
mod mcp;
mod mcp_edit;
mod mcp_logins;
mod memory;
mod model_families;
mod netrc;
mod network;
mod origin;
pub mod places;
mod plugin_files;
pub mod plugins;
mod private_file;
mod provider;
mod provider_environment;
mod resolve;
mod reviewer;
mod rule;
mod sandbox;
mod schema;
mod secret;
mod seen_file;
mod settings;
mod settings_edit;
mod show;
mod store;
mod studio_credentials;
mod telemetry;
mod tree;
pub mod trust;
mod trust_review;
mod undo;
mod untrusted;
mod variables;
mod web_search;
mod worker;

pub use acp_agents::{AcpAgent, AcpAgentFile, is_agent_name};
pub use address::masked as masked_address;
pub use approval::{Approval, ApprovalRules};
pub use aws::{AwsContainer, AwsSettings};
pub use behavior::{BehaviorSettings, Prompts};
pub use budget::Budget;
pub use chat::ChatSettings;
pub use clock::{local_now, local_zone};
pub use credentials::{AccessToken, CredentialFile, Credentials, StoredCredential};
pub use custom_tools::CustomTool;
pub use destination::VENDOR_HOSTS;
pub use environment::Environment;
pub use goal::GoalSettings;
pub use hooks::{BlockingHook, Hook, HookAction, HookCommand, HookEvent, HookFormat, HookMatcher};
pub use ignored_keys::IgnoredKey;
pub use inline_chat::InlineChatSettings;
pub use language_servers::LanguageServer;
pub use lazy_text::{LazyText, SecretSource};
pub use log_level::LogLevel;
pub use managed::{Managed, ManagedRules};
pub use map::MapSettings;
pub use mcp::{McpGrant, McpOauth, McpServer, McpTransport};
pub use mcp_edit::McpFile;
pub use mcp_logins::McpLoginFile;
pub use memory::MemorySettings;
pub use model_families::{EditFormat, FamilyRule};
pub use network::NetworkSettings;
pub use origin::Origin;
pub use provider::{ModelSettings, ProviderSettings};
pub use resolve::{Inputs, Resolved, resolve};
pub use rule::Rule;
pub use sandbox::SandboxSettings;
pub use schema::{configuration_page, json_schema, nearest};
pub use secret::{Redactor, Secret};
pub use settings::{McpLoginPlace, Settings, ShellSettings, ToolSettings};
pub use settings_edit::{NewValue, SavedFile, SettingsChange, SettingsFile};
pub use show::masked_server_entry;
pub use store::{StoreAddress, may_name_store};
pub use studio_credentials::StudioCredentialFile;
pub use telemetry::{TelemetryEncoding, TelemetrySettings, TelemetryTarget, pairs as telemetry_pairs};
pub use undo::UndoSettings;
pub use web_search::WebSearchSettings;
pub use worker::WorkerSettings;

/// Reads JSON with comments; the error says where it is wrong.
pub fn parse_json_with_comments(text: &str) -> Result<serde_json::Value, String> {
    jsonc::parse(text).map(serde_json::Value::Object).map_err(|error| error.0)
}
