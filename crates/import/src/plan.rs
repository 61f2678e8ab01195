//! What an import would do: files found, steps, and everything that has no place here.
//!
//! Must not know the formats of other programs. Invariants: a step is planned only where it changes something, so a second import
//! plans nothing; nothing that is there already is replaced; keys and tokens are in no step.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use config::{Environment, NewValue, SettingsChange, SettingsFile};
use domain::Failure;
use serde_json::{Map, Value, json};

use super::choices::{Choice, Choices, Thing, thing_of};
use super::secrets;

/// Files of a project that count where they are, and whether they need trust for it.
const IN_PLACE: [(&str, bool); 10] = [
    ("AGENTS.md", false),
    ("CLAUDE.md", false),
    ("CLAUDE.local.md", false),
    (".mcp.json", true),
    (".claude/settings.json", true),
    (".claude/settings.local.json", true),
    (".claude/skills", true),
    (".claude/agents", true),
    (".claude/commands", true),
    (".eca/config.json", true),
];
/// Of these the text counts in place whatever is chosen, so that a copy would only repeat it.
const ALWAYS_IN_PLACE: [&str; 5] =
    ["AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", ".eca/config.json"];
/// Files that count where they are in a folder without these.
const FALLBACKS: [&str; 2] = ["GEMINI.md", ".cursor/rules"];
const OWN_INSTRUCTIONS: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// A program whose files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Goose,
    Cursor,
    Eca,
}

impl Program {
    /// The name on the command line and in ids.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
            Self::Cursor => "cursor",
            Self::Eca => "eca",
        }
    }

    /// The name for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "Gemini CLI",
            Self::Goose => "goose",
            Self::Cursor => "Cursor",
            Self::Eca => "ECA",
        }
    }
}

/// Whose settings: the user's own, or those of the current folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    User,
    Project,
}

/// A file of another program that is read.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub program: Program,
    pub scope: Scope,
    pub path: PathBuf,
}

#[derive(Debug)]
pub(super) enum Step {
    /// `from`: the file of the other program.
    Setting {
        from: PathBuf,
        scope: Scope,
        change: SettingsChange,
        text: String,
    },
    File {
        from: PathBuf,
        path: PathBuf,
        content: String,
        is_program: bool,
    },
}

impl Step {
    pub(super) fn from(&self) -> &Path {
        match self {
            Self::Setting { from, .. } | Self::File { from, .. } => from,
        }
    }
}

#[derive(Debug)]
pub(super) struct LeftOut {
    pub file: PathBuf,
    pub what: String,
    pub why: String,
}

/// One list of approval rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleList {
    Allow,
    Ask,
    Deny,
}

impl RuleList {
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// One of our rules: a tool, and a pattern of one of its arguments.
#[derive(Debug, PartialEq)]
pub(super) struct NewRule {
    pub target: String,
    pub pattern: Option<(&'static str, String)>,
}

/// The plan while it is made.
pub(super) struct Plan<'a> {
    pub environment: &'a Environment,
    pub folder: &'a Path,
    pub found: Vec<Source>,
    pub steps: Vec<Step>,
    pub left_out: Vec<LeftOut>,
    /// What counts where it is, so that nothing of it is copied: the file, and whether it needs trust.
    pub in_place: Vec<(PathBuf, bool)>,
    choices: &'a Choices,
    /// Servers that are or will be there with the entry of the other program.
    pub servers: HashSet<String>,
    /// Servers that the import writes, switched off.
    pub new_servers: Vec<String>,
    user: Map<String, Value>,
    project: Map<String, Value>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        environment: &'a Environment,
        folder: &'a Path,
        choices: &'a Choices,
    ) -> Result<Self, Failure> {
        Ok(Self {
            environment,
            folder,
            found: Vec::new(),
            steps: Vec::new(),
            left_out: Vec::new(),
            in_place: Vec::new(),
            choices,
            servers: HashSet::new(),
            new_servers: Vec::new(),
            user: SettingsFile::of_user(environment).values()?,
            project: SettingsFile::of_folder(folder).values()?,
        })
    }

    pub(super) fn settings_file(&self, scope: Scope) -> SettingsFile {
        match scope {
            Scope::User => SettingsFile::of_user(self.environment),
            Scope::Project => SettingsFile::of_folder(self.folder),
        }
    }

