//! What is kept between runs, in the same store as the chats: the list of tabs, each tab, its specification, and the code
//! of each version.
//!
//! Invariants: the code of a version is written once and never again; a tab is written after what it refers to.

use std::sync::Arc;

use domain::{Failure, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::{Given, Preferences, TabRecord};

const LIST: &str = "studio";
const TABS: &str = "studio.tab";
const SPECIFICATIONS: &str = "studio.specification";
const CODE: &str = "studio.code";

pub(crate) struct Archive {
    store: Arc<dyn Store>,
    /// Writes of one process keep their order.
    writing: tokio::sync::Mutex<()>,
}

/// Everything that is there at the start.
pub(crate) struct Loaded {
    pub tabs: Vec<TabRecord>,
    pub closed: Vec<TabRecord>,
    pub preferences: Preferences,
}

#[derive(Serialize, serde::Deserialize, Default)]
#[serde(default)]
pub(crate) struct TabList {
    pub order: Vec<String>,
    pub closed: Vec<String>,
}

impl Archive {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, writing: tokio::sync::Mutex::default() }
    }

    pub(crate) async fn load(&self) -> Result<Loaded, Failure> {
        let list = self.list().await?;
        let mut tabs = Vec::new();
        for id in &list.order {
            tabs.extend(self.get(TABS, id).await?);
        }
        let mut closed = Vec::new();
        for id in &list.closed {
            closed.extend(self.get(TABS, id).await?);
        }
        let preferences = self.get(LIST, "preferences").await?.unwrap_or_default();
        Ok(Loaded { tabs, closed, preferences })
    }

    pub(crate) async fn list(&self) -> Result<TabList, Failure> {
        Ok(self.get(LIST, "tabs").await?.unwrap_or_default())
    }

    /// `read` gives the newest state when it is this write's turn.
    pub(crate) async fn save_list(&self, read: impl FnOnce() -> TabList) -> Result<(), Failure> {
        let _turn = self.writing.lock().await;
        self.put(LIST, "tabs", &read()).await
    }

    pub(crate) async fn save_tab(
        &self,
        id: &str,
        read: impl FnOnce() -> Option<TabRecord>,
    ) -> Result<(), Failure> {
        let _turn = self.writing.lock().await;
        match read() {
            Some(tab) => self.put(TABS, id, &tab).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn save_preferences(&self, preferences: &Preferences) -> Result<(), Failure> {
        self.put(LIST, "preferences", preferences).await
    }

    pub(crate) async fn save_specification(&self, tab: &str, given: &Given) -> Result<(), Failure> {
        self.put(SPECIFICATIONS, tab, given).await
    }

    pub(crate) async fn specification(&self, tab: &str) -> Result<Option<Given>, Failure> {
        self.get(SPECIFICATIONS, tab).await
    }

    pub(crate) async fn add_code(&self, tab: &str, number: u64, code: &str) -> Result<(), Failure> {
        self.store.put(CODE, &code_key(tab, number), code.to_owned()).await
    }

    pub(crate) async fn code(&self, tab: &str, number: u64) -> Result<Option<String>, Failure> {
        self.store.get(CODE, &code_key(tab, number)).await
    }

    async fn put(&self, kind: &str, key: &str, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value)
            .map_err(|error| Failure::internal(format!("{kind}/{key} cannot be written: {error}.")))?;
        self.store.put(kind, key, text).await
    }

    async fn get<T: DeserializeOwned>(&self, kind: &str, key: &str) -> Result<Option<T>, Failure> {
        let Some(text) = self.store.get(kind, key).await? else { return Ok(None) };
        let read = serde_json::from_str(&text);
        read.map(Some).map_err(|error| Failure::internal(format!("{kind}/{key} cannot be read: {error}.")))
    }
}

fn code_key(tab: &str, number: u64) -> String {
    format!("{tab}/{number:08}")
}
