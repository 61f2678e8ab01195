//! Failures as the contract's codes: the one place where they are chosen.
//!
//! Invariant: each error says what is the matter and what to do, and never holds more than a short piece of the input.

use apiui::check::Refusal;
use apiui::customize;
use apiui::read::Unusable;
use domain::{Failure, FailureKind};
use rpc::Fault;
use serde::Serialize;
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::wire::code;

/// How many problems of a specification are reported.
const PROBLEMS: usize = 50;

/// -32003 where the size alone is the matter, otherwise -32002 with every problem and its place.
pub(crate) fn unusable(unusable: &Unusable) -> Fault {
    let code = if unusable.is_too_large() { code::CONTEXT_TOO_LARGE } else { code::SPEC_INVALID };
    let problems: Vec<_> = unusable.problems.iter().take(PROBLEMS).collect();
    with_data(code, unusable.to_string(), &json!({ "problems": problems }))
}

/// A wish that cannot be done without a model, or not at all.
pub(crate) fn refused(refusal: &customize::Refusal) -> Fault {
    let data = json!({ "alternatives": refusal.alternatives });
    with_data(code::CUSTOMIZATION_FAILED, refusal.message.clone(), &data)
}

/// Code of a model that the checker refused to the end.
pub(crate) fn check_failed(reason: &str, refusals: &[Refusal]) -> Fault {
    with_data(
        code::CUSTOMIZATION_FAILED,
        format!("{reason} Nothing was changed."),
        &json!({ "refusals": refusals }),
    )
}

pub(crate) fn customization_failed(reason: impl Into<String>) -> Fault {
    Fault::new(code::CUSTOMIZATION_FAILED, reason)
}

pub(crate) fn generation_failed(reason: impl Into<String>) -> Fault {
    Fault::new(code::GENERATION_FAILED, reason)
}

pub(crate) fn too_large(reason: impl Into<String>) -> Fault {
    Fault::new(code::CONTEXT_TOO_LARGE, reason)
}

pub(crate) fn rate_limited() -> Fault {
    Fault::new(code::RATE_LIMITED, "Too many requests are waiting. Wait for answers and send it again.")
}

/// A failure of the engine or of the model while customizing.
pub(crate) fn failure(failure: &Failure) -> Fault {
    if failure.kind == FailureKind::Internal {
        return Fault::internal(failure.to_string());
    }
    customization_failed(format!("{failure} Nothing was changed."))
}

fn with_data(code: i64, message: String, data: &impl Serialize) -> Fault {
    // Without its data the error is still an error.
    Fault { data: to_raw_value(data).ok(), ..Fault::new(code, message) }
}
