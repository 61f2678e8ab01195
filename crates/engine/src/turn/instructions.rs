//! The system prompt: the text of the behavior, the user's rules, the project's AGENTS.md, servers' instructions.
//!
//! Invariants: made once per chat, behavior and model, and again after a compaction; nothing in it changes from turn to turn, so
//! the cached prefix holds: a file that changes in between is told in a message.

use std::path::Path;
use std::sync::Arc;

use domain::event::{Fact, Level, Notice};
use domain::model::ModelInfo;
use domain::note::{Note, NoteAbout};
use domain::taint::Taint;
use domain::tool::{Tool, ToolEffect};
use domain::tool_call::Origin;

use crate::behavior::canonical;
use crate::families;
use crate::instruction_files::set::{InstructionFile, InstructionSet, LIMIT, block};
use crate::instruction_files::{self, Folders, Looks};
use crate::own_text::own_text;
use crate::rules::{self, Rules};
use crate::session::{Instructions, InstructionsKey, Known, KnownInstructions, Session};
use crate::tool_calls::approval;

const SMALL: &str = include_str!("../texts/small.md");
const EMBEDDED: &str = include_str!("../texts/embedded.md");

/// Marks of lines in our texts, and the kind of tool that each depends on.
const MARKS: [(&str, ToolEffect); 3] = [
    ("{writes files}", ToolEffect::WritesFiles),
    ("{runs commands}", ToolEffect::RunsCommands),
    ("{previews}", ToolEffect::Previews),
];

/// The instructions of this chat in its present behavior.
pub(crate) fn of(session: &Session, known: &KnownInstructions, model: &ModelInfo) -> Instructions {
    let key = key_of(session, model);
    if let Some(known) = &*known.lock()
        && known.key == key
    {
        return known.instructions.clone();
    }
    let rules = Rules::of(session, &key.0, model);
    let (files, looks) = read_files(session);
    let system = make(session, &key.0, model, &rules, &files);
    let instructions = Instructions { system, fetched_rules: rules.fetched };
    *known.lock() = Some(Known { key, instructions: instructions.clone(), files, looks });
    instructions
}

fn key_of(session: &Session, model: &ModelInfo) -> InstructionsKey {
    let behavior = session.state().settings().behavior.clone();
    let behavior = canonical(behavior.as_deref().unwrap_or_default()).to_owned();
    (behavior, model.id.clone(), model.tools)
}

/// What the model is told of files with instructions that have changed since it got them; each change is told once.
pub(crate) fn change(session: &Session, known: &KnownInstructions, model: &ModelInfo) -> Option<Note> {
    if session.decisions.is_recorded() || is_embedded(model) {
        return None;
    }
    let mut known = known.lock();
    let known = known.as_mut().filter(|known| known.key == key_of(session, model))?;
    if known.looks.still_hold() {
        return None;
    }
    let (files, looks) = read_files(session);
    known.looks = looks;
    let before = std::mem::replace(&mut known.files, files.clone());
    if files.given_at_start().eq(before.given_at_start()) {
        return None;
    }
    mark_taint(session, &files);
    Some(note_of_change(&before, &files))
}

fn note_of_change(before: &InstructionSet, now: &InstructionSet) -> Note {
    let before: Vec<&InstructionFile> = before.given_at_start().collect();
    let now: Vec<&InstructionFile> = now.given_at_start().collect();
    let mut texts = vec!["Instructions have changed. These take the place of the earlier ones:".to_owned()];
    let mut names = Vec::new();
    for file in now.iter().filter(|file| !before.contains(file)) {
        texts.push(block(file));
        names.push(file.path.display().to_string());
    }
    for file in before.iter().filter(|file| now.iter().all(|other| other.path != file.path)) {
        texts.push(format!("The instructions in {} no longer hold.", file.path.display()));
        names.push(file.path.display().to_string());
    }
    let text = format!("Changed instructions are given to the model: {}", names.join(", "));
    let text = domain::visible_line(&text).into_owned();
    Note::for_model(NoteAbout::Instructions, text, texts.join("\n\n"))
}

/// Whether the instructions are our own text for an embedded model, without anything of a user or a project.
pub(crate) fn are_own(session: &Session, model: &ModelInfo) -> bool {
    let settings = &session.workspace.settings;
    let (behavior, ..) = key_of(session, model);
    is_embedded(model)
        && own_text(settings.prompts(&behavior).chat.as_ref()).is_none()
        && settings.model_families.is_empty()
}

fn is_embedded(model: &ModelInfo) -> bool {
    model.id.starts_with("local/")
}

/// Instructions of a folder that nobody trusts are text of strangers.
pub(super) fn mark_taint(session: &Session, files: &InstructionSet) {
    let is_own = |path: &Path| session.roots.iter().all(|root| !path.starts_with(root));
    if !session.workspace.is_trusted && files.files.iter().any(|file| !is_own(&file.path)) {
        let mut taint = Taint::default();
        taint.add_source("instructions of a folder that you have not trusted");
        session.add_taint(&taint);
    }
}

