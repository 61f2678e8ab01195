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

use super::directory_tree::workspace_folder;
use super::symbol_places::{self, Place};
use crate::edit::files::{Files, unless_cancelled};
use crate::lenient;
use crate::offered::BuiltInTool;
use crate::paths::{ForbiddenPaths, ResolvedPath};

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
    /// The name to look up
    #[serde(default, alias = "name")]
    symbol: Option<String>,
    /// A file in which the name stands; a folder is searched for it
    #[serde(default = "workspace_folder")]
    path: String,
    /// Where the name stands, from 1; not needed with a symbol
    #[serde(default, deserialize_with = "lenient::number")]
    line: Option<usize>,
    /// From 1; not needed with a symbol
    #[serde(default, deserialize_with = "lenient::number")]
    character: Option<usize>,
}

/// What a model asks about.
struct Subject {
    name: Option<String>,
    /// A line on which it stands, or nearly.
    near: Option<u32>,
    position: Option<Position>,
}

impl Input {
    fn subject(&self) -> Result<Subject, String> {
        let number = |value: Option<usize>| {
            value.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0)
        };
        let (line, character) = (number(self.line), number(self.character));
        let name = self.symbol.as_deref().and_then(symbol_places::name_of);
        let position = line.zip(character).map(|(line, character)| Position { line, character });
        if name.is_none() && position.is_none() {
            return Err("Give the symbol, or line and character as numbers from 1.".to_owned());
        }
        Ok(Subject { name: name.map(str::to_owned), near: line, position })
    }
}

fn review(files: &Files, what: &str, input: &Input, scope: &Scope) -> Result<Review, String> {
    let subject = input.subject()?;
    let mut review = Review::default();
    let path = files.paths.review("path", &input.path, scope, &mut review)?;
    review.summary = match (subject.name, subject.near) {
        (Some(name), _) => format!("Looking up {what} of {name}"),
        (None, line) => format!("Looking up {what} at {}:{}", path.shown(), line.unwrap_or(1)),
    };
    review.harmless = review.outside.is_empty();
    Ok(review)
}

/// The places to ask about, the likeliest first.
async fn places(questions: &CodeQuestions, input: &Input, call: &Invocation) -> Result<Vec<Place>, String> {
    let path = questions.files.paths.resolve_approved(&input.path, call)?;
    let Subject { name, near, position } = input.subject()?;
    let given: Vec<Place> =
        position.map(|position| Place { path: path.path().to_owned(), position }).into_iter().collect();
    let Some(name) = name else { return Ok(given) };
    let (forbidden, cancel) = (ForbiddenPaths::new(&call.scope)?, call.cancel.clone());
    let search = move |files: &Files, path: ResolvedPath| {
        symbol_places::find(&name, &path, near, &files.limits, &forbidden, cancel)
    };
    match questions.files.blocking(&path, search).await {
        // The model may know more than the file on disk, such as what the editor has not saved.
        Err(_) if !given.is_empty() => Ok(given),
        found => found,
    }
}

/// Asks about one place after the other until something is known of it.
async fn run(
    questions: &CodeQuestions,
    input: &Input,
    request: fn(Place) -> HostCall,
    can: fn(&Abilities) -> bool,
    call: &Invocation,
) -> Result<ToolResult, String> {
    let fall_back = |reason: String| format!("{reason} Use grep instead.");
    let mut answer = None;
    let mut failed = Vec::new();
    for place in places(questions, input, call).await.map_err(fall_back)? {
        let kind = place.path.extension().map(ToOwned::to_owned);
        if failed.contains(&kind) {
            continue;
        }
        match questions.ask(request(place), can, call).await {
            Ok((HostReply::Locations(places), note)) if !places.is_empty() => {
                return Ok(ToolResult::text(describe(&questions.files, &places, &call.scope) + &note));
            }
            Ok((HostReply::Locations(_), note)) => answer = Some(Ok(note)),
            Ok(_) => answer = Some(Err("There are no places.".to_owned())),
            // What answers nothing about one file answers nothing about others of its kind.
            Err(reason) => {
                failed.push(kind);
                answer.get_or_insert(Err(reason));
            }
        }
    }
    let note = answer.unwrap_or_else(|| Err("There are no places.".to_owned())).map_err(fall_back)?;
    Ok(ToolResult::text(describe(&questions.files, &[], &call.scope) + &note))
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
    const DESCRIPTION: &'static str = "Where a name is defined: by the name, or by its place in a file.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn is_useful_with(&self, abilities: &Abilities) -> bool {
        self.questions.are_answered(abilities.definition)
    }

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        review(&self.questions.files, "the definition", &input, scope)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let request = |Place { path, position }| HostCall::Definition { path, position };
        run(&self.questions, &input, request, |abilities| abilities.definition, &call).await
    }
}

impl BuiltInTool for EditorReferences {
    type Input = Input;

    const NAME: &'static str = "editor_references";
    const DESCRIPTION: &'static str = "Where a name is used: by the name, or by its place in a file.";
    const EFFECT: ToolEffect = ToolEffect::Reads;

    fn is_useful_with(&self, abilities: &Abilities) -> bool {
        self.questions.are_answered(abilities.references)
    }

    fn review(&self, input: Input, scope: &Scope) -> Result<Review, String> {
        review(&self.questions.files, "the references", &input, scope)
    }

    async fn run(&self, input: Input, call: Invocation) -> Result<ToolResult, String> {
        let request =
            |Place { path, position }| HostCall::References { path, position, include_declaration: true };
        run(&self.questions, &input, request, |abilities| abilities.references, &call).await
    }
}
