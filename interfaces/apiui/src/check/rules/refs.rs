//! What `useRef` gives: either a box for values, or the `ref` of an element, and then only to focus it.

use oxc::ast::AstKind;
use oxc::ast::ast::Expression;
use oxc::semantic::{NodeId, SymbolId};
use oxc::span::GetSpan;
use oxc::syntax::operator::UnaryOperator;

use super::Rules;
use super::module::plain_name;
use crate::check::element::{Attribute, Value};
use crate::check::refusal::Rule;

const FORM: &str = "Write `const name = useRef(null);`, `ref={name}` and `name.current?.focus()`; a box for values is used only as `name.current`.";

impl<'a> Rules<'_, 'a> {
    /// `ref={name}` of an element.
    pub(super) fn ref_attribute(&mut self, attribute: &Attribute<'a>) {
        let symbol = match attribute.value {
            Value::Expression(Expression::Identifier(identifier)) => self.tree.symbol(identifier),
            _ => None,
        };
        if !symbol.is_some_and(|symbol| self.is_ref(symbol)) {
            self.refuse(attribute.span, Rule::Ref, "`ref` is not the name of what `useRef` gave", FORM);
        }
    }

    /// Looks at every use of every `useRef` of the module.
    pub(super) fn refs(&mut self) {
        let nodes = self.tree.semantic.nodes();
        for (id, node) in nodes.iter_enumerated() {
            let AstKind::CallExpression(call) = node.kind() else { continue };
            if self.tree.react_name(&call.callee) != Some("useRef") {
                continue;
            }
            let symbol = match self.tree.parent(id) {
                AstKind::VariableDeclarator(declarator) => plain_name(&declarator.id),
                _ => None,
            };
            match symbol {
                Some(symbol) if self.is_ref(symbol) => self.ref_uses(symbol),
                _ => self.refuse(
                    call.span,
                    Rule::Ref,
                    "The result of `useRef` is not kept under one name",
                    FORM,
                ),
            }
        }
    }

    fn is_ref(&self, symbol: SymbolId) -> bool {
        match self.tree.declared(symbol) {
            crate::check::tree::Declared::Value(value) => self.tree.react_call(value, "useRef").is_some(),
            _ => false,
        }
    }

    fn ref_uses(&mut self, symbol: SymbolId) {
        let references = self.tree.references(symbol);
        let is_of_element = references.iter().any(|reference| self.is_ref_attribute(*reference));
        for reference in references {
            if self.is_ref_attribute(reference) {
                continue;
            }
            let (child, user, kind) = self.tree.use_of(reference);
            let is_current = matches!(kind, AstKind::StaticMemberExpression(member)
                if self.tree.is_node(&member.object, child) && member.property.name == "current");
            if is_current && (!is_of_element || self.is_focus_or_test(user)) {
                self.vouched.insert(user);
            } else {
                let span = self.tree.semantic.nodes().kind(reference).span();
                self.refuse(
                    span,
                    Rule::Ref,
                    "What `useRef` gave is used for more than focus, or handed on",
                    FORM,
                );
            }
        }
    }

    /// Before the transform the value of the attribute `ref`, after it the value of the property `ref` of an element's
    /// properties; the rule on elements has looked at which element that is.
    fn is_ref_attribute(&self, reference: NodeId) -> bool {
        let nodes = self.tree.semantic.nodes();
        let parent = self.tree.parent_id(reference);
        match nodes.kind(parent) {
            AstKind::JSXExpressionContainer(_) => match self.tree.parent(parent) {
                AstKind::JSXAttribute(attribute) => attribute.is_identifier("ref"),
                _ => false,
            },
            AstKind::ObjectProperty(property) => {
                let object = self.tree.parent_id(parent);
                property.key.is_specific_static_name("ref")
                    && matches!(self.tree.parent(object), AstKind::CallExpression(call)
                        if matches!(&call.callee, Expression::Identifier(callee)
                            if crate::check::element::runtime_name(&self.tree, callee).is_some()))
            }
            _ => false,
        }
    }

    /// `name.current.focus(…)`, or `name.current` only asked whether it is there.
    fn is_focus_or_test(&mut self, current: NodeId) -> bool {
        let (child, user, kind) = self.tree.use_of(current);
        match kind {
            AstKind::StaticMemberExpression(member) => {
                let (focus, _, call) = self.tree.use_of(user);
                let is_focus = member.property.name == "focus"
                    && matches!(call, AstKind::CallExpression(call) if self.tree.is_node(&call.callee, focus));
                if is_focus {
                    self.vouched.insert(user);
                }
                is_focus
            }
            AstKind::IfStatement(statement) => self.tree.is_node(&statement.test, child),
            AstKind::ConditionalExpression(choice) => self.tree.is_node(&choice.test, child),
            // The value goes on only when it is null.
            AstKind::LogicalExpression(both) => {
                both.operator.is_and() && self.tree.is_node(&both.left, child)
            }
            AstKind::UnaryExpression(unary) => unary.operator == UnaryOperator::LogicalNot,
            AstKind::BinaryExpression(binary) => binary.operator.is_equality(),
            _ => false,
        }
    }
}
