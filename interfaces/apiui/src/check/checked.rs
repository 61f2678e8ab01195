//! What the checker says of a module that passed.

/// What is known about a module that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The addresses that the module's request function may call; the caller compares them with what it expects.
    pub servers: Vec<String>,
    /// The literal values of `data-operation`, as written.
    pub operations: Vec<String>,
}
