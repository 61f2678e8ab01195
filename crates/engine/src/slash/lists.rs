//! Commands that list what is configured for a chat.

use config::{Hook, HookEvent, HookMatcher};

use domain::item::{ItemKind, PlanStatus};
use domain::tool_call::Details;

use crate::session::Session;
use crate::workspace::{NamedText, Skill};

/// `/hooks`: by event.
pub(super) fn hooks(session: &Session) -> String {
    let hooks = &session.workspace.settings.hooks;
    let unreadable = &session.workspace.settings.tools.approval.blocking_hooks;
    if hooks.is_empty() && unreadable.is_empty() {
        return "No hooks are configured. See `dragoman docs hooks`.".to_owned();
    }
    let mut lines = Vec::new();
    for event in HookEvent::ALL {
        let mut of_event = hooks.iter().filter(|hook| hook.event == event).peekable();
        if of_event.peek().is_some() {
            lines.push(format!("**{}**", event.name()));
            lines.extend(of_event.map(hook_line));
        }
    }
    for hook in unreadable {
        lines.push(format!(
            "- {} ({}): cannot be read, so the calls that it is about are asked",
            hook.name, hook.origin
        ));
    }
    lines.join("\n")
}

fn hook_line(hook: &Hook) -> String {
    let about = match &hook.matcher {
        HookMatcher::All => String::new(),
        HookMatcher::Pattern(pattern) => format!(" for `{pattern}`"),
        HookMatcher::Rules(rules) => {
            let names: Vec<&str> = rules.iter().map(|rule| rule.target.as_str()).collect();
            format!(" for {}", names.join(", "))
        }
    };
    let description = hook.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    format!("- {}{about} ({}){description}", hook.name, hook.origin)
}

/// `/rules`: the names, as the model is given them.
pub(super) fn rules(session: &Session) -> String {
    let rules = session.workspace.texts.rules();
    if rules.is_empty() {
        return "There are no rules for this chat.".to_owned();
    }
    let line = |rule: &NamedText| {
        let listed = |word: &str, names: &[String]| match names.is_empty() {
            true => String::new(),
            false => format!(", {word} {}", names.join(", ")),
        };
        let notes = [
            listed("for", &rule.paths),
            listed("for the agents", &rule.agents),
            listed("for the models", &rule.models),
            listed("to be read before", &rule.enforce),
        ];
        format!("- {} ({} characters{})", rule.name, rule.text.chars().count(), notes.concat())
    };
    rules.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `/subagents`: the names and what each is for.
pub(super) fn subagents(session: &Session) -> String {
    let agents = crate::behavior::subagents(&session.workspace.settings, &session.behavior());
    let line = |(name, description): &(String, String)| format!("- **{name}**: {description}");
    agents.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `/skills`: the names, what each is for, and where it is.
pub(super) fn skills(session: &Session) -> String {
    let skills = session.workspace.texts.skills();
    if skills.is_empty() {
        return "There are no skills. `/skill-create` writes one; see `dragoman docs extending`.".to_owned();
    }
    let line =
        |skill: &Skill| format!("- **{}**: {} ({})", skill.name, skill.description, skill.folder.display());
    skills.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `/todos`: the newest task list of the model.
pub(super) fn todos(session: &Session) -> String {
    let state = session.state();
    let newest = state.items().iter().rev().find_map(|item| {
        let ItemKind::ToolCall(call) = &item.kind else { return None };
        let Some(Details::Tasks { entries }) = &call.details else { return None };
        Some(entries)
    });
    let Some(entries) = newest.filter(|entries| !entries.is_empty()) else {
        return "The model has made no task list in this chat.".to_owned();
    };
    let lines = entries.iter().map(|entry| {
        let mark = match entry.status {
            PlanStatus::Pending => "[ ]",
            PlanStatus::InProgress => "[>]",
            PlanStatus::Done => "[x]",
        };
        format!("- {mark} {}", entry.text)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// `/tools`: by server, the first sentence of each description.
pub(super) fn tools(session: &Session) -> String {
    let mut lines = Vec::new();
    for server in session.servers() {
        lines.push(format!("**{}**", server.name));
        if server.tools.is_empty() {
            lines.push("- no tools now".to_owned());
        }
        lines.extend(server.tools.iter().map(|tool| {
            let sentence = tool.description.split_inclusive(". ").next().unwrap_or_default();
            format!("- {}: {}", tool.name, sentence.lines().next().unwrap_or_default().trim())
        }));
    }
    lines.join("\n")
}
