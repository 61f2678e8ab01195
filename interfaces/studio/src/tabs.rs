//! Tabs: new, renamed, moved, closed, opened again.
//!
//! Invariant: closing keeps everything; at most `MOST_TABS` are open.

use axum::http::StatusCode;
use serde_json::{Value, json};
use web::ApiError;

use crate::model::{TabRecord, now};
use crate::studio::{Studio, no_tab};

const MOST_TABS: usize = 50;
const LONGEST_TITLE: usize = 100;

impl Studio {
    pub(crate) async fn add_tab(&self, title: Option<String>) -> Result<String, ApiError> {
        let is_named = title.is_some();
        let title = checked_title(title.unwrap_or_else(|| "New tab".to_owned()))?;
        let id = {
            let mut model = self.model();
            if model.tabs.len() >= MOST_TABS {
                let message = format!("{MOST_TABS} tabs are open already.");
                let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "tooMany", message);
                return Err(error.hint("Close one first; it is kept."));
            }
            let id = web::random_id().map_err(|error| ApiError::internal(error.to_string()))?;
            model.tabs.push(TabRecord { id: id.clone(), title, is_named, ..TabRecord::default() });
            id
        };
        self.keep_tab(&id).await?;
        self.keep_list().await?;
        Ok(id)
    }

    pub(crate) async fn rename_tab(&self, id: &str, title: String) -> Result<(), ApiError> {
        let title = checked_title(title)?;
        self.change_tab(id, |tab| {
            tab.title = title;
            tab.is_named = true;
            Ok(())
        })
        .await
    }

    pub(crate) async fn order_tabs(&self, order: &[String]) -> Result<(), ApiError> {
        {
            let mut model = self.model();
            let place = |tab: &TabRecord| order.iter().position(|id| *id == tab.id);
            if order.len() != model.tabs.len() || model.tabs.iter().any(|tab| place(tab).is_none()) {
                return Err(ApiError::conflict("The tabs have changed meanwhile.").hint("Try again."));
            }
            model.tabs.sort_by_key(place);
        }
        self.keep_list().await
    }

    pub(crate) async fn close_tab(&self, id: &str) -> Result<(), ApiError> {
        {
            let mut model = self.model();
            let at = model.tabs.iter().position(|tab| tab.id == id).ok_or_else(no_tab)?;
            let mut tab = model.tabs.remove(at);
            tab.closed_at = Some(now());
            model.specifications.remove(id);
            // Whoever waits for an answer about this tab gets none, which is a no.
            model.tool_calls.retain(|waiting| waiting.tab != id);
            model.closed.push(tab);
            let model = &mut *model;
            model.connections.forget_unused(&model.tabs);
        }
        self.show_connections();
        self.keep_tab(id).await?;
        self.keep_list().await
    }

    pub(crate) async fn reopen_tab(&self, id: &str) -> Result<(), ApiError> {
        {
            let mut model = self.model();
            let at = model.closed.iter().position(|tab| tab.id == id).ok_or_else(no_tab)?;
            let mut tab = model.closed.remove(at);
            tab.closed_at = None;
            model.tabs.push(tab);
        }
        self.keep_tab(id).await?;
        self.keep_list().await
    }

    pub(crate) fn tab_value(&self, id: &str) -> Result<Value, ApiError> {
        let model = self.model();
        model.tab(id).map(|tab| json!(tab.shown(&model.plugins))).ok_or_else(no_tab)
    }
}

fn checked_title(title: String) -> Result<String, ApiError> {
    let title = title.trim().to_owned();
    if title.is_empty() || title.chars().count() > LONGEST_TITLE || title.contains(char::is_control) {
        return Err(ApiError::invalid(format!("A title has 1 to {LONGEST_TITLE} characters.")));
    }
    Ok(title)
}
