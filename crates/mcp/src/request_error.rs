//! The sentence for a request that has no result.

use std::time::Duration;

use rpc::RequestError;

use crate::text::single_line;

/// Of a message that a server gave with an error.
const MAX_REASON_LENGTH: usize = 2_000;

/// Why a request has no result, as a sentence about the server.
pub(crate) fn describe_error(method: &str, error: &RequestError, deadline: Duration) -> String {
    match error {
        RequestError::Fault(fault) => {
            format!("It answered {method} with: {}", single_line(&fault.message, MAX_REASON_LENGTH))
        }
        RequestError::Deadline => format!("It did not answer {method} within {} s.", deadline.as_secs()),
        RequestError::Closed => "It has ended.".to_owned(),
        RequestError::Full => "It does not read what it is sent.".to_owned(),
        RequestError::TooLarge => format!("Its answer to {method} is too large."),
        RequestError::Unserializable(_) => "The arguments cannot be written as JSON.".to_owned(),
        RequestError::Unexpected(error) => {
            format!("Its answer to {method} is not as the protocol has it: {error}.")
        }
    }
}
