//! MCP servers as plugins: those of the user's settings, what each said when it was tried last, adding and removing.
//!
//! Must not know how servers are configured or started: the program hands that over. Invariant: a server is started only to
//! try one that was just added, to make a call that the user allowed, or because the user asked, and ends after it.

use domain::Failure;
use serde::Deserialize;
use serde_json::{Value, json};
use web::ApiError;

use crate::model::TabRecord;
use crate::plugin::Plugin;
use crate::state::{shown_plugins, users};
use crate::studio::{Studio, not_kept};

const LONGEST_NAME: usize = 100;

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
    fn shown_plugins(&self) -> Vec<Value> {
        shown_plugins(&self.model())
    }

    pub(crate) fn show_plugins(&self) {
        self.publish("plugins", &self.shown_plugins());
    }

    /// Tells the page about the plugins, and about the tabs that miss or have one now.
    fn show_plugins_and_users(&self) {
        self.show_plugins();
        let tabs: Vec<String> = {
            let model = self.model();
            let uses_any = |tab: &&TabRecord| !tab.tools_in_use().is_empty();
            model.tabs.iter().filter(uses_any).map(|tab| tab.id.clone()).collect()
        };
        for tab in tabs {
            self.show_tab(&tab);
        }
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
        self.show_plugins_and_users();
        Ok(())
    }

    /// Takes a server out of the settings. One that an interface uses goes only with `is_forced`, after a warning.
    pub(crate) fn remove_plugin(&self, name: &str, is_forced: bool) -> Result<(), ApiError> {
        let used_by = users(&self.model(), name);
        if !is_forced && !used_by.is_empty() {
            return Err(ApiError::conflict(format!("{name} was used for interfaces that are still there."))
                .hint("Remove it all the same if you can do without it: they are still shown.")
                .data(json!({"usedBy": used_by})));
        }
        self.change_plugin(name, |plugin| plugin.state = "uninstalling")?;
        if let Err(failure) = self.plugins.remove(name) {
            self.change_plugin(name, |plugin| {
                plugin.state = "error";
                plugin.message = Some(failure.message.clone());
            })?;
            return Err(refused(&failure));
        }
        self.model().plugins.retain(|plugin| plugin.name != name);
        self.show_plugins_and_users();
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
