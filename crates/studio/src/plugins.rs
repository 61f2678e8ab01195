//! MCP servers as plugins: those of the user's settings, what each said when it was tried last, adding and removing.
//!
//! Must not know how servers are configured or started: the program hands that over. Invariant: a server is started only to
//! try one that was just added, or because the user asked, and ends after it.

use domain::{BoxFuture, Failure};
use serde::Deserialize;
use serde_json::{Value, json};
use web::ApiError;

use crate::studio::{Studio, not_kept};

const LONGEST_NAME: usize = 100;

/// The MCP servers of the user.
pub trait PluginHost: Send + Sync {
    fn names(&self) -> Vec<String>;
    /// Starts a server, asks what it has, and ends it.
    fn try_out(&self, name: String) -> BoxFuture<'static, TriedPlugin>;
    fn add(&self, name: &str, entry: &Value) -> Result<(), Failure>;
    fn remove(&self, name: &str) -> Result<(), Failure>;
}

/// What came of trying a server.
pub struct TriedPlugin {
    pub version: Option<String>,
    pub tools: Vec<String>,
    /// Why it does not run.
    pub fault: Option<String>,
}

#[derive(Clone)]
pub(crate) struct Plugin {
    name: String,
    state: &'static str,
    version: Option<String>,
    message: Option<String>,
    tools: Vec<String>,
}

impl Plugin {
    pub(crate) fn untried(name: String) -> Self {
        let message = Some("It was not tried yet.".to_owned());
        Self { name, state: "installed", version: None, message, tools: Vec::new() }
    }

    pub(crate) fn shown(&self) -> Value {
        json!({
            "name": self.name,
            "version": self.version,
            "state": self.state,
            "message": self.message,
            "tools": self.tools,
            "usedBy": [],
        })
    }
}

#[derive(Deserialize)]
pub(crate) struct PluginInput {
    name: String,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    url: Option<String>,
}

impl Studio {
    pub(crate) fn shown_plugins(&self) -> Vec<Value> {
        self.model().plugins.iter().map(Plugin::shown).collect()
    }

    pub(crate) fn add_plugin(&self, input: PluginInput) -> Result<Vec<Value>, ApiError> {
        let name = input.name.trim().to_owned();
        if name.is_empty() || name.chars().count() > LONGEST_NAME {
            return Err(ApiError::invalid(format!("A name has 1 to {LONGEST_NAME} characters.")));
        }
        let entry = match (input.command, input.url) {
            (Some(command), None) if !command.trim().is_empty() => {
                json!({"command": command, "args": input.args})
            }
            (None, Some(url)) if !url.trim().is_empty() => json!({"url": url.trim()}),
            _ => return Err(ApiError::invalid("A plugin needs a command or an address.")),
        };
        self.plugins.add(&name, &entry).map_err(|failure| refused(&failure))?;
        self.model().plugins.push(Plugin::untried(name.clone()));
        self.try_plugin(&name)
    }

    /// Tries a server in the background and tells the page.
    pub(crate) fn try_plugin(&self, name: &str) -> Result<Vec<Value>, ApiError> {
        self.change_plugin(name, |plugin| {
            plugin.state = "installing";
            plugin.message = None;
        })?;
        let (studio, name) = (self.clone(), name.to_owned());
        tokio::spawn(async move {
            let tried = studio.plugins.try_out(name.clone()).await;
            let _ = studio.change_plugin(&name, |plugin| {
                plugin.state = if tried.fault.is_none() { "installed" } else { "error" };
                plugin.message = tried.fault;
                plugin.version = tried.version;
                plugin.tools = tried.tools;
            });
        });
        Ok(self.shown_plugins())
    }

    fn change_plugin(&self, name: &str, change: impl FnOnce(&mut Plugin)) -> Result<(), ApiError> {
        {
            let mut model = self.model();
            let plugin = model.plugins.iter_mut().find(|plugin| plugin.name == name);
            change(plugin.ok_or_else(|| ApiError::not_found("There is no such plugin."))?);
        }
        self.publish("plugins", &self.shown_plugins());
        Ok(())
    }

    pub(crate) fn remove_plugin(&self, name: &str) -> Result<(), ApiError> {
        self.change_plugin(name, |plugin| plugin.state = "uninstalling")?;
        if let Err(failure) = self.plugins.remove(name) {
            self.change_plugin(name, |plugin| {
                plugin.state = "error";
                plugin.message = Some(failure.message.clone());
            })?;
            return Err(refused(&failure));
        }
        self.model().plugins.retain(|plugin| plugin.name != name);
        self.publish("plugins", &self.shown_plugins());
        Ok(())
    }
}

fn refused(failure: &Failure) -> ApiError {
    let mut error = not_kept(failure);
    if failure.kind == domain::FailureKind::User {
        error.status = axum::http::StatusCode::BAD_REQUEST;
        error.kind = "invalid";
    }
    error
}
