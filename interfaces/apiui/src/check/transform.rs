//! From text to tree to plain JavaScript, with the rules applied on the way. Owns the use of the parser, the transform and
//! the printer of trees; the rules are elsewhere.
//!
//! Invariant: no text leaves that was not looked at twice, before and after the transform. The work runs on a thread
//! with a stack that is large enough for what `scan.rs` lets pass.

use std::path::Path;

use oxc::allocator::Allocator;
use oxc::ast::ast::{
    ExportDefaultDeclarationKind, ImportDeclaration, ImportDeclarationSpecifier, Program, Statement,
};
use oxc::codegen::{Codegen, CodegenOptions, CommentOptions, Context, Gen as _};
use oxc::diagnostics::OxcDiagnostic;
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::SemanticBuilder;
use oxc::span::{SourceType, Span};
use oxc::transformer::{JsxOptions, JsxRuntime, TransformOptions, Transformer};

use super::data::{self, Data};
use super::element::RUNTIME;
use super::refusal::{Refusals, Rule};
use super::rules::{self, Facts, Phase};
use super::{Checked, Refusal, scan};

/// Enough for the deepest nesting that the scan allows, with a margin for unoptimized builds.
const STACK: usize = 256 << 20;

type Print = fn(&Program<'_>, Option<Data>) -> String;

/// Checks the module and gives its facts.
pub(super) fn checked(code: &str) -> Result<Checked, Vec<Refusal>> {
    run(code, |_, _| String::new()).map(|(checked, _)| checked)
}

/// Checks the module and gives its plain form.
pub(super) fn plain(code: &str) -> Result<String, Vec<Refusal>> {
    run(code, print).map(|(_, plain)| plain)
}

/// Checks the module and gives a script that has React from the page's bundle and shows the component.
pub(super) fn page_script(code: &str) -> Result<(Checked, String), Vec<Refusal>> {
    run(code, print_page_script)
}

fn run(code: &str, print: Print) -> Result<(Checked, String), Vec<Refusal>> {
    let data = data::at_end(code);
    let stand_in = data.map(|data| data.stand_in(code));
    let code = stand_in.as_deref().unwrap_or(code);
    if let Err((offset, what, advice)) = scan::scan(code) {
        return Err(syntax(code, offset, &what, &advice));
    }
    let outcome = std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("check".to_owned()).stack_size(STACK);
        let worker = builder.spawn_scoped(scope, || on_large_stack(code, data, print));
        worker.ok().and_then(|worker| worker.join().ok())
    });
    let advice = "Make the module smaller and simpler.";
    outcome.unwrap_or_else(|| Err(syntax(code, 0, "The check could not be run to its end", advice)))
}

fn on_large_stack(code: &str, data: Option<Data>, print: Print) -> Result<(Checked, String), Vec<Refusal>> {
    let allocator = Allocator::default();
    let options = ParseOptions { preserve_parens: false, ..ParseOptions::default() };
    let parsed =
        Parser::new(&allocator, code, SourceType::mjs().with_jsx(true)).with_options(options).parse();
    refuse_diagnostics(code, &parsed.diagnostics)?;
    if parsed.panicked {
        return Err(syntax(code, 0, "The module does not parse", "Look for an unclosed bracket or element."));
    }
    let mut program = parsed.program;
    if data.is_some_and(|data| !data.is_last(&program)) {
        let advice = "Write the data as the last statement of the module.";
        return Err(syntax(code, 0, "The data at the end is not a statement of its own", advice));
    }

    let built = SemanticBuilder::new().with_check_syntax_error(true).with_build_nodes(true).build(&program);
    refuse_diagnostics(code, &built.diagnostics)?;
    let (refusals, facts) = rules::apply(&built.semantic, code, Phase::Written);
    if !refusals.is_empty() {
        return Err(refusals.into_refusals(code));
    }

    let scoping = built.semantic.into_scoping();
    let jsx = JsxOptions {
        runtime: JsxRuntime::Automatic,
        development: false,
        pure: false,
        ..JsxOptions::enable()
    };
    let options = TransformOptions { jsx, ..TransformOptions::default() };
    let transformed = Transformer::new(&allocator, Path::new("module.jsx"), &options)
        .build_with_scoping(scoping, &mut program);
    refuse_diagnostics(code, &transformed.diagnostics)?;

    let built = SemanticBuilder::new().with_check_syntax_error(true).with_build_nodes(true).build(&program);
    refuse_diagnostics(code, &built.diagnostics)?;
    let (refusals, _) = rules::apply(&built.semantic, code, Phase::Transformed);
    if !refusals.is_empty() {
        return Err(refusals.into_refusals(code));
    }
    Ok((checked_facts(facts), print(&program, data)))
}

