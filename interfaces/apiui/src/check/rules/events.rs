//! Handlers of elements. React hands a handler an event, from which everything in the page can be reached; so a
//! handler must be a function whose text is here, and its event must be read on the spot and never handed on.

use oxc::ast::AstKind;
use oxc::ast::ast::{BindingPattern, CallExpression, Expression, Statement, VariableDeclarator};
use oxc::semantic::NodeId;
use oxc::span::GetSpan;

use super::Rules;
use super::module::plain_name;
use super::target::Target;
use crate::check::element::{Attribute, Element, Value};
use crate::check::lists::{CONTROLS, EVENT_CALLS, EVENT_VALUES, TARGET_CALLS, TARGET_VALUES};
use crate::check::refusal::Rule;
use crate::check::tree::{AnyFunction, key_name};

impl<'a> Rules<'_, 'a> {
    pub(super) fn handler(&mut self, element: &str, attribute: &Attribute<'a>) {
        let target = match element {
            "form" => Target::Form,
            _ if CONTROLS.contains(element) => Target::Control,
            _ => Target::Other,
        };
        for handler in self.handlers_of(attribute) {
            match handler {
                Some(function) => self.handler_function(function, target),
                None => {
                    let name = &attribute.name;
                    let advice = format!(
                        "Write `{name}={{() => save()}}` or `{name}={{(event) => change(event.target.value)}}`."
                    );
                    self.refuse(
                        attribute.span,
                        Rule::Event,
                        format!("`{name}` is not a function written in this module"),
                        advice,
                    );
                }
            }
        }
    }

    /// A form is sent by its handler, never by the browser: that would put what was typed into the address.
    pub(super) fn form(&mut self, element: &Element<'a>) {
        let handlers = element
            .attribute("onSubmit")
            .and_then(|attribute| self.tree.possible(attribute.value))
            .unwrap_or_default();
        let prevents = |value: &Value<'a>| match value {
            Value::Expression(value) => {
                self.tree.function(value).is_some_and(|function| self.prevents_default(function))
            }
            _ => false,
        };
        if handlers.is_empty() || !handlers.iter().all(prevents) {
            let advice =
                "Write `<form onSubmit={(event) => { event.preventDefault(); … }}>`, that call first.";
            self.refuse(element.span, Rule::Form, "A form that the browser would send itself", advice);
        }
    }

    /// Each function that the attribute can be; `None` for what is no function of the module.
    fn handlers_of(&self, attribute: &Attribute<'a>) -> Vec<Option<AnyFunction<'a>>> {
        let Some(values) = self.tree.possible(attribute.value) else { return vec![None] };
        let handler = |value: Value<'a>| match value {
            Value::Nothing => None,
            Value::Expression(value) if self.is_nothing(value) => None,
            Value::Expression(value) => Some(self.tree.function(value)),
            Value::True | Value::Text(_) | Value::Element => Some(None),
        };
        values.into_iter().filter_map(handler).collect()
    }

    fn handler_function(&mut self, function: AnyFunction<'a>, target: Target) {
        let parameters = function.parameters();
        if !self.handlers.insert((parameters.node_id.get(), target)) {
            return;
        }
        let advice = "Take the event as one plain parameter: `(event) => …`.";
        let Some(first) = parameters.items.first() else {
            if let Some(rest) = &parameters.rest {
                self.refuse(rest.span, Rule::Event, "A handler that takes its event in a list", advice);
            }
            return;
        };
        match plain_name(&first.pattern) {
            Some(symbol) if first.initializer.is_none() => {
                for reference in self.tree.references(symbol) {
                    self.event_use(reference, target);
                }
            }
            _ => self.refuse(first.span, Rule::Event, "A handler that takes its event apart", advice),
        }
    }

    fn event_use(&mut self, reference: NodeId, target: Target) {
        let (child, user, kind) = self.tree.use_of(reference);
        let is_allowed = match kind {
            AstKind::StaticMemberExpression(member) if self.tree.is_node(&member.object, child) => {
                let name = member.property.name.as_str();
                let is_known = match target {
                    Target::Control => true,
                    Target::Form => false,
                    Target::Other => name == "currentTarget",
                };
                if matches!(name, "target" | "currentTarget") {
                    self.target_use(user, is_known)
                } else {
                    EVENT_VALUES.contains(name) && !self.is_target(user)
                        || EVENT_CALLS.contains(name) && self.bare_call(user).is_some()
                }
            }
            _ => false,
        };
        if is_allowed {
            self.vouched.insert(user);
        } else {
            let advice = "Read what is needed on the spot, `event.key` or, of inputs, `event.target.value`, and hand that on; \
                          of other elements than forms there is `event.currentTarget`.";
            let span = self.tree.semantic.nodes().kind(reference).span();
            self.refuse(
                span,
                Rule::Event,
                "The event is handed on, or more of it is used than is listed",
                advice,
            );
        }
    }

    /// `event.target`: compare it or, if it is known not to be a form, read a listed property, call a listed function, or
    /// take listed properties out of it.
    fn target_use(&mut self, target: NodeId, is_known: bool) -> bool {
        let (child, user, kind) = self.tree.use_of(target);
        match kind {
            AstKind::BinaryExpression(binary) => binary.operator.is_equality(),
            _ if !is_known => false,
            AstKind::StaticMemberExpression(member) if self.tree.is_node(&member.object, child) => {
                let name = member.property.name.as_str();
                let is_allowed = TARGET_VALUES.contains(name) && !self.is_target(user)
                    || TARGET_CALLS.contains(name) && self.bare_call(user).is_some();
                if is_allowed {
                    self.vouched.insert(user);
                }
                is_allowed
            }
            AstKind::VariableDeclarator(declarator) => self.target_pattern(declarator),
            _ => false,
        }
    }

    /// `const { name, value } = event.target;`
    fn target_pattern(&mut self, declarator: &'a VariableDeclarator<'a>) -> bool {
        let BindingPattern::ObjectPattern(pattern) = &declarator.id else { return false };
        let is_listed = |name: Option<&str>| name.is_some_and(|name| TARGET_VALUES.contains(name));
        if pattern.rest.is_some()
            || !pattern.properties.iter().all(|part| is_listed(key_name(&part.key, part.computed)))
        {
            return false;
        }
        self.vouched.extend(pattern.properties.iter().map(|part| part.node_id.get()));
        true
    }

    /// The call without arguments of this member.
    fn bare_call(&self, member: NodeId) -> Option<&'a CallExpression<'a>> {
        let (child, _, kind) = self.tree.use_of(member);
        match kind {
            AstKind::CallExpression(call)
                if self.tree.is_node(&call.callee, child) && call.arguments.is_empty() =>
            {
                Some(call)
            }
            _ => None,
        }
    }

    /// Whether the first thing the function does is to call `preventDefault` of its event.
    fn prevents_default(&self, function: AnyFunction<'a>) -> bool {
        let Some(symbol) = function.parameters().items.first().and_then(|first| plain_name(&first.pattern))
        else {
            return false;
        };
        let Some(Statement::ExpressionStatement(statement)) =
            function.statements().and_then(|list| list.first())
        else {
            return false;
        };
        let Expression::CallExpression(call) = &statement.expression else { return false };
        let Expression::StaticMemberExpression(member) = &call.callee else { return false };
        let Expression::Identifier(object) = &member.object else { return false };
        member.property.name == "preventDefault" && self.tree.symbol(object) == Some(symbol)
    }
}
