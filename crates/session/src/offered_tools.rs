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
}

impl OfferedTools {
    /// The list of these tools: the one before, where nothing has changed. `own`: the description that the user wrote for
    /// a tool; `is_plain`: there is no such description.
    pub fn update(
        &self,
        tools: &[Arc<dyn Tool>],
        is_plain: bool,
        own: impl Fn(&ToolSpec) -> Option<String>,
    ) -> Arc<[ToolSpec]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let KnownList { tools: before, specs, is_plain: was_plain } = &*known;
        let may_compare = is_plain && *was_plain;
        let is_it = |at: usize, tool: &Arc<dyn Tool>| {
            may_compare && std::ptr::addr_eq(before[at].as_ptr(), Arc::as_ptr(tool))
        };
        let is_same = |(at, tool): (usize, &Arc<dyn Tool>)| {
            is_it(at, tool) || is_described(&specs[at], tool.spec(), own(tool.spec()))
        };
        if specs.len() != tools.len() || !tools.iter().enumerate().all(is_same) {
            let specs = tools.iter().map(|tool| described(tool.spec(), own(tool.spec()))).collect();
            let tools = tools.iter().map(Arc::downgrade).collect();
            *known = KnownList { tools, specs, is_plain };
        }
        known.specs.clone()
    }
}

/// Whether a tool is known as [`described`] describes it.
fn is_described(known: &ToolSpec, spec: &ToolSpec, own: Option<String>) -> bool {
    let ToolSpec { name, server, origin, description, input_schema, effect } = known;
    (name, server, origin, effect) == (&spec.name, &spec.server, &spec.origin, &spec.effect)
        && description == own.as_ref().unwrap_or(&spec.description)
        && *input_schema == spec.input_schema
}

/// The tool with the description that the user wrote for it.
pub fn described(spec: &ToolSpec, own: Option<String>) -> ToolSpec {
    let mut spec = spec.clone();
    spec.description = own.unwrap_or(spec.description);
    spec
}
