//! The inline completion that a client was shown last, so that typing it costs no call of a model.
//!
//! Must not know connections or models.

/// A cursor in a whole document.
pub(crate) struct Cursor {
    pub path: Option<String>,
    pub before: String,
    pub after: String,
}

/// The last text that was proposed, and where.
pub(crate) struct Proposal {
    pub cursor: Cursor,
    pub text: String,
}

impl Proposal {
    /// The rest of the proposal, where all that has changed is that its beginning was typed.
    pub(crate) fn rest_at(&self, cursor: &Cursor) -> Option<&str> {
        let typed = cursor.before.strip_prefix(self.cursor.before.as_str())?;
        let rest = self.text.strip_prefix(typed)?;
        let is_same = self.cursor.path == cursor.path && self.cursor.after == cursor.after;
        // A request for the same text asks for something else.
        (is_same && !typed.is_empty() && !rest.trim().is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_characters_of_a_proposal_leave_the_rest() {
        let cursor = |before: &str| Cursor { path: None, before: before.into(), after: ";\n".into() };
        let proposal = Proposal { cursor: cursor("let x = "), text: "a + b".into() };
        assert_eq!(proposal.rest_at(&cursor("let x = ")), None, "nothing was typed");
        assert_eq!(proposal.rest_at(&cursor("let x = a")), Some(" + b"));
        assert_eq!(proposal.rest_at(&cursor("let x = a ")), Some("+ b"));
        assert_eq!(proposal.rest_at(&cursor("let x = b")), None);
        assert_eq!(proposal.rest_at(&cursor("let x = a + b")), None, "all of it was typed");
        assert_eq!(proposal.rest_at(&cursor("let x =")), None);
        let elsewhere = Cursor { path: Some("b".into()), ..cursor("let x = a") };
        assert_eq!(proposal.rest_at(&elsewhere), None);
        assert_eq!(proposal.rest_at(&Cursor { after: "\n".into(), ..cursor("let x = a") }), None);
    }
}
