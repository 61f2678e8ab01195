//! Errors of the protocol: their codes, and the error of each failure. Pure.

use domain::{Failure, FailureKind, SessionId};
use rpc::Fault;
use serde_json::{json, value::to_raw_value};

pub(crate) const AUTH_REQUIRED: i64 = -32000;
const NOT_FOUND: i64 = -32002;

/// A session that is not one of this connection.
pub(crate) fn session_not_open(session: &SessionId) -> Fault {
    not_found(session, "This session is not open here; create, load or resume it first.")
}

pub(crate) fn not_found(session: &SessionId, sentence: &str) -> Fault {
    let data = to_raw_value(&json!({"sessionId": session.as_str()})).ok();
    Fault { data, ..Fault::new(NOT_FOUND, sentence) }
}

/// Each kind of failure and its code.
pub(crate) fn fault_of(failure: &Failure) -> Fault {
    let code = match failure.kind {
        FailureKind::User | FailureKind::Taken => Fault::INVALID_PARAMS,
        FailureKind::Auth => AUTH_REQUIRED,
        FailureKind::Config
        | FailureKind::Quota
        | FailureKind::Provider
        | FailureKind::Tool
        | FailureKind::Internal => Fault::INTERNAL_ERROR,
    };
    Fault::new(code, failure.to_string())
}
