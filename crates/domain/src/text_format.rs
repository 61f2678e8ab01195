//! Arguments of tools as plain text instead of JSON.

/// How a model writes the one argument of a tool as plain text, where its API allows that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextFormat {
    /// The argument that the text becomes.
    pub argument: &'static str,
    /// A grammar of Lark.
    pub grammar: &'static str,
    /// The description beside the grammar, which says the form.
    pub description: &'static str,
}
