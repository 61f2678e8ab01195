//! The settings of one chat. Plain data.

/// What can be set for a chat. Only what is set changes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionSettings {
    pub title: Option<String>,
    /// `provider/name`.
    pub model: Option<String>,
    /// `agent` or `plan`, or one of the user's own. `code` means `agent`.
    pub behavior: Option<String>,
    pub variant: Option<String>,
    /// Asks are answered yes by themselves; deny rules hold all the same.
    pub trust: Option<bool>,
}

impl SessionSettings {
    /// Takes over what `change` sets.
    pub fn apply(&mut self, change: &SessionSettings) {
        let SessionSettings { title, model, behavior, variant, trust } = change.clone();
        self.title = title.or(self.title.take());
        self.model = model.or(self.model.take());
        self.behavior = behavior.or(self.behavior.take());
        self.variant = variant.or(self.variant.take());
        self.trust = trust.or(self.trust);
    }

    pub fn is_empty(&self) -> bool {
        *self == SessionSettings::default()
    }
}
