//! Texts of the settings that replace built-in ones.

use domain::tool::ToolSpec;

/// The description that the user wrote for a tool.
pub(crate) fn own_description(spec: &ToolSpec, prompts: &config::Prompts) -> Option<String> {
    own_text(prompts.tool(&spec.name, &spec.offered_name()))
}

/// A prompt of the user's. One that cannot be looked up is logged, and the built-in text takes its place.
pub(crate) fn own_text(text: Option<&config::LazyText>) -> Option<String> {
    match text?.get_blocking() {
        Ok(text) => Some(text),
        Err(failure) => {
            tracing::warn!(%failure, "a prompt of the settings is not used");
            None
        }
    }
}
