//! What a front-end may choose from in a workspace.

use domain::command::{Catalog, SessionSettings};

use crate::behavior;
use crate::workspace::Workspace;

impl Workspace {
    pub fn catalog(&self) -> Catalog {
        Catalog {
            models: self.models.list(),
            behaviors: behavior::names(&self.settings),
            default_model: self.models.default_model(),
            default_behavior: behavior::default_name(&self.settings),
            welcome: behavior::welcome(&self.settings),
            notices: self.notices.clone(),
            rewrite_model: self.settings.rewrite_model.clone(),
            inline: SessionSettings {
                model: self.settings.chat_inline.model.clone(),
                behavior: self.settings.chat_inline.agent.clone(),
                variant: self.settings.chat_inline.variant.clone(),
                ..SessionSettings::default()
            },
        }
    }
}
