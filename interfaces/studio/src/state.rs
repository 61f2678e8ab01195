//! What the process knows: open and closed tabs, preferences, the console, connections, plugins. Plain data behind one lock.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::connections::Connections;
use crate::console::Console;
use crate::model::{Preferences, TabRecord};
use crate::plugin::Plugin;
use crate::waiting_call::WaitingCall;

#[derive(Default)]
pub(crate) struct Model {
    pub tabs: Vec<TabRecord>,
    pub closed: Vec<TabRecord>,
    pub preferences: Preferences,
    pub console: Console,
    pub connections: Connections,
    pub plugins: Vec<Plugin>,
    /// Tool calls that wait for a click.
    pub tool_calls: Vec<WaitingCall>,
    /// The normalized specification of a tab, once it was needed.
    pub specifications: HashMap<String, Arc<Value>>,
    /// Scripts by the hash of their code.
    pub scripts: HashMap<String, Arc<str>>,
}

impl Model {
    pub(crate) fn tab(&self, id: &str) -> Option<&TabRecord> {
        self.tabs.iter().find(|tab| tab.id == id)
    }

    pub(crate) fn tab_mut(&mut self, id: &str) -> Option<&mut TabRecord> {
        self.tabs.iter_mut().find(|tab| tab.id == id)
    }
}

pub(crate) fn shown_plugins(model: &Model) -> Vec<Value> {
    model.plugins.iter().map(|plugin| plugin.shown(&users(model, &plugin.name))).collect()
}

/// The tabs whose interface was made with tools of a plugin, closed ones too: they can be opened again.
pub(crate) fn users(model: &Model, name: &str) -> Vec<Value> {
    let uses = |tab: &&TabRecord| tab.tools_in_use().iter().any(|used| used.plugin == name);
    let user = |tab: &TabRecord| json!({"tab": tab.id, "title": tab.title});
    model.tabs.iter().chain(&model.closed).filter(uses).map(user).collect()
}
