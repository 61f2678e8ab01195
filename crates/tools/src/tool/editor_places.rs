//! `editor_definition` and `editor_references`: where a name is defined and used, as the editor's language servers know.
//!
//! Invariant: an editor that does not answer costs its time limit and leads back to `grep`.

use std::fmt::Write as _;
use std::sync::Arc;

use domain::host::{Position, SourceRange};
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::{Abilities, HostCall, HostReply, Review};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::files::{Files, unless_cancelled};
use crate::lenient;
use crate::offered::BuiltInTool;

pub struct EditorDefinition {
    pub files: Arc<Files>,
}

pub struct EditorReferences {
    pub files: Arc<Files>,
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    path: String,
    /// From 1
    #[serde(deserialize_with = "lenient::number")]
    line: Option<usize>,
    /// From 1
    #[serde(deserialize_with = "lenient::number")]
    character: Option<usize>,
}

impl Input {
    fn position(&self) -> Result<Position, String> {
        let number = |value: Option<usize>| {
            value.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0)
        };
        match (number(self.line), number(self.character)) {
            (Some(line), Some(character)) => Ok(Position { line, character }),
            _ => Err("line and character are numbers from 1.".to_owned()),
        }
    }
}

fn review(files: &Files, what: &str, input: &Input, scope: &Scope) -> Result<Review, String> {
    let position = input.position()?;
    let mut review = Review::default();
    let path = files.paths.review("path", &input.path, scope, &mut review)?;
    review.summary = format!("Asking the editor for {what} at {}:{}", path.shown(), position.line);
    review.harmless = review.outside.is_empty();
    Ok(review)
}

async fn run(files: &Files, request: HostCall, call: &Invocation) -> Result<ToolResult, String> {
    match unless_cancelled(&call.cancel, call.context.host(request, files.limits.host_time)).await? {
        Ok(HostReply::Locations(places)) => Ok(ToolResult::text(describe(files, &places, &call.scope))),
        Ok(_) => Err("The editor gave no places. Use grep instead.".to_owned()),
        Err(failure) => Err(format!("The editor gave no places: {failure} Use grep instead.")),
    }
}

fn describe(files: &Files, places: &[SourceRange], scope: &Scope) -> String {
    if places.is_empty() {
        return "The editor knows no place. Use grep instead.".to_owned();
    }
    let mut out = String::new();
    for (number, place) in places.iter().enumerate() {
        if out.len() > files.limits.output_bytes / 2 {
            let _ = write!(out, "[{} more]", places.len() - number);
            break;
        }
        let short = scope.roots.first().and_then(|root| place.path.strip_prefix(root).ok());
        let path = short.unwrap_or(&place.path).display();
        let _ = writeln!(out, "{path}:{}:{}", place.start.line, place.start.character);
    }
    out.trim_end().to_owned()
}

const NO_EDITOR: &str = "This editor cannot tell it. Use grep instead.";

impl BuiltInTool for EditorDefinition {
    type Input = Input;

    const NAME: &'static str = "editor_definition";
    const DESCRIPTION: &'static str = "Where the name at a place in a file is defined.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn is_useful_with(&self, abilities: &Abilities) -> bool {
        abilities.definition
    }

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        review(&self.files, "the definition", &input, scope)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let path = self.files.paths.resolve_approved(&input.path, &call)?;
        if !call.context.abilities().definition {
            return Err(NO_EDITOR.to_owned());
        }
        let request = HostCall::Definition { path: path.path().to_owned(), position: input.position()? };
        run(&self.files, request, &call).await
    }
}

impl BuiltInTool for EditorReferences {
    type Input = Input;

    const NAME: &'static str = "editor_references";
    const DESCRIPTION: &'static str = "Where the name at a place in a file is used.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn is_useful_with(&self, abilities: &Abilities) -> bool {
        abilities.references
    }

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        review(&self.files, "the references", &input, scope)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let path = self.files.paths.resolve_approved(&input.path, &call)?;
        if !call.context.abilities().references {
            return Err(NO_EDITOR.to_owned());
        }
        let (path, position) = (path.path().to_owned(), input.position()?);
        let request = HostCall::References { path, position, include_declaration: true };
        run(&self.files, request, &call).await
    }
}
