//! `editor_diagnostics`: what the editor and its language servers have to say.

use std::fmt::Write as _;
use std::sync::Arc;

use domain::host::Diagnostic;
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::{HostCall, HostReply, Review};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::files::{Files, unless_cancelled};
use crate::offered::BuiltInTool;

pub struct EditorDiagnostics {
    pub files: Arc<Files>,
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
    const DESCRIPTION: &'static str = "Errors and warnings that the editor shows.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        let mut review =
            Review { summary: "Asking the editor for diagnostics".to_owned(), ..Review::default() };
        if let Some(path) = input.path.as_deref().filter(|path| !path.is_empty()) {
            let path = self.files.paths.review("path", path, scope, &mut review)?;
            review.summary = format!("Asking the editor for diagnostics of {}", path.shown());
        }
        review.harmless = review.outside.is_empty();
        Ok(review)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let path = input.path.filter(|path| !path.is_empty());
        let path = path.map(|path| self.files.paths.resolve_approved(&path, &call)).transpose()?;
        if !call.context.abilities().diagnostics {
            return Err(
                "The editor cannot tell diagnostics. Run the project's own checks with shell_command."
                    .to_owned(),
            );
        }
        let request = HostCall::Diagnostics { path: path.map(|path| path.path().to_owned()) };
        match unless_cancelled(&call.cancel, call.context.host(request, self.files.limits.host_time)).await? {
            Ok(HostReply::Diagnostics(all)) => Ok(ToolResult::text(self.describe(&all, &call.scope))),
            Ok(_) => Err("The editor gave no diagnostics. Run the project's own checks.".to_owned()),
            Err(failure) => Err(format!("The editor gave no diagnostics: {failure}")),
        }
    }
}

impl EditorDiagnostics {
    fn describe(&self, all: &[Diagnostic], scope: &Scope) -> String {
        if all.is_empty() {
            return "The editor shows no errors and no warnings.".to_owned();
        }
        let mut out = String::new();
        for (number, one) in all.iter().enumerate() {
            if out.len() > self.files.limits.output_bytes / 2 {
                let _ = write!(out, "[{} more; ask for one file]", all.len() - number);
                break;
            }
            let short = scope.roots.first().and_then(|root| one.path.strip_prefix(root).ok());
            let path = short.unwrap_or(&one.path).display();
            let code = one.code.as_ref().map_or(String::new(), |code| format!(" [{code}]"));
            let (line, character) = (one.start.line, one.start.character);
            let _ = writeln!(out, "{path}:{line}:{character} {}: {}{code}", one.severity, one.message);
        }
        out.trim_end().to_owned()
    }
}
