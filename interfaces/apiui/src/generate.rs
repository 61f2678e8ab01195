//! The four stages in one call, for callers that want code.

use crate::plan::{Options, Plan, plan};
use crate::print::{component_count, print_whole};
use crate::spec::Spec;

/// A printed interface and its description.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    pub code: String,
    pub component_count: usize,
    pub description: String,
    pub assumptions: Vec<String>,
}

/// Plans and prints at once. To stream, use `plan` and `print`.
pub fn generate(spec: &Spec, options: &Options) -> Generated {
    let plan = plan(spec, options);
    Generated {
        code: print_whole(&plan),
        component_count: component_count(&plan),
        description: describe(&plan),
        assumptions: plan.assumptions,
    }
}

/// One sentence on what the interface has.
pub fn describe(plan: &Plan) -> String {
    let shown = || plan.resources.iter().filter(|resource| !resource.removed);
    let count = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    let operations = shown().map(|resource| resource.operations.len()).sum::<usize>();
    let lists = shown().filter(|resource| resource.list.is_some()).count();
    let details = shown().filter(|resource| resource.detail.is_some()).count();
    let forms = plan.operations.iter().filter(|operation| operation.writes).count();
    let mut parts = vec![count(operations, if plan.graphql { "operation" } else { "endpoint" })];
    for (number, noun) in
        [(lists, "data table"), (details, "detail view"), (forms, "form"), (plan.webhooks.len(), "webhook")]
    {
        if number > 0 {
            parts.push(count(number, noun));
        }
    }
    let last = parts.pop().unwrap_or_default();
    let listed = if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) };
    format!("Generated interface for {} with {listed}.", plan.title)
}
