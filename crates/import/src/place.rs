//! A file of another program: reading it, and planning what it says.
//!
//! Invariants: nothing here writes; a file of a project is read without following links out of it.

use std::path::PathBuf;

use platform::project_files;
use serde_json::{Map, Value, json};

use super::agents::{Restrictions, Surroundings};
use super::markdown::Folder;
use super::permissions::Context;
use super::plan::{Plan, Program, Scope, Source};
use crate::servers::{self, ToolLimit};

/// Settings with the history of a program can be large.
pub(super) const MAX_BYTES: u64 = 32 << 20;

const MAX_TEXT_BYTES: u64 = 256 << 10;

pub(super) const NO_EQUIVALENT: &str = "it has no equivalent here";

/// A file that may be there.
pub(super) struct Place(pub(super) Source);

impl Place {
    pub(super) fn user(plan: &Plan<'_>, program: Program, path: &str) -> Self {
        Self(Source { program, scope: Scope::User, path: plan.environment.home().join(path) })
    }

    pub(super) fn project(plan: &Plan<'_>, program: Program, path: &str) -> Self {
        Self(Source { program, scope: Scope::Project, path: plan.folder.join(path) })
    }

    /// The text, `None` where there is no such file.
    pub(super) fn text(&self, plan: &mut Plan<'_>, limit: u64) -> Option<String> {
        let read = match self.0.scope {
            Scope::User => project_files::read_named(&self.0.path, limit),
            Scope::Project => {
                let inner = self.0.path.strip_prefix(plan.folder).unwrap_or(&self.0.path).to_owned();
                project_files::read_beneath(plan.folder, &inner, limit)
            }
        };
        let text = match read {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| "it is no text".to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return None,
            Err(error) => Err(format!("it cannot be read ({error})")),
        };
        plan.found.push(self.0.clone());
        text.map_err(|why| plan.leave_out(&self.0, "the file", why)).ok()
    }

    pub(super) fn json(&self, plan: &mut Plan<'_>) -> Option<Value> {
        let text = self.text(plan, MAX_BYTES)?;
        let parsed = serde_json::from_str(&text)
            .or_else(|_| config::parse_json_with_comments(&text))
            .map_err(|reason| plan.leave_out(&self.0, "the file", reason));
        parsed.ok()
    }

    pub(super) fn servers(&self, plan: &mut Plan<'_>, servers: &Value) {
        if !servers.is_object() && !servers.is_null() {
            return plan.leave_out(&self.0, "MCP servers", "they are no object");
        }
        self.servers_of(plan, &json!({"mcpServers": servers}).to_string(), false);
    }

    /// The servers of a file, and their members that have no place here.
    pub(super) fn servers_of(&self, plan: &mut Plan<'_>, text: &str, is_toml: bool) {
        let found = match servers::from_other_program(text, is_toml) {
            Ok(found) => found,
            Err(failure) => return plan.leave_out(&self.0, "MCP servers", failure.message),
        };
        let limits = servers::tool_limits(text, is_toml);
        for (name, entry) in found {
            let limit = limits.iter().find(|(limited, _)| *limited == name).map(|(_, limit)| limit);
            match limit {
                Some(ToolLimit::Only) => {
                    let why =
                        "only some of its tools are allowed there, which Dragoman's settings cannot express";
                    plan.leave_out(&self.0, format!("MCP server {name}"), why);
                }
                Some(ToolLimit::Without(tools)) => {
                    plan.server(&self.0, &name, entry);
                    tools.iter().for_each(|tool| {
                        plan.disable(&self.0, &format!("{name}__{tool}"), &format!("MCP server {name}"));
                    });
                }
                None => plan.server(&self.0, &name, entry),
            }
        }
        for (name, members) in servers::unused_members(text, is_toml) {
            let what = format!("MCP server {name}, {}", domain::visible_text(&members.join(", ")));
            plan.leave_out(&self.0, what, NO_EQUIVALENT);
        }
    }

