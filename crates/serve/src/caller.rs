//! Who uses the server: an account's name, its role, and the folders that it may work in.
//!
//! Must not know requests or commands. Invariant: roles are ordered; a greater one may do everything a smaller one may.

use std::path::PathBuf;

use domain::CancellationToken;

/// Why a stream or connection ends that `Caller::ended` ends.
pub const ENDED: &str = "The token was revoked, or the rights of its account were changed.";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Opens, lists and follows chats.
    View,
    /// Also prompts, steers, stops, approves and answers.
    Drive,
    /// Everything that the server allows.
    Admin,
}

impl Role {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "view" => Some(Self::View),
            "drive" => Some(Self::Drive),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Drive => "drive",
            Self::Admin => "admin",
        }
    }
}

/// A request or connection that has shown a token.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The account.
    pub name: String,
    pub role: Role,
    /// Real paths; a caller without any opens nothing.
    pub workspaces: Vec<PathBuf>,
    /// US dollars in all; `None`: only the server's own limits hold.
    pub budget: Option<f64>,
    /// Cancelled soon after the token was revoked or the account changed: everything that serves this caller ends.
    pub ended: CancellationToken,
}