fn make(
    session: &Session,
    behavior: &str,
    model: &ModelInfo,
    rules: &Rules,
    files: &InstructionSet,
) -> Vec<Arc<str>> {
    let own = own_text(session.workspace.settings.prompts(behavior).chat.as_ref());
    if is_embedded(model) {
        return vec![of_embedded(session, behavior, model, own).into()];
    }
    let own = session.workspace.texts.system_prompt().or(own);
    let mut text = of_behavior(session, behavior, model, own);
    text.push_str("\n\nWorkspace:");
    for root in session.roots.iter() {
        text.push_str(&format!(" {}", root.display()));
    }
    let environment = session.workspace.texts.environment();
    if !environment.is_empty() {
        text.push_str(&format!("\n{}", environment.trim()));
    }
    for rule in &rules.given {
        text.push_str(&format!("\n\n{}", rules::text(rule)));
    }
    if let Some(catalog) = rules::catalog(&rules.fetched) {
        text.push_str(&format!("\n\n{catalog}"));
    }
    mark_taint(session, files);
    warn_of_cut(session, files);
    for file in files.given_at_start() {
        text.push_str(&format!("\n\n{}", block(file)));
    }
    if model.tools {
        let parts = [crate::memory::instructions(session), crate::skills::instructions(session)];
        parts.iter().flatten().for_each(|part| text.push_str(&format!("\n\n{part}")));
    }
    for instructions in session.sources().flat_map(|source| source.instructions()) {
        text.push_str("\n\n");
        text.push_str(instructions.trim());
    }
    vec![text.into()]
}

/// A short text that is the same in every project, so that what the model has computed of it can be kept.
fn of_embedded(session: &Session, behavior: &str, model: &ModelInfo, own: Option<String>) -> String {
    let built_in = || {
        let tools = crate::behavior::tools(session, Some(behavior), model);
        filled(if model.tools { EMBEDDED } else { SMALL }, &tools, false)
    };
    let base = own.unwrap_or_else(built_in);
    let profile = families::profile(&model.id, &session.workspace.settings.model_families);
    match profile.prompt.value.as_str() {
        "" => base.trim().to_owned(),
        more => format!("{}\n- {more}", base.trim()),
    }
}

/// The text of the behavior, the user's own or ours, with what the family of the model needs.
fn of_behavior(session: &Session, behavior: &str, model: &ModelInfo, own: Option<String>) -> String {
    let settings = &session.workspace.settings;
    let profile = families::profile(&model.id, &settings.model_families);
    let built_in = || {
        let tools = crate::behavior::tools(session, Some(behavior), model);
        let template = crate::behavior::system_prompt(settings.base_behavior(behavior));
        filled(template, &tools, profile.parallel.value)
    };
    let base = own.unwrap_or_else(built_in);
    match profile.prompt.value.as_str() {
        "" => base.trim().to_owned(),
        more => format!("{}\n- {more}", base.trim()),
    }
}

/// Lines about a kind of tool, such as `{writes files}`, stay only where a built-in tool of that kind is offered, and lines
/// about several calls at once only where the model may make them.
fn filled(template: &str, tools: &[Arc<dyn Tool>], is_parallel: bool) -> String {
    let is_offered = |effect| {
        tools.iter().any(|tool| tool.spec().origin == Origin::Native && tool.spec().effect == effect)
    };
    let line = |line: &str| {
        for (mark, effect) in MARKS {
            if let Some(rest) = line.strip_prefix(mark) {
                return is_offered(effect).then(|| rest.to_owned());
            }
        }
        match line.strip_prefix("{parallel}") {
            Some(rest) => is_parallel.then(|| rest.to_owned()),
            None => Some(line.to_owned()),
        }
    };
    template.lines().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// The files with instructions of the user and of the workspace folders, as they are now.
fn read_files(session: &Session) -> (Arc<InstructionSet>, Looks) {
    // A replay has no files.
    if session.decisions.is_recorded() {
        return Default::default();
    }
    let global = session.workspace.texts.global_agents_file();
    let (files, looks) = instruction_files::read_and_note(&Folders {
        global: global.as_deref(),
        roots: &session.roots,
        with_parents: session.workspace.settings.include_parent_agents_files,
        is_forbidden: &|path| is_forbidden(session, path),
    });
    (Arc::new(files), looks)
}

/// The same as the model has them.
pub(super) fn files(session: &Session) -> Arc<InstructionSet> {
    let known = session.instructions.lock().as_ref().map(|known| known.files.clone());
    known.unwrap_or_else(|| read_files(session).0)
}

/// A rule of the user forbids to read it.
pub(super) fn is_forbidden(session: &Session, path: &Path) -> bool {
    let inside = session.roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    approval::is_forbidden(session, &[[inside.display().to_string(), path.display().to_string()]])
}

/// Tells the user of instructions that the model is not given.
fn warn_of_cut(session: &Session, files: &InstructionSet) {
    if !files.is_cut || session.decisions.is_recorded() || session.is_subagent() {
        return;
    }
    let text = format!(
        "The files with instructions have more than {} kB in all, so the model is not given the rest. `dragoman config show` \
         names the files.",
        LIMIT >> 10
    );
    session.commit(vec![Fact::Notice { notice: Notice { level: Level::Warning, text } }]);
}