    fn settings_folder(&self, scope: Scope) -> PathBuf {
        match scope {
            Scope::User => self.environment.config_dir(),
            Scope::Project => self.folder.join(".dragoman"),
        }
    }

    fn existing(&self, scope: Scope) -> &Map<String, Value> {
        match scope {
            Scope::User => &self.user,
            Scope::Project => &self.project,
        }
    }

    /// Whether a file of the project is used where it is. It is then named among those.
    pub(super) fn is_used_in_place(&mut self, source: &Source) -> bool {
        self.choices.of(&source.path) != Some(Choice::Copy) && self.counts_in_place(source)
    }

    /// Whether a file of the project counts where it is, whatever is copied. It is then named among those.
    pub(super) fn counts_in_place(&mut self, source: &Source) -> bool {
        if source.scope != Scope::Project {
            return false;
        }
        let is_below = |place: &str| source.path.starts_with(self.folder.join(place));
        let has_own = OWN_INSTRUCTIONS.iter().any(|name| self.folder.join(name).exists());
        let fallback = FALLBACKS.iter().any(|place| !has_own && is_below(place)).then_some(false);
        let found = IN_PLACE.iter().find(|(place, _)| is_below(place)).map(|(_, needs_trust)| *needs_trust);
        let Some(needs_trust) = found.or(fallback) else { return false };
        let entry = (source.path.clone(), needs_trust);
        if !self.in_place.contains(&entry) {
            self.in_place.push(entry);
        }
        true
    }

    /// Whether the user leaves out what comes from this file, and it does not count in place.
    pub(super) fn is_left(&mut self, source: &Source) -> bool {
        if self.choices.of(&source.path) != Some(Choice::LeaveOut) {
            return false;
        }
        let why = "you left it out";
        if !self.left_out.iter().any(|left| left.file == source.path && left.why == why) {
            self.leave_out(source, "everything", why);
        }
        true
    }

    /// The things that can be treated in more than one way.
    pub(super) fn things(&self) -> Vec<Thing> {
        let always = ALWAYS_IN_PLACE.map(|name| self.folder.join(name));
        let in_folder =
            self.in_place.iter().map(|(file, _)| file).filter(|file| file.starts_with(self.folder));
        let in_place = in_folder.filter(|file| !always.contains(file));
        let in_place = in_place.map(|file| (file.as_path(), &[Choice::InPlace, Choice::Copy][..]));
        let copied = self.steps.iter().map(|step| (step.from(), &[Choice::Copy, Choice::LeaveOut][..]));
        let mut things: Vec<Thing> = Vec::new();
        for (file, choices) in in_place.chain(copied) {
            let path = thing_of(file);
            if !things.iter().any(|known| known.path == path) {
                things.push(Thing { path, choices });
            }
        }
        things
    }

    pub(super) fn leave_out(&mut self, source: &Source, what: impl Into<String>, why: impl Into<String>) {
        let what: String = what.into();
        let what = match secrets::line_holds_secret(&what) {
            true => format!("{}, which seems to hold a key", what.split(':').next().unwrap_or_default()),
            false => what,
        };
        self.left_out.push(LeftOut { file: source.path.clone(), what, why: why.into() });
    }

    /// Plans a server, switched off. Its secrets become references or are left out.
    pub(super) fn server(&mut self, source: &Source, name: &str, entry: Result<Value, String>) {
        if self.is_used_in_place(source) {
            self.servers.insert(name.to_owned());
            return;
        }
        if self.is_left(source) {
            return;
        }
        let what = format!("MCP server {name}");
        let entry = match entry.and_then(|entry| secrets::remove(&entry)) {
            Ok((entry, notes)) => {
                notes.into_iter().for_each(|note| self.leave_out(source, what.clone(), note));
                entry
            }
            Err(why) => return self.leave_out(source, what, why),
        };
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.eq_ignore_ascii_case("eca") || !name.chars().all(is_plain) {
            return self.leave_out(source, what, "its name cannot be used here");
        }
        let keys = vec!["mcpServers".to_owned(), name.to_owned()];
        let known = self.existing(source.scope).get("mcpServers").and_then(|servers| servers.get(name));
        let planned = self.steps.iter().find_map(|step| match step {
            Step::Setting {
                scope,
                change: SettingsChange { keys: known, value: NewValue::Set(value) },
                ..
            } if *scope == source.scope && *known == keys => Some(value),
            Step::Setting { .. } | Step::File { .. } => None,
        });
        match known.or(planned) {
            Some(known) if without_switch(known) == without_switch(&entry) => {
                self.servers.insert(name.to_owned());
            }
            Some(_) => self.leave_out(source, what, "another server has this name here"),
            None => {
                self.servers.insert(name.to_owned());
                self.new_servers.push(name.to_owned());
                let text = format!("{what}, switched off: {}", shown_command(&entry));
                let mut entry = entry;
                entry["disabled"] = json!(true);
                self.set(source, keys, entry, text);
            }
        }
    }

