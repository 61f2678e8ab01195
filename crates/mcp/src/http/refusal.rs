//! Why a server refused a request. Plain data.

/// A server refused a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    /// A sentence about the server.
    pub reason: String,
    /// A login could help.
    pub is_login: bool,
}
