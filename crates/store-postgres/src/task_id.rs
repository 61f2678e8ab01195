//! The id of a task: a UUID in its usual form, and nothing else.
//!
//! Workers name folders and branches by it, and rows of the database can be written by others. Invariant: no text becomes an id
//! that is not a UUID, so an id is always one plain file name.

use std::fmt;
use std::ops::Deref;

/// Made by [`crate::TaskQueue::submit`], or read and checked where a row enters this program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TaskId(String);

impl TaskId {
    pub(crate) fn new() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    /// None for everything but the usual form of a UUID: 32 digits in lower case, in five groups.
    pub fn parse(text: &str) -> Option<Self> {
        let id = uuid::Uuid::try_parse(text).ok()?.to_string();
        (id == text).then_some(Self(id))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for TaskId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_uuid_in_its_usual_form_is_an_id() {
        let id = TaskId::new();
        assert_eq!(TaskId::parse(&id), Some(id.clone()));
        for text in [
            "",
            ".",
            "..",
            "../../x",
            "/etc",
            "a b",
            "config.json",
            "0198c2d4a1b27c3d8e4f5a6b7c8d9e0f",
            "{0198c2d4-a1b2-7c3d-8e4f-5a6b7c8d9e0f}",
            "urn:uuid:0198c2d4-a1b2-7c3d-8e4f-5a6b7c8d9e0f",
            "0198C2D4-A1B2-7C3D-8E4F-5A6B7C8D9E0F",
            "0198c2d4-a1b2-7c3d-8e4f-5a6b7c8d9e0f/..",
            "0198c2d4-a1b2-7c3d-8e4f-5a6b7c8d9e0f\n",
        ] {
            assert_eq!(TaskId::parse(text), None, "{text:?}");
        }
    }
}
