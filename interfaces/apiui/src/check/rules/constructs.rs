//! The constructs of the language: which may be written at all, and which rule looks at each.

use oxc::ast::AstKind;
use oxc::ast::ast::{Directive, Expression, ForStatementLeft, Function, VariableDeclarationKind};
use oxc::semantic::NodeId;
use oxc::span::{GetSpan, Span};
use oxc::syntax::operator::UnaryOperator;

use super::{Phase, Rules};
use crate::check::refusal::Rule;

impl<'a> Rules<'_, 'a> {
    pub(super) fn construct(&mut self, id: NodeId, node: AstKind<'a>) {
        match node {
            AstKind::IdentifierReference(identifier) => self.identifier(id, identifier),
            AstKind::StaticMemberExpression(member) => self.static_member(id, member),
            AstKind::ComputedMemberExpression(member) => self.computed_member(id, member),
            AstKind::ObjectExpression(object) => self.object(object),
            AstKind::BindingProperty(_) if self.vouched.contains(&id) => {}
            AstKind::BindingProperty(property) => self.binding_key(id, property),
            AstKind::NewExpression(new) => self.construction(&new.callee),
            AstKind::Function(function) => self.function(function),
            AstKind::VariableDeclaration(list) => self.declaration(list.kind, list.span),
            AstKind::Directive(directive) => self.directive(directive),
            AstKind::AwaitExpression(expression) => self.top_level_await(id, expression.span),
            AstKind::UnaryExpression(unary) if unary.operator == UnaryOperator::Delete => {
                let advice = "Make a copy without it: `const { name, ...rest } = object;`.";
                self.refuse(unary.span, Rule::Construct, "`delete`", advice);
            }
            node if is_write(node) => self.write(node),
            node if is_markup(node) && self.phase == Phase::Written => {}
            node if is_harmless_statement(node) || is_harmless_expression(node) => {}
            node => {
                let (what, advice) = refused(node);
                self.refuse(node.span(), Rule::Construct, what, advice);
            }
        }
    }

    /// What is written to, and by which names a pattern reads.
    fn write(&mut self, node: AstKind<'a>) {
        match node {
            AstKind::AssignmentExpression(assignment) => self.assignment(&assignment.left),
            AstKind::AssignmentTargetWithDefault(target) => self.assignment(&target.binding),
            AstKind::AssignmentTargetRest(rest) => self.assignment(&rest.target),
            AstKind::ArrayAssignmentTarget(list) => {
                let targets = list.elements.iter().flatten();
                targets
                    .filter_map(|element| element.as_assignment_target())
                    .for_each(|target| self.assignment(target));
            }
            AstKind::AssignmentTargetPropertyProperty(property) => {
                self.pattern_key(&property.name, property.computed);
                if let Some(target) = property.binding.as_assignment_target() {
                    self.assignment(target);
                }
            }
            AstKind::AssignmentTargetPropertyIdentifier(property) => {
                self.pattern_name(property.span, property.binding.name.as_str());
                self.written_name(&property.binding);
            }
            AstKind::UpdateExpression(update) => self.simple_assignment(&update.argument),
            AstKind::ForInStatement(statement) => self.loop_target(&statement.left),
            AstKind::ForOfStatement(statement) => {
                self.loop_target(&statement.left);
                if statement.r#await {
                    let advice = "Await each value in an ordinary loop.";
                    self.refuse(statement.span, Rule::Construct, "`for await`", advice);
                }
            }
            _ => {}
        }
    }

    fn directive(&mut self, directive: &'a Directive<'a>) {
        if directive.directive != "use strict" {
            let what = format!("The directive \"{}\"", directive.directive);
            self.refuse(directive.span, Rule::Construct, what, "Leave it out.");
        }
    }

    fn function(&mut self, function: &'a Function<'a>) {
        if function.generator {
            self.refuse(
                function.span,
                Rule::Construct,
                "A generator",
                "Write an ordinary function that returns a list.",
            );
        }
    }

    fn declaration(&mut self, kind: VariableDeclarationKind, span: Span) {
        if !matches!(kind, VariableDeclarationKind::Const | VariableDeclarationKind::Let) {
            self.refuse(span, Rule::Construct, format!("`{}`", kind.as_str()), "Use `const` or `let`.");
        }
    }

    fn loop_target(&mut self, left: &'a ForStatementLeft<'a>) {
        if let Some(target) = left.as_assignment_target() {
            self.assignment(target);
        }
    }

    /// Only listed classes of the language are constructed; the rule on globals knows which.
    fn construction(&mut self, callee: &'a Expression<'a>) {
        let root = match callee {
            Expression::StaticMemberExpression(member) => &member.object,
            other => other,
        };
        let is_global =
            matches!(root, Expression::Identifier(identifier) if self.tree.symbol(identifier).is_none());
        if !is_global {
            let advice =
                "Call a function that returns an object; `new` is for Date, Map, Set, Error and the like.";
            self.refuse(
                callee.span(),
                Rule::Construct,
                "`new` of something that is not a listed class",
                advice,
            );
        }
    }

    fn top_level_await(&mut self, id: NodeId, span: Span) {
        let mut ancestors = self.tree.semantic.nodes().ancestor_kinds(id);
        if !ancestors.any(|kind| matches!(kind, AstKind::Function(_) | AstKind::ArrowFunctionExpression(_))) {
            self.refuse(
                span,
                Rule::TopLevel,
                "`await` on the top level of the module",
                "Put it into an effect of the component.",
            );
        }
    }
}

