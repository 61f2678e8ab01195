//! An argument of a slash command or of a server's prompt. Plain data.

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlashArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}
