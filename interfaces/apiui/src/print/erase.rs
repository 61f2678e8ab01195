//! TypeScript → JavaScript, by cutting the types out: what is left stands where it stood.
//!
//! Owns the way from the runtime's typed modules, which projects get as they are, to their part of a single module. Knows
//! the syntax that the runtime uses (annotations, `as`, `!`, type arguments, interfaces, imports, exports) and no more.

use oxc::allocator::Allocator;
use oxc::ast::ast::{
    Declaration, ExportDeclaration, FormalParameter, Program, Statement, TSAsExpression, TSNonNullExpression,
    TSTypeAnnotation, TSTypeParameterDeclaration, TSTypeParameterInstantiation,
};
use oxc::ast_visit::{Visit, walk};
use oxc::parser::Parser;
use oxc::span::{GetSpan, SourceType};

/// The module without its types, imports and exports; a default export stays.
pub(super) fn erase_types(source: &str) -> String {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::tsx()).parse();
    let mut types = Types { source, cuts: Vec::new() };
    types.visit_program(&parsed.program);
    types.cuts.sort_unstable();
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    for (start, end) in types.cuts {
        out.push_str(source.get(at..start).unwrap_or_default());
        at = at.max(end);
    }
    out.push_str(source.get(at..).unwrap_or_default());
    while out.contains("\n\n\n") {
        out = out.replace("\n\n\n", "\n\n");
    }
    out
}

struct Types<'s> {
    source: &'s str,
    cuts: Vec<(usize, usize)>,
}

impl Types<'_> {
    fn cut(&mut self, start: u32, end: u32) {
        self.cuts.push((start as usize, end as usize));
    }

    /// An `export` before a declaration; all of it where the declaration is a type or the head of an overload.
    fn cut_export(&mut self, export: &ExportDeclaration<'_>) -> bool {
        let declaration = &export.declaration;
        let is_type = match declaration {
            Declaration::FunctionDeclaration(function) => function.body.is_none(),
            other => other.is_typescript_syntax(),
        };
        self.cut(export.span.start, if is_type { export.span.end } else { declaration.span().start });
        is_type
    }
}

impl<'a> Visit<'a> for Types<'_> {
    fn visit_program(&mut self, program: &Program<'a>) {
        for statement in &program.body {
            match statement {
                Statement::ImportDeclaration(import) => self.cut(import.span.start, import.span.end),
                Statement::ExportDeclaration(export) => {
                    if !self.cut_export(export) {
                        self.visit_declaration(&export.declaration);
                    }
                }
                other => self.visit_statement(other),
            }
        }
    }

    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        let end = parameter.pattern.span().end;
        if self.source.get(end as usize..).is_some_and(|rest| rest.starts_with('?')) {
            self.cut(end, end + 1);
        }
        walk::walk_formal_parameter(self, parameter);
    }

    fn visit_ts_type_annotation(&mut self, annotation: &TSTypeAnnotation<'a>) {
        self.cut(annotation.span.start, annotation.span.end);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, arguments: &TSTypeParameterInstantiation<'a>) {
        self.cut(arguments.span.start, arguments.span.end);
    }

    fn visit_ts_type_parameter_declaration(&mut self, parameters: &TSTypeParameterDeclaration<'a>) {
        self.cut(parameters.span.start, parameters.span.end);
    }

    fn visit_ts_as_expression(&mut self, cast: &TSAsExpression<'a>) {
        self.cut(cast.expression.span().end, cast.span.end);
        self.visit_expression(&cast.expression);
    }

    fn visit_ts_non_null_expression(&mut self, sure: &TSNonNullExpression<'a>) {
        self.cut(sure.span.end - 1, sure.span.end);
        self.visit_expression(&sure.expression);
    }
}

#[cfg(test)]
mod tests {
    use super::erase_types;
    use crate::check::approved::APPROVED;

    #[test]
    fn what_is_left_stands_where_it_stood() {
        let typed = "import type { A } from \"./a\";\n\nexport interface B {\n  c: string;\n}\n\nexport function d<T>(e: A, f?: T): B {\n  \
                     return g<A>(e! as B).map((h): B[] => h);\n}\n\nexport const I: [A, B][] = [];\n";
        let plain = "\n\nfunction d(e, f) {\n  return g(e).map((h) => h);\n}\n\nconst I = [];\n";
        assert_eq!(erase_types(typed), plain);
    }

    /// A project has the vetted definitions with types; without them they are what the checker knows, but for white
    /// space, trailing commas and parentheses that Prettier adds or drops.
    #[test]
    fn projects_have_the_vetted_definitions() {
        let squeeze = |text: &str| {
            let one: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            one.replace(",)", ")").replace(",}", "}").replace(['(', ')'], "")
        };
        let vetted = squeeze(&erase_types(include_str!("runtime/vetted.ts")));
        for approved in APPROVED {
            let source = squeeze(approved.source);
            assert!(vetted.contains(&source), "{} differs from runtime/vetted.ts", approved.name);
        }
    }
}