fn checked_facts(facts: Facts) -> Checked {
    Checked { servers: facts.servers, operations: facts.operations }
}

/// The imports as constants taken from the page's bundle, the module, and the call that shows its component.
fn print_page_script(program: &Program<'_>, data: Option<Data>) -> String {
    let mut script = Codegen::new().with_options(options());
    let mut shown = free_name(program.source_text);
    for (index, statement) in program.body.iter().enumerate() {
        match statement {
            _ if index + 1 == program.body.len() && data.is_some() => {}
            Statement::ImportDeclaration(import) => script.print_str(&import_as_constants(import)),
            Statement::ExportDefaultDeclaration(export) => match &export.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    match &function.id {
                        Some(name) => shown = name.name.to_string(),
                        None => script.print_str(&format!("const {shown} = ")),
                    }
                    function.print(&mut script, Context::default());
                    script.print_str(";\n");
                }
                other => {
                    if let Some(expression) = other.as_expression() {
                        script.print_str(&format!("const {shown} = "));
                        script.print_expression(expression);
                        script.print_str(";\n");
                    }
                }
            },
            other => other.print(&mut script, Context::default()),
        }
    }
    if let Some(data) = data {
        script.print_str(&data.statement());
    }
    script.print_str(&format!("dragomanReact.mount({shown}, document.getElementById(\"root\"));\n"));
    script.into_source_text()
}

fn import_as_constants(import: &ImportDeclaration<'_>) -> String {
    let source = if import.source.value == RUNTIME { "dragomanReact.runtime" } else { "dragomanReact.react" };
    let constant = |specifier: &ImportDeclarationSpecifier<'_>| match specifier {
        // The rule on imports lets pass names that are identifiers only.
        ImportDeclarationSpecifier::ImportSpecifier(named) => {
            format!("const {} = {source}.{};\n", named.local.name, named.imported.name())
        }
        ImportDeclarationSpecifier::ImportDefaultSpecifier(whole) => {
            format!("const {} = {source};\n", whole.local.name)
        }
        ImportDeclarationSpecifier::ImportNamespaceSpecifier(whole) => {
            format!("const {} = {source};\n", whole.local.name)
        }
    };
    import.specifiers.iter().flatten().map(constant).collect()
}

/// A name that occurs nowhere in the text.
fn free_name(source: &str) -> String {
    let mut name = "shownComponent".to_owned();
    while source.contains(&name) {
        name.push('_');
    }
    name
}

/// The program as text, without comments.
fn print(program: &Program<'_>, data: Option<Data>) -> String {
    let mut code = Codegen::new().with_options(options()).build(program).code;
    if let Some(data) = data
        && let Some(at) = code.rfind(&data.opening())
    {
        code.truncate(at);
        code.push_str(&data.statement());
    }
    code
}

fn options() -> CodegenOptions {
    CodegenOptions { comments: CommentOptions::disabled(), ..CodegenOptions::default() }
}

fn refuse_diagnostics(code: &str, diagnostics: &[OxcDiagnostic]) -> Result<(), Vec<Refusal>> {
    let mut refusals = Refusals::default();
    for diagnostic in diagnostics {
        let offset = diagnostic.labels.first().map_or(0, |label| label.offset());
        let advice = match &diagnostic.help {
            Some(help) => help.to_string(),
            None => "Correct the syntax; the module is JavaScript with JSX, without types.".to_owned(),
        };
        let what = format!("It does not parse: {}", diagnostic.message);
        refusals.add(Span::empty(offset), Rule::Syntax, what, advice);
    }
    if refusals.is_empty() { Ok(()) } else { Err(refusals.into_refusals(code)) }
}

fn syntax(code: &str, offset: u32, what: &str, advice: &str) -> Vec<Refusal> {
    let mut refusals = Refusals::default();
    refusals.add(Span::empty(offset), Rule::Syntax, what, advice);
    refusals.into_refusals(code)
}