    /// Names settings that have no place here: those of `keys` with a reason, and all others that were not `read`.
    pub(super) fn leave_out_keys(
        &self,
        plan: &mut Plan<'_>,
        values: &Value,
        keys: &[(&str, &str)],
        read: &[&str],
    ) {
        for (key, why) in keys {
            let found = key.split('.').try_fold(values, |value, part| value.get(part));
            if let Some(value) = found.filter(|value| !value.is_null()) {
                let shown = match value.as_str().filter(|text| !super::secrets::is_secret(text)) {
                    Some(text) => format!("{key}: {text}"),
                    None => (*key).to_owned(),
                };
                plan.leave_out(&self.0, shown, *why);
            }
        }
        let is_known = |key: &str| {
            let named = keys.iter().any(|(named, _)| named.split('.').next() == Some(key));
            named || read.contains(&key) || key == "$schema"
        };
        for key in values.as_object().into_iter().flatten().map(|(key, _)| key).filter(|key| !is_known(key)) {
            plan.leave_out(&self.0, domain::visible_text(key), NO_EQUIVALENT);
        }
    }

    /// The user's own instructions become AGENTS.md, where there is none.
    pub(super) fn instructions(&self, plan: &mut Plan<'_>) {
        let Some(text) = self.text(plan, MAX_TEXT_BYTES) else { return };
        match plan.has_other_file(self.0.scope, "AGENTS.md", &text) {
            true => self.rule(plan, "instructions", &text),
            false => plan.file(&self.0, "AGENTS.md", &text),
        }
    }

    /// Instructions beside others become a rule, which every chat gets.
    pub(super) fn rule(&self, plan: &mut Plan<'_>, name: &str, text: &str) {
        if !text.trim().is_empty() {
            plan.file(&self.0, &format!("rules/{}-{name}.md", self.0.program.name()), text);
        }
    }

    /// Instructions in a file that is not read here.
    pub(super) fn hints(&self, plan: &mut Plan<'_>) {
        if let Some(text) = self.text(plan, MAX_TEXT_BYTES) {
            self.rule(plan, "hints", &text);
        }
    }

    /// Instructions that count where they are, whatever is copied.
    pub(super) fn use_in_place(&self, plan: &mut Plan<'_>) {
        if self.0.path.exists() {
            plan.found.push(self.0.clone());
            plan.counts_in_place(&self.0);
        }
    }

    /// Instruction files of a project that are used only if no earlier one in this list exists.
    pub(super) fn second_instructions(&self, plan: &mut Plan<'_>, before: &[&str]) {
        let first = before.iter().map(|name| plan.folder.join(name)).find(|path| path.exists());
        let Some(first) = first.and_then(|path| std::fs::read_to_string(path).ok()) else { return };
        let Some(text) = self.text(plan, MAX_TEXT_BYTES) else { return };
        // A file that only refers to the other one, or is the same.
        let is_reference = text.lines().all(|line| {
            let line = line.trim();
            line.is_empty()
                || before.iter().any(|name| line.trim_start_matches("@./").trim_start_matches('@') == *name)
        });
        if !is_reference && text.trim() != first.trim() {
            self.rule(plan, "instructions", &text);
        }
    }
}

pub(super) fn folder(place: &Place, path: PathBuf) -> Folder<'_> {
    Folder { source: &place.0, folder: path }
}

/// Plans restrictions that hold for all agents.
pub(super) fn restrict(plan: &mut Plan<'_>, place: &Place, theirs: &str, settings: &Map<String, Value>) {
    let (home, servers) = (plan.environment.home().to_owned(), plan.servers.clone());
    let custom_tools = plan.custom_tools();
    let context = Context { home: &home, servers: &servers };
    let around = Surroundings { context, custom_tools: &custom_tools };
    match Restrictions::read(settings, &around) {
        Ok(restrictions) => {
            restrictions.disabled().for_each(|tool| plan.disable(&place.0, tool, theirs));
            for (list, rule) in restrictions.rules() {
                plan.rule(&place.0, *list, theirs, rule);
            }
            for (what, why) in &restrictions.notes {
                plan.leave_out(&place.0, what.clone(), why.clone());
            }
        }
        Err(why) => plan.leave_out(&place.0, theirs, why),
    }
}
