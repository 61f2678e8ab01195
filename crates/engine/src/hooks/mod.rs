//! Hooks: programs of the user's that run at events of a chat, and the effects that they ask for.
//!
//! Must not know how a program is started. Invariants: every action ends, by itself, at its timeout or at the turn's
//! stop; effects count only where the program ended with 0 or 2; a hook that could not run is never consent.

mod calls;
mod claude;
mod effects;
mod requests;
mod runner;
mod turn_hooks;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use config::{Hook, HookAction, HookEvent, HookFormat};
use domain::event::{Fact, Level, Notice};
use domain::item::{HookRun, Item, ItemKind};
use domain::{CancellationToken, ItemId, TurnId};
use serde_json::{Map, Value, json};

use crate::session::Session;
use crate::turn::Turn;
use crate::workspace::Workspace;

pub(crate) use calls::{after_call, before_call};
use effects::Effects;
pub(crate) use requests::{after_compaction, after_request, before_compaction, last_answer, open_request};
pub use runner::{HookExit, HookRunner};
pub(crate) use turn_hooks::TurnHooks;

/// Output of one action that is kept for people.
const SHOWN_BYTES: usize = 8 << 10;

/// What the sandbox stopped in hooks that no chat belongs to, by workspace. The next turn there shows it.
static UNSEEN: Mutex<Vec<(Vec<PathBuf>, String)>> = Mutex::new(Vec::new());
const MOST_UNSEEN: usize = 20;

/// Shows what hooks outside of a chat could not do.
fn report_unseen(session: &Session) {
    let mut unseen = UNSEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let (own, others) = unseen.drain(..).partition(|(roots, _)| *roots == session.workspace.roots);
    *unseen = others;
    drop(unseen);
    let own: Vec<(Vec<PathBuf>, String)> = own;
    let notice = |text| Fact::Notice { notice: Notice { level: Level::Warning, text } };
    if !own.is_empty() {
        session.commit(own.into_iter().map(|(_, text)| notice(text)).collect());
    }
}

/// Where the hooks of a chat run.
struct HookScope<'a> {
    session: &'a Arc<Session>,
    turn: TurnId,
    step: u32,
    /// The tool call that they are about.
    call: Option<ItemId>,
    model: String,
    cancel: &'a CancellationToken,
}

impl<'a> HookScope<'a> {
    fn of(turn: &'a Turn, step: u32, call: Option<ItemId>) -> Self {
        let (session, cancel) = (&turn.session, &turn.cancel);
        Self { session, turn: turn.id, step, call, model: turn.model.info().id, cancel }
    }

    /// Runs all actions of the hooks, in order, and merges their effects.
    async fn run(&self, hooks: Vec<&Hook>, mut input: Map<String, Value>) -> Effects {
        let mut effects = Effects::default();
        input.extend(chat_input(self.session, &self.model));
        for hook in hooks {
            for action in &hook.actions {
                if self.cancel.is_cancelled() {
                    return effects;
                }
                let exit = self.run_action(hook, action, &input).await;
                effects.add(hook, &exit);
                if let (Some(prompt), true) = (&effects.replaced_prompt, input.contains_key("prompt")) {
                    input.insert("prompt".into(), prompt.clone().into());
                }
                if let Some(message) = effects.message.take() {
                    let text = format!("Hook '{}': {message}", hook.name);
                    let item = self.session.new_item(self.turn, self.step, ItemKind::SystemText { text });
                    self.session.commit(vec![Fact::ItemEnded { item }]);
                }
                if effects.stop.is_some() {
                    return effects;
                }
            }
        }
        effects
    }

    /// Runs one action and shows it in the chat.
    async fn run_action(&self, hook: &Hook, action: &HookAction, input: &Map<String, Value>) -> HookExit {
        let item = hook.visible.then(|| {
            let run = HookRun {
                name: hook.name.clone(),
                status: None,
                output: String::new(),
                error: String::new(),
                call: self.call,
            };
            let item = self.session.new_item(self.turn, self.step, ItemKind::Hook(Box::new(run)));
            self.session.commit(vec![Fact::ItemStarted { item: item.clone() }]);
            item
        });
        self.session.show_progress(format!("Running the hook {}", hook.name));
        let workspace = &self.session.workspace;
        let exit = run_program(workspace, hook, action, input.clone(), self.cancel).await;
        if let Some(mut item) = item {
            show_end(&mut item, &exit);
            self.session.commit(vec![Fact::ItemEnded { item }]);
        }
        // Also where the hook is not shown: it did not do what the user wants.
        if let Some(stopped) = &exit.stopped {
            let text = format!("The hook {}: {stopped}", hook.name);
            self.session.commit(vec![Fact::Notice { notice: Notice { level: Level::Warning, text } }]);
        }
        exit
    }
}

