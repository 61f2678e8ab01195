//! Names of things. Each id is its own type, so that one can never take the place of another.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// How the ids of chats begin that an agent of another chat works in.
pub const SUBAGENT_PREFIX: &str = "subagent-";

/// A chat. Made by us or by a client; unique on a machine. It is a string in every format, so it serializes as one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize)]
#[serde(transparent)]
pub struct SessionId(pub Arc<str>);

impl SessionId {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl $name {
            /// Reads what `Display` wrote; anything else is `None`.
            pub fn parse(text: &str) -> Option<Self> {
                let digits = text.strip_prefix($prefix)?;
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return None;
                }
                digits.parse().ok().map(Self)
            }
        }
    };
}

number_id!(
    /// One user request and everything done for it; counted within a session.
    TurnId,
    "turn-"
);
number_id!(
    /// One entry of a history; counted within a session and never used again, not even after a rollback.
    ItemId,
    "item-"
);
number_id!(
    /// A question the engine waits on; counted within a session.
    AskId,
    "ask-"
);
number_id!(
    /// A front-end attached to the engine; counted within a process.
    FrontendId,
    "front-"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_what_it_wrote() {
        assert_eq!(ItemId::parse(&ItemId(17).to_string()), Some(ItemId(17)));
        for bad in ["", "item-", "item--1", "item-+1", "turn-1", "item-99999999999999999999999"] {
            assert_eq!(ItemId::parse(bad), None, "{bad}");
        }
    }
}
