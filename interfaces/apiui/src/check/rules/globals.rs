//! Names used but not declared in the module, and names that it has from React or from the transform: each only in the
//! ways that the lists say.

use oxc::ast::AstKind;
use oxc::ast::ast::{Argument, CallExpression, Expression, IdentifierReference};
use oxc::semantic::NodeId;
use oxc::span::Span;
use oxc::syntax::operator::BinaryOperator;

use super::Rules;
use crate::check::element::{RUNTIME, runtime_name};
use crate::check::lists::{GLOBALS, Global, REACT_COMPONENTS, REACT_FUNCTIONS};
use crate::check::refusal::Rule;
use crate::check::tree::Declared;

/// How a name is used.
enum Use<'a> {
    Call(&'a CallExpression<'a>),
    Construct,
    Instance,
    /// `name.member`, and how that is used.
    Member(&'a str, Box<Use<'a>>),
    /// The type of an element.
    Element,
    Value,
}

impl<'a> Rules<'_, 'a> {
    pub(super) fn identifier(&mut self, id: NodeId, identifier: &'a IdentifierReference<'a>) {
        let Some(symbol) = self.tree.symbol(identifier) else {
            return self.global(id, identifier);
        };
        if Some(symbol) == self.servers {
            return self.server_list(id, identifier.span);
        }
        match self.tree.declared(symbol) {
            Declared::Import(import, name) if import.source.value == "react" => {
                self.react(id, identifier.span, name)
            }
            Declared::Import(import, _) if import.source.value == RUNTIME => self.runtime(id, identifier),
            _ => {}
        }
    }

    fn global(&mut self, id: NodeId, identifier: &'a IdentifierReference<'a>) {
        let name = identifier.name.as_str();
        let used = self.use_of(id);
        if matches!(used, Use::Element) {
            // Said by the rule on elements.
            return;
        }
        let reference = identifier
            .reference_id
            .get()
            .map(|reference| self.tree.semantic.scoping().get_reference(reference));
        let is_written = reference.is_none_or(|reference| reference.is_write());
        let Some(global) = GLOBALS.iter().find(|global| global.name == name) else {
            let advice = global_advice(name);
            self.refuse(identifier.span, Rule::Global, format!("`{name}` is not available here"), advice);
            return;
        };
        if is_written || !is_listed(global, &used) {
            let what = match &used {
                Use::Member(member, _) => {
                    format!("`{name}.{member}` is not available here, or not in this way")
                }
                _ => format!("`{name}` cannot be used in this way"),
            };
            let advice = match name {
                "Object" => {
                    "Use `Object.keys(x)`, `Object.fromEntries(pairs)`, `ownEntries(x)`, `withOwn(x, key, value)` or `withAll(x, y)`, \
                     called directly.".to_owned()
                }
                _ => listed_uses(global),
            };
            self.refuse(identifier.span, Rule::Global, what, advice);
            return;
        }
        match &used {
            Use::Call(call) if matches!(name, "setTimeout" | "setInterval") => self.timer(name, call),
            Use::Member(member, inner) if name == "JSON" => {
                if let Use::Call(call) = inner.as_ref() {
                    self.json(member, call);
                }
            }
            _ => {}
        }
    }

    /// A timer runs a function, never a text.
    fn timer(&mut self, name: &str, call: &'a CallExpression<'a>) {
        let first = call.arguments.first().and_then(Argument::as_expression);
        if first.and_then(|first| self.tree.function(first)).is_none() {
            let advice = format!("Write `{name}(() => {{ … }}, milliseconds)`.");
            self.refuse(
                call.span,
                Rule::Argument,
                format!("The first argument of `{name}` is not a function written here"),
                advice,
            );
        }
    }

    /// A replacer or reviver would see what a value is made of.
    fn json(&mut self, member: &str, call: &'a CallExpression<'a>) {
        let is_spread = call.arguments.iter().any(|argument| matches!(argument, Argument::SpreadElement(_)));
        let second = call.arguments.get(1).and_then(Argument::as_expression);
        let is_nothing = match second {
            None => true,
            Some(Expression::NullLiteral(_)) => member == "stringify",
            Some(Expression::Identifier(name)) => name.name == "undefined" && member == "stringify",
            Some(_) => false,
        };
        if is_spread || !is_nothing {
            let advice = "Write `JSON.parse(text)` or `JSON.stringify(value, null, 2)`.";
            self.refuse(
                call.span,
                Rule::Argument,
                format!("`JSON.{member}` with a function as its second argument"),
                advice,
            );
        }
    }

    fn react(&mut self, id: NodeId, span: Span, imported: Option<&'a str>) {
        let used = self.use_of(id);
        let (name, used) = match (imported, used) {
            (Some(name), used) => (name, used),
            (None, Use::Member(name, used)) => (name, *used),
            (None, _) => {
                let advice = "Import what is needed by name: `import { useState } from \"react\";`.";
                return self.refuse(span, Rule::React, "The whole of React is used as a value", advice);
            }
        };
        let is_listed = match used {
            Use::Call(_) => REACT_FUNCTIONS.contains(name),
            Use::Element => REACT_COMPONENTS.contains(name),
            _ => false,
        };
        if !is_listed {
            let advice = format!("Call hooks directly; of React there are {}.", REACT_FUNCTIONS.listed());
            self.refuse(span, Rule::React, format!("`{name}` of React cannot be used in this way"), advice);
        }
    }

    /// What the transform imports appears only where the transform puts it.
    fn runtime(&mut self, id: NodeId, identifier: &'a IdentifierReference<'a>) {
        let used = self.use_of(id);
        let is_expected = match runtime_name(&self.tree, identifier) {
            Some("Fragment") => matches!(used, Use::Element),
            Some(_) => matches!(used, Use::Call(_)),
            None => false,
        };
        if !is_expected {
            self.refuse(
                identifier.span,
                Rule::React,
                "React's element maker is used as a value",
                "Write elements as JSX.",
            );
        }
    }

    /// The list of addresses is read one by one or copied, so that nothing can add to it.
    fn server_list(&mut self, id: NodeId, span: Span) {
        let (child, user, kind) = self.tree.use_of(id);
        let is_reading = match kind {
            AstKind::StaticMemberExpression(member) => match member.property.name.as_str() {
                "length" => !self.is_target(user),
                "at" => matches!(self.use_of(user), Use::Call(_)),
                _ => false,
            },
            AstKind::ComputedMemberExpression(member) => {
                self.tree.is_node(&member.object, child)
                    && self.tree.is_number(&member.expression)
                    && !self.is_target(user)
            }
            AstKind::SpreadElement(_) => matches!(self.tree.parent(user), AstKind::ArrayExpression(_)),
            _ => false,
        };
        if !is_reading {
            let advice =
                "Read it with `SERVERS.at(index)` or `SERVERS.length`, or copy it with `[...SERVERS]`.";
            self.refuse(span, Rule::Servers, "`SERVERS` is handed on, so that it could be changed", advice);
        }
    }

    fn use_of(&self, id: NodeId) -> Use<'a> {
        let (child, user, kind) = self.tree.use_of(id);
        match kind {
            AstKind::CallExpression(call) if self.tree.is_node(&call.callee, child) => Use::Call(call),
            AstKind::CallExpression(call) if self.is_element_type(call, child) => Use::Element,
            AstKind::NewExpression(new) if self.tree.is_node(&new.callee, child) => Use::Construct,
            AstKind::BinaryExpression(binary)
                if binary.operator == BinaryOperator::Instanceof
                    && self.tree.is_node(&binary.right, child) =>
            {
                Use::Instance
            }
            AstKind::StaticMemberExpression(member) if self.tree.is_node(&member.object, child) => {
                Use::Member(member.property.name.as_str(), Box::new(self.use_of(user)))
            }
            AstKind::JSXMemberExpression(member) => {
                Use::Member(member.property.name.as_str(), Box::new(Use::Element))
            }
            AstKind::JSXOpeningElement(_) | AstKind::JSXClosingElement(_) => Use::Element,
            _ => Use::Value,
        }
    }

    /// Whether this is the first argument of a call that makes an element.
    fn is_element_type(&self, call: &'a CallExpression<'a>, id: NodeId) -> bool {
        let Expression::Identifier(callee) = &call.callee else { return false };
        runtime_name(&self.tree, callee).is_some()
            && call.arguments.first().is_some_and(|first| self.tree.is_node(first, id))
    }
}

