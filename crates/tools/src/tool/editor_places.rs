//! `editor_definition` and `editor_references`: where a name is defined and used, as the editor knows it, or language
//! servers of the machine where no editor does.
//!
//! Invariant: an editor or server that does not answer costs its time limit and leads back to `grep`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use domain::host::{LanguageServices, Position, SourceRange};
use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::{Abilities, HostCall, HostReply, Review};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::files::{Files, unless_cancelled};
use crate::lenient;
use crate::offered::BuiltInTool;

/// What answers questions about code: the editor of the turn where it can, else language servers of the machine.
pub(crate) struct CodeQuestions {
    pub(crate) files: Arc<Files>,
    pub(crate) services: Option<Arc<dyn LanguageServices>>,
    pub(crate) service_time: Duration,
}

impl CodeQuestions {
    /// Whether anything could answer.
    fn are_answered(&self, by_editor: bool) -> bool {
        by_editor || self.services.as_ref().is_some_and(|services| services.are_useful())
    }

    /// The answer, and a line about what it may lack.
    pub(crate) async fn ask(
        &self,
        request: HostCall,
        can: fn(&Abilities) -> bool,
        call: &Invocation,
    ) -> Result<(HostReply, String), String> {
        if can(&call.context.abilities()) {
            let asked = call.context.host(request, self.files.limits.host_time);
            let reply = unless_cancelled(&call.cancel, asked).await?;
            return reply.map(|reply| (reply, String::new())).map_err(|failure| failure.to_string());
        }
        let Some(services) = &self.services else {
            return Err("The editor cannot tell it, and there are no language servers.".to_owned());
        };
        let asked = services.ask(request, &call.scope.roots, self.service_time);
        let answer = unless_cancelled(&call.cancel, asked).await?.map_err(|failure| failure.to_string())?;
        Ok((answer.reply, answer.note.map(|note| format!("\n[{note}]")).unwrap_or_default()))
    }
}

pub(crate) struct EditorDefinition {
    pub(crate) questions: Arc<CodeQuestions>,
}

pub(crate) struct EditorReferences {
    pub(crate) questions: Arc<CodeQuestions>,
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
    review.summary = format!("Looking up {what} at {}:{}", path.shown(), position.line);
    review.harmless = review.outside.is_empty();
    Ok(review)
}

async fn run(
    questions: &CodeQuestions,
    request: HostCall,
    can: fn(&Abilities) -> bool,
    call: &Invocation,
) -> Result<ToolResult, String> {
    match questions.ask(request, can, call).await.map_err(|reason| format!("{reason} Use grep instead."))? {
        (HostReply::Locations(places), note) => {
            Ok(ToolResult::text(describe(&questions.files, &places, &call.scope) + &note))
        }
        _ => Err("There are no places. Use grep instead.".to_owned()),
    }
}

fn describe(files: &Files, places: &[SourceRange], scope: &Scope) -> String {
    if places.is_empty() {
        return "No place is known. Use grep instead.".to_owned();
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

impl BuiltInTool for EditorDefinition {
    type Input = Input;

    const NAME: &'static str = "editor_definition";
    const DESCRIPTION: &'static str = "Where the name at a place in a file is defined.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn is_useful_with(&self, abilities: &Abilities) -> bool {
        self.questions.are_answered(abilities.definition)
    }

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        review(&self.questions.files, "the definition", &input, scope)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let path = self.questions.files.paths.resolve_approved(&input.path, &call)?;
        let request = HostCall::Definition { path: path.path().to_owned(), position: input.position()? };
        run(&self.questions, request, |abilities| abilities.definition, &call).await
    }
}

impl BuiltInTool for EditorReferences {
    type Input = Input;

    const NAME: &'static str = "editor_references";
    const DESCRIPTION: &'static str = "Where the name at a place in a file is used.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn is_useful_with(&self, abilities: &Abilities) -> bool {
        self.questions.are_answered(abilities.references)
    }

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        review(&self.questions.files, "the references", &input, scope)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let path = self.questions.files.paths.resolve_approved(&input.path, &call)?;
        let (path, position) = (path.path().to_owned(), input.position()?);
        let request = HostCall::References { path, position, include_declaration: true };
        run(&self.questions, request, |abilities| abilities.references, &call).await
    }
}
