//! Stage 4: a plan → one self-contained JSX module, in chunks.
//!
//! Owns the module's layout: a fixed runtime (`runtime/*.jsx`), the addresses it may call, one component per
//! resource, and last the plan as a data literal with a hash of everything before it. Text from a specification
//! appears only inside string literals.
//! Invariants: the same plan gives the same bytes; cost and memory are linear in the plan, and a chunk is made only
//! when it is asked for.

mod erase;
mod literal;
pub(crate) mod runtime;

pub use literal::{UnknownModule, plan_of};

use crate::plan::slots::{SLOTS, STYLES};
use crate::plan::{Operation, Plan, Resource};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// About how long a chunk is, in bytes.
const CHUNK: usize = 32 * 1024;

/// Prints a plan chunk by chunk. The chunks joined in order are the module.
pub fn print(plan: &Plan) -> Chunks<'_> {
    Chunks { plan, step: Step::Runtime(0), hash: Some(Sha256::new()), ready: String::new() }
}

/// The whole module at once.
pub fn print_whole(plan: &Plan) -> String {
    print(plan).collect()
}

/// How many components the module has.
pub fn component_count(plan: &Plan) -> usize {
    // The page that chooses between the resources is printed with them.
    runtime::component_count()
        + SLOTS.len()
        + 1
        + plan.resources.iter().filter(|resource| !resource.removed).count()
}

pub struct Chunks<'p> {
    plan: &'p Plan,
    step: Step,
    /// Of what was printed so far; taken when the literal begins.
    hash: Option<Sha256>,
    ready: String,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Runtime(usize),
    Servers,
    Slots,
    Resource(usize),
    Choice(usize),
    Literal(usize),
    Done,
}

impl Iterator for Chunks<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        while self.ready.len() < CHUNK {
            if !self.advance() {
                break;
            }
        }
        (!self.ready.is_empty()).then(|| std::mem::take(&mut self.ready))
    }
}

impl Chunks<'_> {
    /// Prints the next piece; returns false at the end.
    fn advance(&mut self) -> bool {
        let mut piece = String::new();
        self.step = match self.step {
            Step::Runtime(at) => match runtime::PARTS.get(at) {
                Some(part) => {
                    piece.push_str(part);
                    Step::Runtime(at + 1)
                }
                None => Step::Servers,
            },
            Step::Servers => {
                servers(&mut piece, self.plan);
                Step::Slots
            }
            Step::Slots => {
                slots(&mut piece, self.plan);
                Step::Resource(0)
            }
            Step::Resource(at) => match self.plan.resources.get(at) {
                Some(resource) => {
                    component(&mut piece, self.plan, resource);
                    Step::Resource(at + 1)
                }
                None => Step::Choice(0),
            },
            Step::Choice(at) => {
                choice(&mut piece, self.plan, at);
                if at < self.plan.resources.len() { Step::Choice(at + 1) } else { Step::Literal(0) }
            }
            Step::Literal(at) => {
                if let Some(hash) = self.hash.take() {
                    literal::begin(&mut piece, &hash.finalize());
                }
                if literal::piece(&mut piece, self.plan, at) { Step::Literal(at + 1) } else { Step::Done }
            }
            Step::Done => return false,
        };
        if let Some(hash) = &mut self.hash {
            hash.update(piece.as_bytes());
        }
        self.ready.push_str(&piece);
        true
    }
}

fn servers(out: &mut String, plan: &Plan) {
    out.push_str("/** The addresses that this page may call. */\nconst SERVERS = [");
    for (index, server) in plan.servers.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(out, "{comma}{}", literal::text(&server.url));
    }
    if plan.servers.is_empty() {
        out.push_str("\"\"");
    }
    out.push_str(
        "];\n\n// ---- Slots: places for free changes. Resources: one component each, with a control for each operation ----\n\n",
    );
}

/// The slots: empty components, or the code of free changes.
fn slots(out: &mut String, plan: &Plan) {
    let code = |name: &str| plan.slots.iter().find(|one| one.slot == name).map(|one| one.code.trim());
    let _ = writeln!(out, "const SLOT_STYLES = {};\n", literal::text(code(STYLES).unwrap_or_default()));
    for slot in SLOTS {
        match code(slot.name) {
            Some(code) => out.push_str(code),
            None => {
                let _ = write!(out, "function {}Slot() {{\n  return null;\n}}", slot.name);
            }
        }
        out.push_str("\n\n");
    }
}

/// The component of one resource. Its name is checked to be a plain word.
fn component(out: &mut String, plan: &Plan, resource: &Resource) {
    if resource.removed {
        return;
    }
    let id = &resource.id;
    let _ = writeln!(
        out,
        "function {id}Resource({{ ui, known }}) {{\n  return (\n    <ResourceScreen ui={{ui}} id=\"{id}\" known={{known}}>"
    );
    for index in &resource.operations {
        let Some(operation) = plan.operations.get(*index) else { continue };
        let signature = attribute(operation);
        let _ = writeln!(
            out,
            "      <OperationEntry ui={{ui}} number={{{index}}} known={{known}} data-operation={signature} />"
        );
    }
    out.push_str("    </ResourceScreen>\n  );\n}\n\n");
}

/// The value of a JSX attribute: as plain text where that is exact, as an expression otherwise.
fn attribute(operation: &Operation) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " /{}_.:-~$@,;=+*()!?".contains(c);
    if operation.signature.chars().all(plain) {
        format!("\"{}\"", operation.signature)
    } else {
        format!("{{{}}}", literal::text(&operation.signature))
    }
}

/// One line of the page that chooses between the resources.
fn choice(out: &mut String, plan: &Plan, at: usize) {
    if at == 0 {
        out.push_str("/** The resource that is chosen. */\nfunction ResourcePage({ ui, page }) {\n  switch (page.resource) {\n");
    }
    match plan.resources.get(at) {
        Some(resource) if !resource.removed => {
            let id = &resource.id;
            let _ = writeln!(
                out,
                "    case \"{id}\":\n      return <{id}Resource ui={{ui}} known={{page.known}} />;"
            );
        }
        Some(_) => {}
        None => out.push_str("    default:\n      return <Overview ui={ui} />;\n  }\n}\n\n"),
    }
}
