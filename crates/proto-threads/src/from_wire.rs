//! Converts the protocol's types to the domain's, and cuts the requested parts out of files. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::{Failure, FailureKind};
use rpc::Fault;

use crate::wire;

/// The protocol has no codes of its own.
const REFUSED: i64 = -32000;

/// Each kind of failure and its code.
pub(crate) fn fault_of(failure: &Failure) -> Fault {
    let code = match failure.kind {
        FailureKind::User => Fault::INVALID_PARAMS,
        FailureKind::Internal => Fault::INTERNAL_ERROR,
        FailureKind::Taken
        | FailureKind::Config
        | FailureKind::Auth
        | FailureKind::Quota
        | FailureKind::Provider
        | FailureKind::Tool => REFUSED,
    };
    Fault::new(code, failure.to_string())
}

/// The user's words of a message.
pub(crate) fn user_text(message: &wire::Message) -> Result<String, Fault> {
    if message.role == wire::Role::Assistant {
        let sentence = "A message of the assistant is not taken here; send the user's.";
        return Err(Fault::new(Fault::INVALID_PARAMS, sentence));
    }
    let text = message.whole();
    if text.trim().is_empty() {
        return Err(Fault::new(Fault::INVALID_PARAMS, "The message is empty."));
    }
    Ok(text)
}

/// `limit` lines after the first `offset`, with their ends.
pub(crate) fn lines(text: &str, offset: Option<u64>, limit: Option<u64>) -> String {
    if offset.is_none() && limit.is_none() {
        return text.to_owned();
    }
    text.split_inclusive('\n').skip(count(offset, 0)).take(count(limit, usize::MAX)).collect()
}

/// `limit` bytes after the first `offset`, as base64.
pub(crate) fn bytes(all: &[u8], offset: Option<u64>, limit: Option<u64>) -> String {
    let start = count(offset, 0).min(all.len());
    let end = start.saturating_add(count(limit, usize::MAX)).min(all.len());
    STANDARD.encode(all.get(start..end).unwrap_or_default())
}

fn count(number: Option<u64>, absent: usize) -> usize {
    number.map_or(absent, |number| usize::try_from(number).unwrap_or(usize::MAX))
}

pub(crate) fn decoded(content: &str) -> Result<Vec<u8>, Failure> {
    STANDARD
        .decode(content.as_bytes())
        .map_err(|error| Failure::user(format!("The editor gave a file that is not base64: {error}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_files_are_cut_where_asked() {
        let text = "one\r\ntwo\nthree";
        for (offset, limit, expected) in [
            (None, None, text),
            (Some(0), None, text),
            (Some(1), None, "two\nthree"),
            (Some(1), Some(1), "two\n"),
            (None, Some(1), "one\r\n"),
            (Some(3), None, ""),
            (Some(u64::MAX), Some(u64::MAX), ""),
            (None, Some(0), ""),
        ] {
            assert_eq!(lines(text, offset, limit), expected, "{offset:?} {limit:?}");
        }
        for (offset, limit, expected) in [
            (None, None, "abc"),
            (Some(1), Some(1), "b"),
            (Some(2), Some(9), "c"),
            (Some(9), None, ""),
            (Some(1), Some(u64::MAX), "bc"),
        ] {
            assert_eq!(bytes(b"abc", offset, limit), STANDARD.encode(expected), "{offset:?} {limit:?}");
        }
    }

    #[test]
    fn only_words_of_the_user_begin_a_turn() {
        let message = |role, text: &str| wire::Message::text(role, text);
        assert_eq!(user_text(&message(wire::Role::User, "hi")).unwrap(), "hi");
        assert!(user_text(&message(wire::Role::User, " ")).is_err());
        assert!(user_text(&message(wire::Role::Assistant, "hi")).is_err());
    }
}