fn show_end(item: &mut Item, exit: &HookExit) {
    let ItemKind::Hook(run) = &mut item.kind else { return };
    run.status = exit.status;
    if !effects::hides_output(exit) {
        run.output = shown(&exit.stdout);
        run.error = shown(&exit.stderr);
    }
}

fn shown(text: &str) -> String {
    let text = text.trim();
    let end = text.floor_char_boundary(SHOWN_BYTES);
    if end < text.len() { format!("{}\n(cut)", &text[..end]) } else { text.to_owned() }
}

async fn run_program(
    workspace: &Workspace,
    hook: &Hook,
    action: &HookAction,
    mut input: Map<String, Value>,
    cancel: &CancellationToken,
) -> HookExit {
    let Some(runner) = &workspace.hooks else {
        let stderr = "There is nothing here that runs hooks.".to_owned();
        return HookExit { status: None, stdout: String::new(), stderr, stopped: None };
    };
    let folders: Vec<String> = workspace.roots.iter().map(|root| root.display().to_string()).collect();
    input.insert("hook_name".into(), camel_case(&hook.name).into());
    input.insert("hook_type".into(), hook.event.name().into());
    input.insert("cwd".into(), folders.first().cloned().into());
    input.insert("workspaces".into(), folders.into());
    input.insert("eca_executable".into(), runner.program().into());
    let folder = workspace.roots.first().map(std::path::PathBuf::as_path);
    let tool = input.get("tool_name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_claude = hook.format == HookFormat::Claude;
    let input = if is_claude { claude::input(hook.event, &input) } else { input };
    let exit = runner.run(action, folder, Value::Object(input).to_string(), cancel).await;
    let exit = if is_claude { claude::exit(hook.event, &tool, exit) } else { exit };
    if exit.status != Some(0) {
        let (hook, status) = (&hook.name, exit.status);
        tracing::info!(hook, ?status, stderr = exit.stderr, "a hook did not end with 0");
    }
    exit
}

/// Programs that were written for ECA know their name as ECA spells it.
fn camel_case(name: &str) -> String {
    let mut words = name.split('-').filter(|word| !word.is_empty());
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().into_iter().flat_map(char::to_uppercase).chain(letters));
    }
    camel
}

fn chat_input(session: &Session, model: &str) -> Map<String, Value> {
    let state = session.state();
    let settings = state.settings();
    let behavior = crate::behavior::canonical(settings.behavior.as_deref().unwrap_or_default());
    let agent = if behavior == "agent" { "code" } else { behavior };
    let fields = json!({
        "chat_id": session.id.as_str(),
        "agent": agent,
        // The older name of the same.
        "behavior": agent,
        "full_model": model,
        "variant": settings.variant,
    });
    if let Value::Object(fields) = fields { fields } else { Map::new() }
}

/// The hooks of an event.
fn hooks_of(workspace: &Workspace, event: HookEvent) -> Vec<&Hook> {
    workspace.settings.hooks.iter().filter(|hook| hook.event == event).collect()
}

/// Runs hooks that no turn belongs to: when a program starts or ends and when a chat was deleted. Nothing but their
/// order depends on what they say.
pub(crate) async fn run_outside(
    workspace: &Workspace,
    event: HookEvent,
    input: Map<String, Value>,
    cancel: CancellationToken,
) {
    for hook in hooks_of(workspace, event) {
        for action in &hook.actions {
            let exit = run_program(workspace, hook, action, input.clone(), &cancel).await;
            if let Some(stopped) = &exit.stopped {
                let text = format!("The hook {}: {stopped}", hook.name);
                tracing::warn!("{text}");
                let mut unseen = UNSEEN.lock().unwrap_or_else(PoisonError::into_inner);
                if unseen.len() >= MOST_UNSEEN {
                    unseen.remove(0);
                }
                unseen.push((workspace.roots.clone(), text));
            }
            let mut effects = Effects::default();
            effects.add(hook, &exit);
            if effects.stop.is_some() {
                return;
            }
        }
    }
}

/// Whether the workspace has hooks of an event.
pub(crate) fn has(workspace: &Workspace, event: HookEvent) -> bool {
    workspace.settings.hooks.iter().any(|hook| hook.event == event)
}

/// Whether hooks must run before prompts of a chat go to the model.
pub(crate) fn hear_requests(session: &Session) -> bool {
    let first = if session.is_subagent() { HookEvent::SubagentStart } else { HookEvent::ChatStart };
    has(&session.workspace, first) || has(&session.workspace, HookEvent::PreRequest)
}

/// The input of `chatEnd` hooks.
pub(crate) fn ended_chat(session: &Session) -> Map<String, Value> {
    let model = session.state().settings().model.clone().unwrap_or_default();
    chat_input(session, &model)
}