/// Constructs that write.
fn is_write(node: AstKind<'_>) -> bool {
    matches!(
        node,
        AstKind::AssignmentExpression(_)
            | AstKind::AssignmentTargetWithDefault(_)
            | AstKind::AssignmentTargetRest(_)
            | AstKind::ArrayAssignmentTarget(_)
            | AstKind::AssignmentTargetPropertyProperty(_)
            | AstKind::AssignmentTargetPropertyIdentifier(_)
            | AstKind::UpdateExpression(_)
            | AstKind::ForInStatement(_)
            | AstKind::ForOfStatement(_)
    )
}

/// Parts of elements, which are looked at as a whole.
fn is_markup(node: AstKind<'_>) -> bool {
    matches!(
        node,
        AstKind::JSXElement(_)
            | AstKind::JSXOpeningElement(_)
            | AstKind::JSXClosingElement(_)
            | AstKind::JSXFragment(_)
            | AstKind::JSXOpeningFragment(_)
            | AstKind::JSXClosingFragment(_)
            | AstKind::JSXMemberExpression(_)
            | AstKind::JSXExpressionContainer(_)
            | AstKind::JSXEmptyExpression(_)
            | AstKind::JSXAttribute(_)
            | AstKind::JSXIdentifier(_)
            | AstKind::JSXNamespacedName(_)
            | AstKind::JSXSpreadAttribute(_)
            | AstKind::JSXText(_)
    )
}

/// Statements, declarations and patterns that do nothing by themselves: what they are made of is looked at.
fn is_harmless_statement(node: AstKind<'_>) -> bool {
    matches!(
        node,
        AstKind::Program(_)
            | AstKind::BlockStatement(_)
            | AstKind::VariableDeclarator(_)
            | AstKind::EmptyStatement(_)
            | AstKind::ExpressionStatement(_)
            | AstKind::IfStatement(_)
            | AstKind::DoWhileStatement(_)
            | AstKind::WhileStatement(_)
            | AstKind::ForStatement(_)
            | AstKind::ContinueStatement(_)
            | AstKind::BreakStatement(_)
            | AstKind::ReturnStatement(_)
            | AstKind::SwitchStatement(_)
            | AstKind::SwitchCase(_)
            | AstKind::ThrowStatement(_)
            | AstKind::TryStatement(_)
            | AstKind::CatchClause(_)
            | AstKind::CatchParameter(_)
            | AstKind::AssignmentPattern(_)
            | AstKind::ObjectPattern(_)
            | AstKind::ArrayPattern(_)
            | AstKind::BindingRestElement(_)
            | AstKind::FormalParameters(_)
            | AstKind::FormalParameter(_)
            | AstKind::FormalParameterRest(_)
            | AstKind::FunctionBody(_)
            | AstKind::ImportDeclaration(_)
            | AstKind::ImportSpecifier(_)
            | AstKind::ImportDefaultSpecifier(_)
            | AstKind::ImportNamespaceSpecifier(_)
            | AstKind::ExportDefaultDeclaration(_)
            | AstKind::BindingIdentifier(_)
    )
}

/// Expressions of which the same is true.
fn is_harmless_expression(node: AstKind<'_>) -> bool {
    matches!(
        node,
        AstKind::IdentifierName(_)
            | AstKind::ArrayExpression(_)
            | AstKind::Elision(_)
            | AstKind::ObjectProperty(_)
            | AstKind::TemplateLiteral(_)
            | AstKind::TemplateElement(_)
            | AstKind::CallExpression(_)
            | AstKind::SpreadElement(_)
            | AstKind::UnaryExpression(_)
            | AstKind::BinaryExpression(_)
            | AstKind::LogicalExpression(_)
            | AstKind::ConditionalExpression(_)
            | AstKind::ObjectAssignmentTarget(_)
            | AstKind::SequenceExpression(_)
            | AstKind::ChainExpression(_)
            | AstKind::ParenthesizedExpression(_)
            | AstKind::ArrowFunctionExpression(_)
            | AstKind::BooleanLiteral(_)
            | AstKind::NullLiteral(_)
            | AstKind::NumericLiteral(_)
            | AstKind::StringLiteral(_)
            | AstKind::BigIntLiteral(_)
            | AstKind::RegExpLiteral(_)
    )
}

fn refused(node: AstKind<'_>) -> (&'static str, &'static str) {
    match node {
        AstKind::ThisExpression(_) | AstKind::Super(_) => {
            ("`this` or `super`", "Use parameters and variables.")
        }
        AstKind::Class(_) => ("A class", "Write function components and plain functions."),
        AstKind::TaggedTemplateExpression(_) => {
            ("A tagged template", "Call a function with ordinary arguments.")
        }
        AstKind::ImportExpression(_) => {
            ("A dynamic import", "A module has only what it imports from \"react\" by name.")
        }
        AstKind::ImportMeta(_) => ("`import.meta`", "Leave it out."),
        AstKind::NewTarget(_) => ("`new.target`", "Leave it out."),
        AstKind::LabeledStatement(_) | AstKind::LabelIdentifier(_) => {
            ("A label", "Put the inner loop into a function.")
        }
        AstKind::WithStatement(_) => ("`with`", "Name the properties."),
        AstKind::DebuggerStatement(_) => ("`debugger`", "Leave it out."),
        AstKind::YieldExpression(_) => ("`yield`", "Write an ordinary function that returns a list."),
        AstKind::JSXSpreadChild(_) => ("A spread among children", "Write `{list}`."),
        AstKind::WithClause(_) | AstKind::ImportAttribute(_) => ("Import attributes", "Leave them out."),
        AstKind::Hashbang(_) => ("A `#!` line", "Leave it out."),
        _ => {
            ("A construct that is not on the list", "Write it with functions, objects, conditions and loops.")
        }
    }
}
