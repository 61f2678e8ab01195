//! The system prompt: the text of the behavior, the user's rules, the project's AGENTS.md, servers' instructions.
//!
//! Invariant: made once per chat, behavior and model; nothing in it changes from turn to turn, so the cached prefix holds.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use domain::event::{Fact, Level, Notice};
use domain::model::ModelInfo;
use domain::taint::Taint;
use domain::tool::{Tool, ToolEffect};
use domain::tool_call::Origin;

use crate::behavior::canonical;
use crate::instruction_files::set::{self, InstructionSet};
use crate::instruction_files::{self, Folders};
use crate::own_text::own_text;
use crate::rules::{self, Rules};
use crate::session::{Instructions, Session};
use crate::tool_calls::approval;

const SMALL: &str = include_str!("../texts/small.md");

/// Marks of lines in our texts, and the kind of tool that each depends on.
const MARKS: [(&str, ToolEffect); 3] = [
    ("{writes files}", ToolEffect::WritesFiles),
    ("{runs commands}", ToolEffect::RunsCommands),
    ("{previews}", ToolEffect::Previews),
];

/// The instructions of this chat in its present behavior.
pub(crate) fn of(session: &Session, model: &ModelInfo) -> Instructions {
    let behavior = session.state().settings().behavior.clone();
    let behavior = canonical(behavior.as_deref().unwrap_or_default()).to_owned();
    // Rules may be for some models only.
    let key = (behavior, model.id.clone(), model.tools);
    let mut cached = session.instructions.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, instructions)) = &*cached
        && *known == key
    {
        return instructions.clone();
    }
    let rules = Rules::of(session, &key.0, model);
    let system = make(session, &key.0, model, &rules);
    let instructions = Instructions { system, fetched_rules: rules.fetched };
    *cached = Some((key, instructions.clone()));
    instructions
}

fn make(session: &Session, behavior: &str, model: &ModelInfo, rules: &Rules) -> Vec<Arc<str>> {
    let settings = &session.workspace.settings;
    let own = own_text(settings.prompts(behavior).chat.as_ref());
    if model.id.starts_with("local/") {
        return vec![own.as_deref().unwrap_or(SMALL).trim().into()];
    }
    let tools = crate::behavior::tools(session, Some(behavior), model);
    let own = session.workspace.texts.system_prompt().or(own);
    let base = own
        .unwrap_or_else(|| filled(crate::behavior::system_prompt(settings.base_behavior(behavior)), &tools));
    let mut text = base.trim().to_owned();
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
    let files = read_files(session);
    taint_by(session, &files);
    warn_of_cut(session, &files);
    for file in files.files.iter().filter(|file| file.globs.is_empty()) {
        text.push_str(&format!("\n\n{}", set::block(file)));
    }
    if model.tools
        && let Some(index) = crate::memory::instructions(session)
    {
        text.push_str(&format!("\n\n{index}"));
    }
    if model.tools
        && let Some(skills) = crate::skills::instructions(session)
    {
        text.push_str(&format!("\n\n{skills}"));
    }
    for instructions in session.sources().flat_map(|source| source.instructions()) {
        text.push_str("\n\n");
        text.push_str(instructions.trim());
    }
    vec![text.into()]
}

/// Lines about a kind of tool, such as `{writes files}`, stay only where a built-in tool of that kind is offered.
fn filled(template: &str, tools: &[Arc<dyn Tool>]) -> String {
    let is_offered = |effect| {
        tools.iter().any(|tool| tool.spec().origin == Origin::Native && tool.spec().effect == effect)
    };
    let line = |line: &str| {
        for (mark, effect) in MARKS {
            if let Some(rest) = line.strip_prefix(mark) {
                return is_offered(effect).then(|| rest.to_owned());
            }
        }
        Some(line.to_owned())
    };
    template.lines().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// The files with instructions of the user and of the workspace folders, as they are now.
pub(crate) fn read_files(session: &Session) -> InstructionSet {
    let global = session.workspace.texts.global_agents_file();
    let set = instruction_files::read_all(&Folders {
        global: global.as_deref(),
        roots: &session.roots,
        with_parents: session.workspace.settings.include_parent_agents_files,
        is_forbidden: &|path| is_forbidden(session, path),
    });
    session.set_instruction_files(&set);
    set
}

/// The same as they were when the chat was given them last.
pub(super) fn files(session: &Session) -> Arc<InstructionSet> {
    session.instruction_files().unwrap_or_else(|| Arc::new(read_files(session)))
}

/// A rule of the user forbids to read it.
pub(super) fn is_forbidden(session: &Session, path: &Path) -> bool {
    let inside = session.roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    approval::is_forbidden(session, &[[inside.display().to_string(), path.display().to_string()]])
}

/// A chat that is given text of a folder without trust is tainted.
pub(super) fn taint_by(session: &Session, set: &InstructionSet) {
    let is_of_project = |path: &Path| session.roots.iter().any(|root| path.starts_with(root));
    if !session.workspace.is_trusted && set.files.iter().any(|file| is_of_project(&file.path)) {
        let mut taint = Taint::default();
        taint.add_source("instructions of a folder that you have not trusted");
        session.add_taint(&taint);
    }
}

/// Tells the user of instructions that the model is not given.
fn warn_of_cut(session: &Session, set: &InstructionSet) {
    if !set.is_cut || !session.decisions.measures_requests() || session.is_subagent() {
        return;
    }
    let text = format!(
        "The files with instructions have more than {} kB in all, so the model is not given the rest. `dragoman config show` \
         names the files.",
        set::LIMIT >> 10
    );
    session.commit(vec![Fact::Notice { notice: Notice { level: Level::Warning, text } }]);
}
