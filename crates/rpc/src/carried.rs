//! What the head of a message says, for a relay that must know which requests are unanswered.
//!
//! It must not know method names. Invariant: a message that cannot be read is passed over, never refused here.

use crate::message::{Id, Incoming, read};
use serde::Deserialize;
use std::borrow::Cow;

/// A message on its way through.
#[derive(Debug, PartialEq, Eq)]
pub enum Carried {
    /// With the method, and the `sessionId` of its parameters.
    Request {
        id: Id,
        method: String,
        session: Option<String>,
    },
    Notification {
        method: String,
    },
    Response {
        id: Id,
    },
    Other,
}

impl Carried {
    pub fn of(text: &str) -> Carried {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named<'a> {
            #[serde(borrow)]
            session_id: Option<Cow<'a, str>>,
        }
        match read(text.as_bytes(), false) {
            Incoming::Request { id, method, params } => {
                let named = params.raw().and_then(|raw| serde_json::from_str::<Named<'_>>(raw.get()).ok());
                let session = named.and_then(|named| named.session_id).map(Cow::into_owned);
                Carried::Request { id, method: method.into_owned(), session }
            }
            Incoming::Response { id: Some(id), .. } => Carried::Response { id },
            Incoming::Notification { method, .. } => Carried::Notification { method: method.into_owned() },
            Incoming::Response { id: None, .. } | Incoming::Invalid { .. } => Carried::Other,
        }
    }
}