    pub(super) fn set(&mut self, source: &Source, keys: Vec<String>, value: Value, text: String) {
        let change = SettingsChange { keys, value: NewValue::Set(value) };
        self.push_setting(source, change, text);
    }

    fn push_setting(&mut self, source: &Source, change: SettingsChange, text: String) {
        if !self.is_left(source) {
            let (from, scope) = (source.path.clone(), source.scope);
            self.steps.push(Step::Setting { from, scope, change, text });
        }
    }

    /// Plans an approval rule, unless one that covers it is there.
    pub(super) fn rule(&mut self, source: &Source, list: RuleList, theirs: &str, rule: &NewRule) {
        if self.is_used_in_place(source) || self.is_left(source) {
            return;
        }
        if secrets::line_holds_secret(theirs) {
            let what = format!("a permission ({})", list.key());
            return self.leave_out(source, what, "it seems to hold a key, which is not copied");
        }
        let mut keys: Vec<String> =
            ["toolCall", "approval", list.key(), &rule.target].map(str::to_owned).to_vec();
        let known = at(self.existing(source.scope), &keys).cloned();
        let matchers =
            known.as_ref().map(|known| known["argsMatchers"].as_object().cloned().unwrap_or_default());
        let (value, what) = match (&rule.pattern, matchers) {
            // A rule for the whole tool covers everything.
            (_, Some(matchers)) if matchers.is_empty() => return,
            (None, None) => (NewValue::Set(json!({})), String::new()),
            (None, Some(_)) => {
                let why = format!("there are narrower rules for {} here", rule.target);
                return self.leave_out(source, theirs, why);
            }
            (Some((argument, pattern)), matchers) => {
                let matchers = matchers.unwrap_or_default();
                if matchers.keys().any(|known| known != argument) {
                    let why = format!("the rule for {} here has other arguments", rule.target);
                    return self.leave_out(source, theirs, why);
                }
                let patterns = matchers.get(*argument).and_then(Value::as_array);
                if patterns.is_some_and(|patterns| patterns.iter().any(|known| known == pattern)) {
                    return;
                }
                keys.extend(["argsMatchers".to_owned(), (*argument).to_owned()]);
                (NewValue::Append(json!(pattern)), format!(" where {argument} matches {pattern}"))
            }
        };
        let change = SettingsChange { keys, value };
        if !self.make_room_for(source.scope, &change) {
            return;
        }
        let text = format!("{} {}{what} (from {theirs})", list.key(), rule.target);
        self.push_setting(source, change, text);
    }

    /// Whether a planned rule leaves something to do for this one. A rule for a whole tool takes the place of narrower ones.
    fn make_room_for(&mut self, wanted: Scope, change: &SettingsChange) -> bool {
        let covers = |wide: &SettingsChange, narrow: &SettingsChange| {
            matches!(wide.value, NewValue::Set(_)) && narrow.keys.starts_with(&wide.keys)
        };
        let of_scope = |step: &Step| match step {
            Step::Setting { scope, change, .. } if *scope == wanted => Some(change.clone()),
            Step::Setting { .. } | Step::File { .. } => None,
        };
        let planned: Vec<SettingsChange> = self.steps.iter().filter_map(of_scope).collect();
        if planned.iter().any(|known| known == change || covers(known, change)) {
            return false;
        }
        self.steps.retain(|step| of_scope(step).is_none_or(|known| !covers(change, &known)));
        true
    }

