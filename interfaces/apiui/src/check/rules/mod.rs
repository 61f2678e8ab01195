//! The rules, applied to one tree. Owns the order in which they run and what they tell each other; each file beside
//! this one owns one kind of rule.
//!
//! Invariant: a node that no rule knows is refused. Elements and handlers are looked at first, because they vouch for
//! the few member reads that the general rule refuses (`event.target.value`, `input.current.focus()`).

mod assignments;
mod constructs;
mod elements;
mod events;
mod globals;
mod members;
mod module;
mod refs;
mod styles;
mod target;

use std::collections::HashSet;

use oxc::ast::AstKind;
use oxc::semantic::{NodeId, Semantic, SymbolId};
use oxc::span::Span;

use super::element;
use super::refusal::{Refusals, Rule};
use super::tree::Tree;

/// Which of the two trees is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// As written, with JSX.
    Written,
    /// As the transform left it, without.
    Transformed,
}

/// What a check learns on its way.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub servers: Vec<String>,
    pub operations: Vec<String>,
}

/// Looks at every node of the tree.
pub(super) fn apply<'a>(semantic: &Semantic<'a>, source: &'a str, phase: Phase) -> (Refusals, Facts) {
    let mut rules = Rules {
        tree: Tree::new(semantic),
        source,
        phase,
        refusals: Refusals::default(),
        facts: Facts::default(),
        vouched: HashSet::new(),
        handlers: HashSet::new(),
        approved: HashSet::new(),
        servers: None,
        ids: HashSet::new(),
        named: Vec::new(),
    };
    rules.module();
    let exempt = rules.exempt();
    let nodes = semantic.nodes();
    let looked_at = || nodes.iter_enumerated().filter(|(id, _)| !exempt[id.index()]);
    for (_, node) in looked_at() {
        if let Some(element) = element::element(&rules.tree, node.kind()) {
            rules.element(&element);
        }
    }
    rules.named_ids();
    rules.refs();
    for (id, node) in looked_at() {
        rules.construct(id, node.kind());
    }
    (rules.refusals, rules.facts)
}

struct Rules<'s, 'a> {
    tree: Tree<'s, 'a>,
    source: &'a str,
    phase: Phase,
    refusals: Refusals,
    facts: Facts,
    /// Member reads that a more exact rule has allowed.
    vouched: HashSet<NodeId>,
    /// Functions that were looked at as handlers.
    handlers: HashSet<(NodeId, target::Target)>,
    /// The vetted definitions of this module.
    approved: HashSet<NodeId>,
    servers: Option<SymbolId>,
    /// The ids that the module's elements have, or the literal texts that they begin with.
    ids: HashSet<&'a str>,
    /// The ids that its labels and lists name.
    named: Vec<(Span, &'a str)>,
}

impl Rules<'_, '_> {
    fn refuse(&mut self, span: Span, rule: Rule, what: impl Into<String>, advice: impl Into<String>) {
        self.refusals.add(span, rule, what, advice);
    }

    /// For each node, whether it lies within a vetted definition. Parents come before their children.
    fn exempt(&self) -> Vec<bool> {
        let nodes = self.tree.semantic.nodes();
        let mut exempt = vec![false; nodes.len()];
        for (id, node) in nodes.iter_enumerated() {
            let within = exempt[nodes.parent_id(id).index()];
            exempt[id.index()] =
                within || (matches!(node.kind(), AstKind::Function(_)) && self.approved.contains(&id));
        }
        exempt
    }
}
