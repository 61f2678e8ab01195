//! `editor_diagnostics`: the errors and warnings of the editor, or of language servers where no editor can tell.
//!
//! Invariant: files that no tool may read are left out.

use std::fmt::Write as _;
use std::sync::Arc;

use domain::host::Diagnostic;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::{Abilities, HostCall, HostReply, Review};
use schemars::JsonSchema;
use serde::Deserialize;

use super::editor_places::CodeQuestions;
use crate::offered::BuiltInTool;
use crate::paths::ForbiddenPaths;

pub(crate) struct EditorDiagnostics {
    pub(crate) questions: Arc<CodeQuestions>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// A file; else all
    #[serde(default)]
    path: Option<String>,
}

impl BuiltInTool for EditorDiagnostics {
    type Input = Input;

    const NAME: &'static str = "editor_diagnostics";
    const DESCRIPTION: &'static str = "Errors and warnings in the code, without a build.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let mut review = Review { summary: "Looking up diagnostics".to_owned(), ..Review::default() };
        if let Some(path) = input.path.as_deref().filter(|path| !path.is_empty()) {
            let path = self.questions.files.paths.review("path", path, scope, &mut review)?;
            review.summary = format!("Looking up diagnostics of {}", path.shown());
        }
        review.harmless = review.outside.is_empty();
        Ok(review)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let path = input.path.filter(|path| !path.is_empty());
        let path = path.map(|path| self.questions.files.paths.resolve_approved(&path, &call)).transpose()?;
        let request = HostCall::Diagnostics { path: path.map(|path| path.path().to_owned()) };
        let can = |abilities: &Abilities| abilities.diagnostics;
        let answer = self.questions.ask(request, can, &call).await;
        match answer.map_err(|reason| {
            format!("There are no diagnostics: {reason} Run the project's own checks with shell_command.")
        })? {
            (HostReply::Diagnostics(all), note) => {
                let forbidden = ForbiddenPaths::new(&call.scope)?;
                let all: Vec<_> = all.into_iter().filter(|one| !forbidden.contains(&one.path)).collect();
                Ok(ToolResult::text(self.describe(&all, &call.scope) + &note))
            }
            _ => Err("There are no diagnostics. Run the project's own checks.".to_owned()),
        }
    }
}

impl EditorDiagnostics {
    fn describe(&self, all: &[Diagnostic], scope: &Scope) -> String {
        if all.is_empty() {
            return "There are no errors and no warnings.".to_owned();
        }
        let mut out = String::new();
        for (number, one) in all.iter().enumerate() {
            if out.len() > self.questions.files.limits.output_bytes / 2 {
                let _ = write!(out, "[{} more; ask for one file]", all.len() - number);
                break;
            }
            let _ = writeln!(out, "{}", describe_line(one, scope));
        }
        out.trim_end().to_owned()
    }
}

/// `src/main.rs:3:5 error: mismatched types [E0308]`
pub(super) fn describe_line(one: &Diagnostic, scope: &Scope) -> String {
    let short = scope.roots.first().and_then(|root| one.path.strip_prefix(root).ok());
    let path = short.unwrap_or(&one.path).display();
    let code = one.code.as_ref().map_or(String::new(), |code| format!(" [{code}]"));
    let (line, character) = (one.start.line, one.start.character);
    format!("{path}:{line}:{character} {}: {}{code}", one.severity, one.message)
}
