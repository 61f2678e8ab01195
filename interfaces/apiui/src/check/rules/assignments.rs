//! What may be written to: variables of the module, what `useRef` gave, and properties of objects that the same code made.

use oxc::ast::AstKind;
use oxc::ast::ast::{
    AssignmentTarget, Expression, IdentifierReference, SimpleAssignmentTarget, StaticMemberExpression,
};
use oxc::semantic::NodeId;
use oxc::span::GetSpan;

use super::Rules;
use crate::check::names;
use crate::check::refusal::Rule;
use crate::check::tree::Declared;

const ADVICE: &str = "Make a changed copy: `{ ...object, name: value }`, `withOwn(object, key, value)`, `list.with(index, value)`.";

impl<'a> Rules<'_, 'a> {
    /// The target of an assignment, of a loop or of a part of a pattern.
    pub(super) fn assignment(&mut self, target: &'a AssignmentTarget<'a>) {
        match target {
            // Their parts are targets of their own.
            AssignmentTarget::ArrayAssignmentTarget(_) | AssignmentTarget::ObjectAssignmentTarget(_) => {}
            other => match other.as_simple_assignment_target() {
                Some(simple) => self.simple_assignment(simple),
                None => self.refuse(
                    target.span(),
                    Rule::Assignment,
                    "A write to something that is no variable",
                    ADVICE,
                ),
            },
        }
    }

    pub(super) fn simple_assignment(&mut self, target: &'a SimpleAssignmentTarget<'a>) {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(identifier) => self.written_name(identifier),
            SimpleAssignmentTarget::StaticMemberExpression(member) => self.written_member(member),
            SimpleAssignmentTarget::ComputedMemberExpression(member) => {
                let is_own = matches!(self.made_here(&member.object), Some(Expression::ArrayExpression(_)));
                if !is_own || !self.tree.is_number(&member.expression) {
                    self.refuse(
                        member.span,
                        Rule::Assignment,
                        "A write to a property that was not named or not made here",
                        ADVICE,
                    );
                }
            }
            other => self.refuse(
                other.span(),
                Rule::Assignment,
                "A write to something that is no variable",
                ADVICE,
            ),
        }
    }

    pub(super) fn written_name(&mut self, identifier: &'a IdentifierReference<'a>) {
        let Some(symbol) = self.tree.symbol(identifier) else {
            // Said by the rule on globals.
            return;
        };
        let declaration = self.tree.semantic.symbol_declaration(symbol).kind();
        if !matches!(declaration, AstKind::VariableDeclarator(_) | AstKind::FormalParameter(_)) {
            let what = format!("A write to `{}`, which is no variable", identifier.name);
            self.refuse(identifier.span, Rule::Assignment, what, "Use a variable of its own.");
        }
    }

    fn written_member(&mut self, member: &'a StaticMemberExpression<'a>) {
        if self.vouched.contains(&member.node_id.get()) {
            return;
        }
        let name = member.property.name.as_str();
        let is_plain = !names::is_hidden_hook(name) && !names::is_element_part(name);
        if !is_plain || !matches!(self.made_here(&member.object), Some(Expression::ObjectExpression(_))) {
            self.refuse(
                member.span,
                Rule::Assignment,
                format!("A write to `.{name}` of an object that was not made here"),
                ADVICE,
            );
        }
    }

    /// The literal that made the object this name stands for, if nothing else was concluded from that literal.
    fn made_here(&self, object: &'a Expression<'a>) -> Option<&'a Expression<'a>> {
        let Expression::Identifier(identifier) = object else { return None };
        let symbol = self.tree.symbol(identifier)?;
        if Some(symbol) == self.servers || self.tree.frozen.borrow().contains(&symbol) {
            return None;
        }
        match self.tree.declared(symbol) {
            Declared::Value(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the node is what is written to.
    pub(super) fn is_target(&self, id: NodeId) -> bool {
        match self.tree.parent(id) {
            AstKind::AssignmentExpression(assignment) => self.tree.is_node(&assignment.left, id),
            AstKind::UpdateExpression(_)
            | AstKind::ArrayAssignmentTarget(_)
            | AstKind::AssignmentTargetRest(_)
            | AstKind::AssignmentTargetPropertyProperty(_) => true,
            AstKind::AssignmentTargetWithDefault(target) => self.tree.is_node(&target.binding, id),
            AstKind::ForInStatement(statement) => self.tree.is_node(&statement.left, id),
            AstKind::ForOfStatement(statement) => self.tree.is_node(&statement.left, id),
            AstKind::UnaryExpression(unary) => unary.operator.is_delete(),
            _ => false,
        }
    }
}
