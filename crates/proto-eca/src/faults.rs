//! Each kind of failure and its code in a response.

use domain::{Failure, FailureKind};
use rpc::Fault;

/// ECA has no code of its own for refused requests.
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
