//! What a chat has selected, in the words of clients.
//!
//! Knows no connection.

use domain::command::SessionSettings;

use crate::wire::ChatId;
use crate::wire::notifications::{ChatConfig, ConfigUpdated};

/// Today's clients call the behavior `agent` "code".
pub(crate) fn agent_name(behavior: &str) -> &str {
    if behavior == "agent" { "code" } else { behavior }
}

/// A model or an agent that a command chose. Clients send their own selection with each prompt, so they must know it.
pub(crate) fn chosen_by_command(chat: ChatId<'_>, change: &SessionSettings) -> Option<Box<ConfigUpdated>> {
    let config = ChatConfig {
        select_model: change.model.clone(),
        select_agent: change.behavior.as_deref().map(|name| agent_name(name).to_owned()),
        ..ChatConfig::default()
    };
    let is_any = change.model.is_some() || change.behavior.is_some();
    is_any.then(|| Box::new(ConfigUpdated { chat_id: Some(chat.to_key()), chat: config }))
}
