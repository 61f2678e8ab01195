//! Questions about a syntax tree: what does this name stand for, what can this expression be. Owns the resolution of
//! names to their declarations; must not know what is allowed.
//!
//! Invariant: an answer holds at every moment of the run, whatever the code does: only names that are bound once and
//! never written are looked through, and objects that were looked into are remembered as *frozen*, so that the
//! rule on assignments can refuse to change them.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use oxc::allocator::GetAddress;
use oxc::ast::AstKind;
use oxc::ast::ast::{
    ArrowFunctionBody, ArrowFunctionExpression, BindingPattern, CallExpression, Expression, FormalParameters,
    Function, IdentifierReference, ImportDeclaration, ModuleExportName, PropertyKey, Statement,
    VariableDeclarationKind,
};
use oxc::semantic::{NodeId, Semantic, SymbolId};
use oxc::syntax::operator::{BinaryOperator, UnaryOperator};

use super::element_view::Element;

/// How far names are followed, and how much is looked at on the way.
const STEPS: usize = 400;
const DEPTH: usize = 16;

type Uses<'a> = Option<Rc<Vec<Element<'a>>>>;

pub(super) struct Tree<'s, 'a> {
    pub semantic: &'s Semantic<'a>,
    /// Names whose object literal was looked into.
    pub frozen: RefCell<HashSet<SymbolId>>,
    /// The elements of each function that was asked about, if it is a component and nothing else.
    pub uses: RefCell<HashMap<NodeId, Uses<'a>>>,
    /// What each name was declared as, looked up once: whether a name is written takes a look at all its uses.
    known: RefCell<HashMap<SymbolId, Declared<'a>>>,
    /// What is left of the bound on one question about numbers.
    steps: Cell<usize>,
}

/// What a name was declared as.
#[derive(Clone, Copy)]
pub(super) enum Declared<'a> {
    Function(&'a Function<'a>),
    /// Bound once, by name, with this value.
    Value(&'a Expression<'a>),
    /// `None` stands for the whole module.
    Import(&'a ImportDeclaration<'a>, Option<&'a str>),
    /// A parameter, a part of a pattern, a loop's or a written variable.
    Other,
}

#[derive(Clone, Copy)]
pub(super) enum AnyFunction<'a> {
    Arrow(&'a ArrowFunctionExpression<'a>),
    Function(&'a Function<'a>),
}

impl<'a> AnyFunction<'a> {
    pub(super) fn parameters(self) -> &'a FormalParameters<'a> {
        match self {
            Self::Arrow(arrow) => &arrow.params,
            Self::Function(function) => &function.params,
        }
    }

    /// The statements of the body; `None` for an arrow that is one expression.
    pub(super) fn statements(self) -> Option<&'a [Statement<'a>]> {
        match self {
            Self::Arrow(arrow) => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => Some(&body.statements),
                _ => None,
            },
            Self::Function(function) => function.body.as_ref().map(|body| body.statements.as_slice()),
        }
    }

    pub(super) fn is_plain(self) -> bool {
        match self {
            Self::Arrow(arrow) => !arrow.r#async,
            Self::Function(function) => !function.r#async && !function.generator,
        }
    }
}

impl<'s, 'a> Tree<'s, 'a> {
    pub(super) fn new(semantic: &'s Semantic<'a>) -> Self {
        Self {
            semantic,
            frozen: RefCell::default(),
            uses: RefCell::default(),
            known: RefCell::default(),
            steps: Cell::new(0),
        }
    }