fn is_listed(global: &Global, used: &Use<'_>) -> bool {
    match used {
        Use::Call(_) => global.call,
        Use::Construct => global.construct,
        Use::Instance => global.instance,
        Use::Value => global.value,
        Use::Element => false,
        Use::Member(member, inner) => match inner.as_ref() {
            Use::Call(_) => global.functions.contains(member),
            Use::Construct => global.constructors.contains(member),
            Use::Value | Use::Member(..) => global.constants.contains(member),
            Use::Instance | Use::Element => false,
        },
    }
}

fn listed_uses(global: &Global) -> String {
    let name = global.name;
    let mut uses = Vec::new();
    if global.call {
        uses.push(format!("`{name}(…)`"));
    }
    if global.construct {
        uses.push(format!("`new {name}(…)`"));
    }
    if global.instance {
        uses.push(format!("`x instanceof {name}`"));
    }
    uses.extend(global.functions.iter().map(|member| format!("`{name}.{member}(…)`")));
    uses.extend(global.constants.iter().map(|member| format!("`{name}.{member}`")));
    uses.extend(global.constructors.iter().map(|member| format!("`new {name}.{member}(…)`")));
    if uses.is_empty() {
        return format!("Use `{name}` as a value only.");
    }
    format!("Allowed are {}.", uses.join(", "))
}

fn global_advice(name: &str) -> &'static str {
    match name {
        "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" | "navigator" => {
            "Call the API through the `request` function that the component is given."
        }
        "window" | "document" | "globalThis" | "self" => {
            "A module cannot reach the page; keep what it needs in state."
        }
        "confirm" | "alert" | "prompt" => "Keep the question in state and show it as an element.",
        "localStorage" | "sessionStorage" => "Keep it in state: a module stores nothing.",
        "console" => "Leave it out, or show the message as an element.",
        "FormData" | "URLSearchParams" => "Hand an object to `request` as `body` or `query`.",
        "own" | "isPlainData" | "ownEntries" | "withOwn" | "withAll" | "safeUrl" | "sendRequest" => {
            "Put the vetted definition of that name into the module."
        }
        _ => "Declare it in the module, or leave it out.",
    }
}
