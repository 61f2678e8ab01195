//! The sending half of an initialized connection: typed requests with deadlines, their failures as sentences.
//!
//! Knows neither pipes nor HTTP. Cheap to clone; it outlives its connection and then refuses.

use std::sync::Arc;
use std::time::Duration;

use rpc::{Outgoing, RequestError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::calls::Calls;
use crate::text::single_line;
use crate::wire::Capabilities;

/// Of a message that a server gave with an error.
const MAX_REASON_LENGTH: usize = 2_000;

#[derive(Clone)]
pub(crate) struct Client {
    pub outgoing: Outgoing,
    pub calls: Arc<Calls>,
    capabilities: Arc<Capabilities>,
}

impl Client {
    pub(crate) fn new(outgoing: Outgoing, calls: Arc<Calls>, capabilities: Capabilities) -> Self {
        Self { outgoing, calls, capabilities: Arc::new(capabilities) }
    }

    pub(crate) fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// One request; a failure is a sentence about the server (`It …`).
    pub(crate) async fn request<P: Serialize + ?Sized, T: DeserializeOwned>(
        &self,
        method: &str,
        params: &P,
        deadline: Duration,
    ) -> Result<T, String> {
        let reply = self.outgoing.request(method, params, deadline).decode().await;
        reply.map_err(|error| describe_error(method, &error, deadline))
    }
}

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