    /// Plans that a tool is switched off for everybody.
    pub(super) fn disable(&mut self, source: &Source, tool: &str, theirs: &str) {
        if self.is_used_in_place(source) {
            return;
        }
        let known = self.existing(source.scope).get("disabledTools").and_then(Value::as_array);
        let change =
            SettingsChange { keys: vec!["disabledTools".to_owned()], value: NewValue::Append(json!(tool)) };
        let is_known = known.is_some_and(|known| known.iter().any(|it| it == tool));
        if !is_known && !self.changes(source.scope).contains(&change) {
            let text = format!("{tool} switched off (from {theirs})");
            self.push_setting(source, change, text);
        }
    }

    /// The tools that the user has made here.
    pub(super) fn custom_tools(&self) -> Vec<String> {
        let maps =
            [&self.user, &self.project].map(|values| values.get("customTools").and_then(Value::as_object));
        maps.into_iter().flatten().flat_map(|tools| tools.keys().cloned()).collect()
    }

    /// Whether a file is there or planned with another text.
    pub(super) fn has_other_file(&self, scope: Scope, name: &str, content: &str) -> bool {
        let path = self.settings_folder(scope).join(name);
        let planned = self.steps.iter().find_map(|step| match step {
            Step::File { path: planned, content, .. } if *planned == path => Some(content.clone()),
            Step::File { .. } | Step::Setting { .. } => None,
        });
        planned.or_else(|| std::fs::read_to_string(&path).ok()).is_some_and(|known| known != content)
    }

    /// Plans one of our files in the folder of the scope.
    pub(super) fn file(&mut self, source: &Source, name: &str, content: &str) {
        self.file_or_program(source, name, content, false);
    }

    pub(super) fn file_or_program(&mut self, source: &Source, name: &str, content: &str, is_program: bool) {
        if self.is_used_in_place(source) || self.is_left(source) {
            return;
        }
        if domain::key_text::holds_key(content) {
            return self.leave_out(source, "its text", "it seems to hold a key, which is not copied");
        }
        let path = self.settings_folder(source.scope).join(name);
        let planned = self.steps.iter().find_map(|step| match step {
            Step::File { path: planned, content, .. } if *planned == path => Some(content.clone()),
            Step::File { .. } | Step::Setting { .. } => None,
        });
        let known = planned.or_else(|| std::fs::read_to_string(&path).ok());
        match known {
            Some(known) if known == content => {}
            Some(_) => {
                let why = format!("{} is there already and differs", path.display());
                self.leave_out(source, "its text", why);
            }
            None => {
                let (from, content) = (source.path.clone(), content.to_owned());
                self.steps.push(Step::File { from, path, content, is_program });
            }
        }
    }

    /// Whether the settings of a scope have a value at these keys.
    pub(super) fn has(&self, scope: Scope, keys: &[&str]) -> bool {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        at(self.existing(scope), &keys).is_some()
    }

    /// The settings that are planned for a scope.
    pub(super) fn changes(&self, wanted: Scope) -> Vec<SettingsChange> {
        let own = self.steps.iter().filter_map(|step| match step {
            Step::Setting { scope, change, .. } if *scope == wanted => Some(change.clone()),
            Step::Setting { .. } | Step::File { .. } => None,
        });
        own.collect()
    }
}

fn at<'v>(values: &'v Map<String, Value>, keys: &[String]) -> Option<&'v Value> {
    let (first, rest) = keys.split_first()?;
    rest.iter().try_fold(values.get(first)?, |value, key| value.get(key))
}

fn without_switch(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Some(members) = entry.as_object_mut() {
        members.shift_remove("disabled");
    }
    entry
}

/// The program with its arguments, or the address.
fn shown_command(entry: &Value) -> String {
    let words = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let line: Vec<&str> = entry["command"].as_str().into_iter().chain(words).collect();
    if line.is_empty() { entry["url"].as_str().unwrap_or_default().to_owned() } else { line.join(" ") }
}

/// The server of calls in chats of ECA; `eca` itself is the name of the built-in tools.
const IMPORTED_ECA: &str = "eca-chat";

/// The server of the tool calls in imported chats.
pub(super) fn server_name(program: Program) -> &'static str {
    if program == Program::Eca { IMPORTED_ECA } else { program.name() }
}