    pub(super) fn parent(&self, id: NodeId) -> AstKind<'a> {
        self.semantic.nodes().parent_kind(id)
    }

    pub(super) fn parent_id(&self, id: NodeId) -> NodeId {
        self.semantic.nodes().parent_id(id)
    }

    /// Who uses the value of this node: the child through which it does (the node, or the optional chain that wraps
    /// it), and the user.
    pub(super) fn use_of(&self, id: NodeId) -> (NodeId, NodeId, AstKind<'a>) {
        let nodes = self.semantic.nodes();
        let (mut child, mut user) = (id, nodes.parent_id(id));
        while matches!(nodes.kind(user), AstKind::ChainExpression(_) | AstKind::ParenthesizedExpression(_)) {
            (child, user) = (user, nodes.parent_id(user));
        }
        (child, user, nodes.kind(user))
    }

    /// Whether this part of a tree is that node.
    pub(super) fn is_node(&self, part: &impl GetAddress, id: NodeId) -> bool {
        part.address() == self.semantic.nodes().kind(id).address()
    }

    pub(super) fn symbol(&self, identifier: &IdentifierReference<'a>) -> Option<SymbolId> {
        let reference = identifier.reference_id.get()?;
        self.semantic.scoping().get_reference(reference).symbol_id()
    }

    /// The nodes that name this symbol.
    pub(super) fn references(&self, symbol: SymbolId) -> Vec<NodeId> {
        self.semantic.symbol_references(symbol).map(|reference| reference.node_id()).collect()
    }

    pub(super) fn declared(&self, symbol: SymbolId) -> Declared<'a> {
        if let Some(known) = self.known.borrow().get(&symbol) {
            return *known;
        }
        let found = self.find_declared(symbol);
        self.known.borrow_mut().insert(symbol, found);
        found
    }

    fn find_declared(&self, symbol: SymbolId) -> Declared<'a> {
        let scoping = self.semantic.scoping();
        if scoping.symbol_is_mutated(symbol) || !scoping.symbol_redeclarations(symbol).is_empty() {
            return Declared::Other;
        }
        let declaration = scoping.symbol_declaration(symbol);
        match self.semantic.nodes().kind(declaration) {
            AstKind::Function(function) => {
                let own = function.id.as_ref().and_then(|id| id.symbol_id.get());
                if own == Some(symbol) { Declared::Function(function) } else { Declared::Other }
            }
            AstKind::VariableDeclarator(declarator) => {
                let AstKind::VariableDeclaration(list) = self.parent(declaration) else {
                    return Declared::Other;
                };
                let lexical =
                    matches!(list.kind, VariableDeclarationKind::Const | VariableDeclarationKind::Let);
                match (&declarator.id, &declarator.init) {
                    (BindingPattern::BindingIdentifier(id), Some(init))
                        if lexical && id.symbol_id.get() == Some(symbol) =>
                    {
                        Declared::Value(init)
                    }
                    _ => Declared::Other,
                }
            }
            AstKind::ImportSpecifier(specifier) => {
                let name = match &specifier.imported {
                    ModuleExportName::IdentifierName(name) => name.name.as_str(),
                    ModuleExportName::IdentifierReference(name) => name.name.as_str(),
                    ModuleExportName::StringLiteral(text) => text.value.as_str(),
                };
                self.import(declaration, Some(name))
            }
            AstKind::ImportDefaultSpecifier(_) | AstKind::ImportNamespaceSpecifier(_) => {
                self.import(declaration, None)
            }
            _ => Declared::Other,
        }
    }

    fn import(&self, specifier: NodeId, name: Option<&'a str>) -> Declared<'a> {
        match self.parent(specifier) {
            AstKind::ImportDeclaration(import) => Declared::Import(import, name),
            _ => Declared::Other,
        }
    }

    /// The name under which React exports what this expression stands for.
    pub(super) fn react_name(&self, expression: &'a Expression<'a>) -> Option<&'a str> {
        match expression {
            Expression::Identifier(identifier) => match self.declared(self.symbol(identifier)?) {
                Declared::Import(import, Some(name)) if import.source.value == "react" => Some(name),
                _ => None,
            },
            Expression::StaticMemberExpression(member) => match &member.object {
                Expression::Identifier(identifier) if self.is_react(identifier) => {
                    Some(member.property.name.as_str())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether this names the whole of React.
    pub(super) fn is_react(&self, identifier: &IdentifierReference<'a>) -> bool {
        let Some(symbol) = self.symbol(identifier) else { return false };
        matches!(self.declared(symbol), Declared::Import(import, None) if import.source.value == "react")
    }

    /// The call of this React function that the expression is, if it is one.
    pub(super) fn react_call(
        &self,
        expression: &'a Expression<'a>,
        name: &str,
    ) -> Option<&'a CallExpression<'a>> {
        match expression {
            Expression::CallExpression(call) if self.react_name(&call.callee) == Some(name) => Some(call),
            _ => None,
        }
    }

    /// The function of the module that this expression certainly is.
    pub(super) fn function(&self, expression: &'a Expression<'a>) -> Option<AnyFunction<'a>> {
        let mut expression = expression;
        for _ in 0..DEPTH {
            match expression {
                Expression::ArrowFunctionExpression(arrow) => return Some(AnyFunction::Arrow(arrow)),
                Expression::FunctionExpression(function) => return Some(AnyFunction::Function(function)),
                Expression::ParenthesizedExpression(inner) => expression = &inner.expression,
                Expression::Identifier(identifier) => match self.declared(self.symbol(identifier)?) {
                    Declared::Function(function) => return Some(AnyFunction::Function(function)),
                    Declared::Value(value) => expression = value,
                    _ => return None,
                },
                _ => {
                    expression =
                        self.react_call(expression, "useCallback")?.arguments.first()?.as_expression()?
                }
            }
        }
        None
    }

    /// Whether the value is certainly a number, so that it cannot be the name of a property.
    pub(super) fn is_number(&self, expression: &'a Expression<'a>) -> bool {
        self.steps.set(STEPS);
        self.is_number_within(expression, DEPTH)
    }

    fn is_number_within(&self, expression: &'a Expression<'a>, depth: usize) -> bool {
        if depth == 0 || self.steps.get() == 0 {
            return false;
        }
        self.steps.set(self.steps.get() - 1);
        match expression {
            Expression::NumericLiteral(_) | Expression::UpdateExpression(_) => true,
            Expression::UnaryExpression(unary) => {
                matches!(
                    unary.operator,
                    UnaryOperator::UnaryPlus | UnaryOperator::UnaryNegation | UnaryOperator::BitwiseNot
                )
            }
            Expression::BinaryExpression(binary) => match binary.operator {
                BinaryOperator::Addition => {
                    self.is_number_within(&binary.left, depth - 1)
                        && self.is_number_within(&binary.right, depth - 1)
                }
                operator => operator.is_arithmetic() || operator.is_bitwise(),
            },
            Expression::ParenthesizedExpression(inner) => self.is_number_within(&inner.expression, depth - 1),
            Expression::ConditionalExpression(choice) => {
                self.is_number_within(&choice.consequent, depth - 1)
                    && self.is_number_within(&choice.alternate, depth - 1)
            }
            Expression::Identifier(identifier) => self.is_counter(identifier, depth),
            _ => false,
        }
    }

    /// A variable that starts as a number and is only ever counted up or down.
    fn is_counter(&self, identifier: &IdentifierReference<'a>, depth: usize) -> bool {
        let Some(symbol) = self.symbol(identifier) else { return false };
        let scoping = self.semantic.scoping();
        let AstKind::VariableDeclarator(declarator) =
            self.semantic.nodes().kind(scoping.symbol_declaration(symbol))
        else {
            return false;
        };
        let (BindingPattern::BindingIdentifier(_), Some(init)) = (&declarator.id, &declarator.init) else {
            return false;
        };
        let writes = self.semantic.symbol_references(symbol).filter(|reference| reference.is_write());
        self.is_number_within(init, depth - 1)
            && scoping.symbol_redeclarations(symbol).is_empty()
            && writes.into_iter().all(|write| self.keeps_number(write.node_id(), depth - 1))
    }

    fn keeps_number(&self, write: NodeId, depth: usize) -> bool {
        match self.parent(write) {
            AstKind::UpdateExpression(_) => true,
            AstKind::AssignmentExpression(assignment) => {
                let operator = assignment.operator;
                (operator.is_assign() || operator.is_arithmetic() || operator.is_bitwise())
                    && self.is_number_within(&assignment.right, depth)
            }
            _ => false,
        }
    }
}

/// The name that a property key spells, if it is literal.
pub(super) fn key_name<'a>(key: &'a PropertyKey<'a>, computed: bool) -> Option<&'a str> {
    match key {
        PropertyKey::StaticIdentifier(name) if !computed => Some(name.name.as_str()),
        PropertyKey::PrivateIdentifier(_) => None,
        PropertyKey::NumericLiteral(_) => Some("0"),
        _ => literal_text(key.as_expression()?),
    }
}

/// The text that this expression literally is.
pub(super) fn literal_text<'a>(expression: &'a Expression<'a>) -> Option<&'a str> {
    match expression {
        Expression::StringLiteral(text) => Some(text.value.as_str()),
        Expression::TemplateLiteral(template) if template.expressions.is_empty() => {
            template.quasis.first()?.value.cooked.as_ref().map(|text| text.as_str())
        }
        Expression::ParenthesizedExpression(inner) => literal_text(&inner.expression),
        _ => None,
    }
}
