//! The module as a whole: what it imports and exports, what stands on its top level, which names it binds, its
//! comments, and its copies of the vetted definitions.

use std::sync::LazyLock;

use oxc::allocator::Allocator;
use oxc::ast::AstKind;
use oxc::ast::ast::{
    BindingPattern, ExportDefaultDeclarationKind, Expression, Function, ImportDeclaration,
    ImportDeclarationSpecifier, ModuleExportName, Program, Statement, VariableDeclarationKind,
};
use oxc::codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc::parser::Parser;
use oxc::semantic::SymbolId;
use oxc::span::{GetSpan, SourceType, Span};

use super::{Phase, Rules};
use crate::check::approved::{APPROVED, Approved, SERVERS};
use crate::check::element::RUNTIME;
use crate::check::lists::{GLOBALS, REACT_COMPONENTS, REACT_FUNCTIONS, RELIED_ON};
use crate::check::refusal::Rule;
use crate::check::tree::{AnyFunction, Declared};

impl<'a> Rules<'_, 'a> {
    pub(super) fn module(&mut self) {
        let program = self.tree.semantic.nodes().program();
        self.comments(program);
        let mut exports = 0;
        for statement in &program.body {
            match statement {
                Statement::ImportDeclaration(import) => self.import(import),
                Statement::ExportDefaultDeclaration(export) => {
                    exports += 1;
                    self.default_export(&export.declaration, export.span);
                }
                Statement::VariableDeclaration(_) | Statement::FunctionDeclaration(_) => {}
                Statement::ExportAllDeclaration(_)
                | Statement::ExportDeclaration(_)
                | Statement::ExportNamedDeclaration(_)
                | Statement::ExportFromDeclaration(_) => {
                    let advice = "Export one component, with `export default`.";
                    self.refuse(statement.span(), Rule::Export, "An export besides the default one", advice);
                }
                // Refused by the rule on constructs, with a better word.
                Statement::ClassDeclaration(_) => {}
                other => {
                    let advice = "Put it into the component or one of its effects.";
                    self.refuse(
                        other.span(),
                        Rule::TopLevel,
                        "A statement on the top level of the module",
                        advice,
                    );
                }
            }
        }
        if exports != 1 {
            let advice = "End the module with `export default App;`, where App is its component.";
            self.refuse(Span::default(), Rule::Export, "The module does not export a component", advice);
        }
        self.bindings();
    }

    /// Comments that a bundler, a transform or a developer tool acts upon.
    fn comments(&mut self, program: &Program<'a>) {
        for comment in &program.comments {
            let text =
                self.source.get(comment.span.start as usize..comment.span.end as usize).unwrap_or_default();
            if ["@jsx", "sourceMappingURL", "sourceURL", "@vite", "webpack", "#__"]
                .iter()
                .any(|word| text.contains(word))
            {
                self.refuse(comment.span, Rule::Comment, "A comment that tools act upon", "Leave it out.");
            }
        }
    }

    fn import(&mut self, import: &'a ImportDeclaration<'a>) {
        let source = import.source.value.as_str();
        let runtime = source == RUNTIME && self.phase == Phase::Transformed;
        if (source != "react" && !runtime) || import.with_clause.is_some() || import.phase.is_some() {
            let what = format!("An import from \"{source}\"");
            self.refuse(
                import.span,
                Rule::Import,
                what,
                "Import from \"react\" only; write the rest into the module.",
            );
            return;
        }
        let Some(specifiers) = &import.specifiers else {
            self.refuse(
                import.span,
                Rule::Import,
                "An import without names",
                "Name what is used, or leave it out.",
            );
            return;
        };
        for specifier in specifiers {
            if let ImportDeclarationSpecifier::ImportSpecifier(named) = specifier {
                let name = match &named.imported {
                    ModuleExportName::IdentifierName(name) => name.name.as_str(),
                    ModuleExportName::IdentifierReference(name) => name.name.as_str(),
                    ModuleExportName::StringLiteral(text) => text.value.as_str(),
                };
                let listed = REACT_FUNCTIONS.contains(name) || REACT_COMPONENTS.contains(name);
                if !(listed || runtime && matches!(name, "jsx" | "jsxs" | "Fragment")) {
                    let advice = format!("Of React there are {}.", REACT_FUNCTIONS.listed());
                    self.refuse(named.span, Rule::Import, format!("The import of `{name}`"), advice);
                }
            }
        }
    }

    fn default_export(&mut self, declaration: &'a ExportDefaultDeclarationKind<'a>, span: Span) {
        let is_component = match declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                AnyFunction::Function(function).is_plain()
            }
            other => other.as_expression().is_some_and(|expression| match expression {
                Expression::Identifier(identifier) => {
                    self.tree.symbol(identifier).is_some_and(|symbol| self.is_component(symbol))
                }
                other => self.is_component_value(other),
            }),
        };
        if !is_component {
            let advice = "Write `export default function App({ request }) { … }`.";
            self.refuse(span, Rule::Export, "The default export is not a component of the module", advice);
        }
    }

    /// Names that must keep their meaning, and the definitions that are known by name.
    fn bindings(&mut self) {
        let scoping = self.tree.semantic.scoping();
        for symbol in scoping.symbol_ids() {
            let name = scoping.symbol_name(symbol);
            let span = scoping.symbol_span(symbol);
            if let Some(approved) = APPROVED.iter().find(|approved| approved.name == name) {
                self.approve(approved, symbol, span);
            } else if name == SERVERS {
                self.servers(symbol, span);
            } else if RELIED_ON.contains(name) || GLOBALS.iter().any(|global| global.name == name) {
                let advice = "Choose another name.";
                self.refuse(
                    span,
                    Rule::Reserved,
                    format!("`{name}` is declared, but it is a name of the language"),
                    advice,
                );
            }
        }
    }

    fn approve(&mut self, approved: &Approved, symbol: SymbolId, span: Span) {
        let scoping = self.tree.semantic.scoping();
        let name = approved.name;
        let Declared::Function(function) = self.tree.declared(symbol) else {
            let advice = format!("The name `{name}` is kept for the vetted function; choose another name.");
            self.refuse(
                span,
                Rule::Approved,
                format!("`{name}` is not the vetted function, or is changed later"),
                advice,
            );
            return;
        };
        let id = function.node_id.get();
        let is_top = scoping.symbol_scope_id(symbol) == scoping.root_scope_id()
            && matches!(self.tree.parent(id), AstKind::Program(_));
        if !is_top || normalized_function(self.source, function).as_deref() != Some(normalized(approved)) {
            let advice =
                format!("Leave the definition as it was, or choose another name:\n{}", approved.source);
            self.refuse(
                function.span,
                Rule::Approved,
                format!("The vetted function `{name}` was changed or moved"),
                advice,
            );
            return;
        }
        self.approved.insert(id);
        for needed in approved.needs {
            let exists = scoping.get_root_binding((*needed).into()).is_some();
            if !exists {
                let advice = format!("Define `{needed}` as it is vetted, or leave out `{name}`.");
                self.refuse(
                    function.span,
                    Rule::Approved,
                    format!("`{name}` needs `{needed}`, which is missing"),
                    advice,
                );
            }
        }
    }

    fn servers(&mut self, symbol: SymbolId, span: Span) {
        let scoping = self.tree.semantic.scoping();
        let is_top = scoping.symbol_scope_id(symbol) == scoping.root_scope_id();
        let is_constant = match self.tree.parent(scoping.symbol_declaration(symbol)) {
            AstKind::VariableDeclaration(list) => list.kind == VariableDeclarationKind::Const,
            _ => false,
        };
        let listed = match self.tree.declared(symbol) {
            Declared::Value(Expression::ArrayExpression(list)) if is_top && is_constant => {
                let texts = list.elements.iter().map(|element| match element.as_expression() {
                    Some(Expression::StringLiteral(text)) if is_address(text.value.as_str()) => {
                        Some(text.value.to_string())
                    }
                    _ => None,
                });
                texts.collect::<Option<Vec<_>>>().filter(|texts| !texts.is_empty())
            }
            _ => None,
        };
        match listed {
            Some(servers) => {
                self.facts.servers = servers;
                self.servers = Some(symbol);
            }
            None => {
                let advice = "Write `const SERVERS = [\"https://api.example.com\"];` on the top level: literal texts, each \
                              empty, a path, or an http or https address.";
                self.refuse(span, Rule::Servers, "`SERVERS` is not a constant list of addresses", advice);
            }
        }
    }

    /// A function of the module, or one wrapped by `memo`, or a context.
    pub(super) fn is_component(&self, symbol: SymbolId) -> bool {
        match self.tree.declared(symbol) {
            Declared::Function(function) => AnyFunction::Function(function).is_plain(),
            Declared::Value(value) => self.is_component_value(value),
            Declared::Import(import, Some(name)) => {
                import.source.value == "react" && REACT_COMPONENTS.contains(name)
            }
            Declared::Import(..) | Declared::Other => false,
        }
    }

    fn is_component_value(&self, value: &'a Expression<'a>) -> bool {
        if self.tree.react_call(value, "createContext").is_some() {
            return true;
        }
        let inner = match self.tree.react_call(value, "memo") {
            Some(call) => call.arguments.first().and_then(|argument| argument.as_expression()),
            None => Some(value),
        };
        inner.and_then(|inner| self.tree.function(inner)).is_some_and(AnyFunction::is_plain)
    }
}

