//! What a value can be: through choices, constants, members of constant objects, and the properties that the elements of
//! this module hand to its components. Owns that reading; must not know what is allowed.
//!
//! Invariant: every value that the expression can have at any moment of the run is among the answers, or is the value of
//! an answer that could not be looked through. Properties are looked through only for components that are used as
//! element types and in no other way, so that nobody else can hand them anything.

use std::cell::Cell;
use std::rc::Rc;

use oxc::ast::AstKind;
use oxc::ast::ast::{
    BindingPattern, Expression, FunctionType, IdentifierReference, ObjectExpression, ObjectPropertyKind,
    PropertyKind, StaticMemberExpression,
};
use oxc::semantic::{NodeId, SymbolId};

use super::element::{self, Element, Value};
use super::tree::{Declared, Tree, key_name};

/// How much is looked at for one question, and how far names are followed.
const STEPS: usize = 4000;
const DEPTH: usize = 24;

struct Search<'a> {
    steps: Cell<usize>,
    found: Vec<Value<'a>>,
}

impl<'a> Tree<'_, 'a> {
    /// Everything that the value can be; `None` if that is too much.
    pub(super) fn possible(&self, value: Value<'a>) -> Option<Vec<Value<'a>>> {
        let mut search = Search { steps: Cell::new(STEPS), found: Vec::new() };
        self.collect(value, DEPTH, &mut search).then_some(search.found)
    }

    fn collect(&self, value: Value<'a>, depth: usize, search: &mut Search<'a>) -> bool {
        if depth == 0 || search.steps.get() == 0 {
            return false;
        }
        search.steps.set(search.steps.get() - 1);
        let Value::Expression(expression) = value else {
            search.found.push(value);
            return true;
        };
        let mut inner =
            |expression: &'a Expression<'a>| self.collect(Value::Expression(expression), depth - 1, search);
        match expression {
            Expression::ConditionalExpression(choice) => {
                inner(&choice.consequent) && inner(&choice.alternate)
            }
            // The left side of `&&` is the value only when it is falsy: no text, no object, no function.
            Expression::LogicalExpression(choice) => {
                (choice.operator.is_and() || inner(&choice.left)) && inner(&choice.right)
            }
            Expression::ParenthesizedExpression(wrapped) => inner(&wrapped.expression),
            Expression::Identifier(identifier) => self.collect_name(identifier, expression, depth, search),
            Expression::StaticMemberExpression(member) => {
                self.collect_member(member, expression, depth, search)
            }
            _ => {
                search.found.push(value);
                true
            }
        }
    }

    fn collect_all(&self, values: Vec<Value<'a>>, depth: usize, search: &mut Search<'a>) -> bool {
        values.into_iter().all(|value| self.collect(value, depth - 1, search))
    }

    fn collect_name(
        &self,
        identifier: &'a IdentifierReference<'a>,
        expression: &'a Expression<'a>,
        depth: usize,
        search: &mut Search<'a>,
    ) -> bool {
        if let Some(symbol) = self.symbol(identifier) {
            if let Declared::Value(value) = self.declared(symbol) {
                self.frozen.borrow_mut().insert(symbol);
                return self.collect(Value::Expression(value), depth - 1, search);
            }
            if let Some(values) = self.property_values(symbol) {
                return self.collect_all(values, depth, search);
            }
        }
        search.found.push(Value::Expression(expression));
        true
    }

    fn collect_member(
        &self,
        member: &'a StaticMemberExpression<'a>,
        expression: &'a Expression<'a>,
        depth: usize,
        search: &mut Search<'a>,
    ) -> bool {
        let name = member.property.name.as_str();
        if let Expression::Identifier(object) = &member.object
            && let Some(values) = self.symbol(object).and_then(|symbol| self.member_values(symbol, name))
        {
            return self.collect_all(values, depth, search);
        }
        let mut objects = Search { steps: search.steps.clone(), found: Vec::new() };
        let is_bounded = self.collect(Value::Expression(&member.object), depth - 1, &mut objects);
        search.steps.set(objects.steps.get());
        is_bounded
            && objects.found.into_iter().all(|object| match object {
                Value::Expression(Expression::ObjectExpression(object)) => match property(object, name) {
                    Found::Value(value) => self.collect(Value::Expression(value), depth - 1, search),
                    Found::Nothing => self.collect(Value::Nothing, depth - 1, search),
                    Found::Unknown => self.collect_itself(expression, search),
                },
                _ => self.collect_itself(expression, search),
            })
    }

    fn collect_itself(&self, expression: &'a Expression<'a>, search: &mut Search<'a>) -> bool {
        search.found.push(Value::Expression(expression));
        true
    }

    /// The values of a name that a component takes out of its properties: `({ id, size = 1 }) => …`.
    fn property_values(&self, symbol: SymbolId) -> Option<Vec<Value<'a>>> {
        let (function, pattern) = self.first_parameter(symbol)?;
        let BindingPattern::ObjectPattern(pattern) = pattern else { return None };
        let (name, default) = pattern.properties.iter().find_map(|part| {
            let (bound, default) = match &part.value {
                BindingPattern::AssignmentPattern(with_default) => (&with_default.left, Some(&with_default.right)),
                other => (other, None),
            };
            let is_it = matches!(bound, BindingPattern::BindingIdentifier(name) if name.symbol_id.get() == Some(symbol));
            is_it.then(|| key_name(&part.key, part.computed)).flatten().map(|name| (name, default))
        })?;
        let mut values = self.attribute_values(function, name)?;
        values.extend(default.map(Value::Expression));
        Some(values)
    }

    /// The values of a member of a component's properties: `(props) => props.id`.
    fn member_values(&self, symbol: SymbolId, name: &str) -> Option<Vec<Value<'a>>> {
        let (function, pattern) = self.first_parameter(symbol)?;
        matches!(pattern, BindingPattern::BindingIdentifier(_))
            .then(|| self.attribute_values(function, name))
            .flatten()
    }

    /// Whether the name is bound to the properties of a component, as a whole.
    pub(super) fn is_properties(&self, symbol: SymbolId) -> bool {
        let parameter = self.first_parameter(symbol);
        parameter.is_some_and(|(function, pattern)| {
            matches!(pattern, BindingPattern::BindingIdentifier(_)) && self.is_shown(function)
        })
    }

    /// Whether the part of a pattern takes a property of a component out of its first parameter.
    pub(super) fn is_of_properties(&self, part: NodeId) -> bool {
        let pattern = self.parent_id(part);
        let parameter = self.parent_id(pattern);
        let list = self.parent_id(parameter);
        match self.semantic.nodes().kind(list) {
            AstKind::FormalParameters(parameters) => {
                let is_first = parameters.items.first().is_some_and(|first| first.node_id.get() == parameter);
                is_first && self.is_shown(self.parent_id(list))
            }
            _ => false,
        }
    }

    /// Whether the function is called by React alone: as the type of elements, or as the default export.
    fn is_shown(&self, function: NodeId) -> bool {
        if let AstKind::Function(inner) = self.semantic.nodes().kind(function)
            && matches!(self.parent(function), AstKind::ExportDefaultDeclaration(_))
        {
            let symbol = inner.id.as_ref().and_then(|id| id.symbol_id.get());
            return symbol.is_none_or(|symbol| self.references(symbol).is_empty());
        }
        self.component_uses(function).is_some()
    }

    /// The function whose first parameter binds this name, and the pattern.
    fn first_parameter(&self, symbol: SymbolId) -> Option<(NodeId, &'a BindingPattern<'a>)> {
        let scoping = self.semantic.scoping();
        if scoping.symbol_is_mutated(symbol) || !scoping.symbol_redeclarations(symbol).is_empty() {
            return None;
        }
        let declaration = scoping.symbol_declaration(symbol);
        let AstKind::FormalParameter(parameter) = self.semantic.nodes().kind(declaration) else {
            return None;
        };
        let list = self.parent_id(declaration);
        let AstKind::FormalParameters(parameters) = self.semantic.nodes().kind(list) else { return None };
        let is_first = parameters.items.first().is_some_and(|first| first.node_id.get() == declaration);
        (is_first && parameter.initializer.is_none()).then(|| (self.parent_id(list), &parameter.pattern))
    }

    fn attribute_values(&self, function: NodeId, name: &str) -> Option<Vec<Value<'a>>> {
        if matches!(name, "children" | "key" | "ref") {
            return None;
        }
        let uses = self.component_uses(function)?;
        let value = |element: &Element<'a>| {
            element.attribute(name).map_or(Value::Nothing, |attribute| attribute.value)
        };
        uses.iter().map(|element| element.spread.is_none().then(|| value(element))).collect()
    }

    /// Every element whose type is this function, if it is used in no other way. Looked up once for each function.
    fn component_uses(&self, function: NodeId) -> Option<Rc<Vec<Element<'a>>>> {
        if let Some(known) = self.uses.borrow().get(&function) {
            return known.clone();
        }
        let uses = self.find_component_uses(function).map(Rc::new);
        self.uses.borrow_mut().insert(function, uses.clone());
        uses
    }

    fn find_component_uses(&self, function: NodeId) -> Option<Vec<Element<'a>>> {
        let nodes = self.semantic.nodes();
        let mut symbols = Vec::new();
        let mut is_expression = true;
        if let AstKind::Function(function) = nodes.kind(function) {
            symbols.extend(function.id.as_ref().and_then(|id| id.symbol_id.get()));
            is_expression = function.r#type != FunctionType::FunctionDeclaration;
        }
        if is_expression {
            symbols.push(self.kept_under(function)?);
        }
        let mut uses = Vec::new();
        for symbol in &symbols {
            if self.semantic.scoping().symbol_is_mutated(*symbol) {
                return None;
            }
            for reference in self.references(*symbol) {
                let parent = self.parent_id(reference);
                match nodes.kind(parent) {
                    AstKind::JSXClosingElement(_) => {}
                    AstKind::JSXOpeningElement(_) => uses.push(element::element(self, self.parent(parent))?),
                    AstKind::CallExpression(call)
                        if call.arguments.first().is_some_and(|first| self.is_node(first, reference)) =>
                    {
                        uses.push(element::element(self, AstKind::CallExpression(call))?);
                    }
                    _ => return None,
                }
            }
        }
        // A function declaration that is the default export itself is handed properties by the host.
        let is_exported = matches!(self.parent(function), AstKind::ExportDefaultDeclaration(_));
        (!symbols.is_empty() && !is_exported).then_some(uses)
    }

    /// The constant that holds this function, or the `memo` of it.
    fn kept_under(&self, function: NodeId) -> Option<SymbolId> {
        let (child, user, mut kind) = self.use_of(function);
        if let AstKind::CallExpression(call) = kind {
            let is_first = call.arguments.first().is_some_and(|first| self.is_node(first, child));
            if !is_first || self.react_name(&call.callee) != Some("memo") {
                return None;
            }
            kind = self.use_of(user).2;
        }
        match kind {
            AstKind::VariableDeclarator(declarator) => match &declarator.id {
                BindingPattern::BindingIdentifier(name) => name.symbol_id.get(),
                _ => None,
            },
            _ => None,
        }
    }
}

enum Found<'a> {
    Value(&'a Expression<'a>),
    Nothing,
    Unknown,
}

/// What the literal says the property is.
fn property<'a>(object: &'a ObjectExpression<'a>, name: &str) -> Found<'a> {
    let mut found = Found::Nothing;
    for part in &object.properties {
        match part {
            ObjectPropertyKind::SpreadProperty(_) => return Found::Unknown,
            ObjectPropertyKind::ObjectProperty(property) => {
                match key_name(&property.key, property.computed) {
                    None => return Found::Unknown,
                    Some(key) if key == name => {
                        if property.kind != PropertyKind::Init {
                            return Found::Unknown;
                        }
                        found = Found::Value(&property.value);
                    }
                    Some(_) => {}
                }
            }
        }
    }
    found
}
