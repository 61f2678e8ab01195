//! The task of a model, for a change that needs one. Plain data.

use apiui::customize::Turn;
use apiui::plan::Plan;
use rpc::Fault;

use crate::to_wire;
use crate::wire::Tools;

/// The task of a model, for a wish that needs one.
pub(crate) struct Task {
    pub code: String,
    /// `None`: the code was not generated here, or was changed since.
    pub plan: Option<Box<Plan>>,
    pub prompt: String,
    pub history: Vec<Turn>,
    /// The addresses that the code may call.
    pub servers: Vec<String>,
    pub tools: Tools,
    /// The answer where there is no model.
    pub no_model_fault: Fault,
}

pub(crate) fn not_done_in_time() -> Fault {
    to_wire::customization_failed("The change was not done in time. Nothing was changed; try again.")
}