/// Empty, a path, or an http(s) address without credentials, white space or anything that would move the host.
fn is_address(text: &str) -> bool {
    if text.chars().any(|character| {
        character.is_whitespace() || character.is_control() || matches!(character, '\\' | '@')
    }) {
        return false;
    }
    if let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) {
        return rest.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[');
    }
    text.is_empty() || (text.starts_with('/') && !text.starts_with("//"))
}

/// The text of the vetted definitions as the printer of syntax trees writes them.
static NORMALIZED: LazyLock<Vec<(&'static str, String)>> = LazyLock::new(|| {
    APPROVED.iter().map(|one| (one.name, normalize(one.source).unwrap_or_default())).collect()
});

fn normalized(approved: &Approved) -> &'static str {
    NORMALIZED.iter().find(|(name, _)| *name == approved.name).map_or("", |(_, text)| text)
}

fn normalized_function(source: &str, function: &Function<'_>) -> Option<String> {
    normalize(source.get(function.span.start as usize..function.span.end as usize)?)
}

/// The same text for the same tree, whatever its white space and comments.
fn normalize(source: &str) -> Option<String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::mjs()).parse();
    if parsed.panicked || !parsed.diagnostics.is_empty() || parsed.program.body.len() != 1 {
        return None;
    }
    let options = CodegenOptions { comments: CommentOptions::disabled(), ..CodegenOptions::default() };
    Some(Codegen::new().with_options(options).build(&parsed.program).code)
}

/// Whether this pattern is one plain name.
pub(super) fn plain_name<'a>(pattern: &'a BindingPattern<'a>) -> Option<SymbolId> {
    match pattern {
        BindingPattern::BindingIdentifier(name) => name.symbol_id.get(),
        _ => None,
    }
}
