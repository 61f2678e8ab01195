//! The list of tools that requests offer, kept for as long as nothing in it changes.
//!
//! Must not choose tools. Invariant: the list equals the one that would be made anew.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::tool::{Tool, ToolSpec};

/// The list of tools that the last request offered. Most requests offer the same one, and what is computed of it then holds.
#[derive(Default)]
pub struct OfferedTools(Mutex<KnownList>);

#[derive(Default)]
struct KnownList {
    /// The tools themselves: a tool that is still the same one is not compared. They may hold their session, which holds this.
    tools: Vec<Weak<dyn Tool>>,
    specs: Arc<[ToolSpec]>,
    /// No description is the user's own; those may be others each time.
    is_plain: bool,
    /// The family of models that they were described for.
    family: String,
}

impl OfferedTools {
    /// The list of these tools: the one before, where nothing has changed. `shown`: a tool as models of the family are shown
    /// it; `is_plain`: no description is the user's own.
    pub fn update(
        &self,
        tools: &[Arc<dyn Tool>],
        family: &str,
        is_plain: bool,
        shown: impl Fn(&ToolSpec) -> ToolSpec,
    ) -> Arc<[ToolSpec]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let KnownList { tools: before, specs, is_plain: was_plain, family: last } = &*known;
        let may_compare = is_plain && *was_plain && last == family;
        let is_it = |at: usize, tool: &Arc<dyn Tool>| {
            may_compare && std::ptr::addr_eq(before[at].as_ptr(), Arc::as_ptr(tool))
        };
        let is_same =
            |(at, tool): (usize, &Arc<dyn Tool>)| is_it(at, tool) || specs[at] == shown(tool.spec());
        if specs.len() != tools.len() || !tools.iter().enumerate().all(is_same) {
            let specs = tools.iter().map(|tool| shown(tool.spec())).collect();
            let tools = tools.iter().map(Arc::downgrade).collect();
            *known = KnownList { tools, specs, is_plain, family: family.to_owned() };
        }
        known.specs.clone()
    }
}

/// The tool with the description that the user wrote for it.
pub fn described(spec: &ToolSpec, own: Option<String>) -> ToolSpec {
    let mut spec = spec.clone();
    spec.description = own.unwrap_or(spec.description);
    spec
}
