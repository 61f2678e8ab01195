//! Approval rules of the user for one project: a list of those in force, and "always allow in this project".
//!
//! Invariant: rules are written to the user's own file, never to the project's.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use config::{Approval, Environment, Inputs, NewValue, Origin, Rule, SettingsChange, SettingsFile};
use domain::Failure;
use serde_json::{Value, json};
use terminal::{AllowRule, ProjectRules};

/// The rules of the user for the folders of a chat.
pub(crate) struct OwnRules {
    pub(crate) environment: Environment,
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) added: AddedRules,
}

/// The rules that were written since the engine read the settings, so that they hold at once.
#[derive(Clone, Default)]
pub(crate) struct AddedRules(Arc<Mutex<Vec<Rule>>>);

impl AddedRules {
    pub(crate) fn list(&self) -> Vec<Rule> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, rule: &AllowRule, file: &Path) {
        let arguments = rule.pattern.iter();
        let rule = Rule {
            target: rule.target.clone(),
            args_matchers: arguments.map(|(name, patterns)| ((*name).to_owned(), patterns.clone())).collect(),
            origin: Origin::GlobalFile(file.to_owned()),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(rule);
    }
}

impl ProjectRules for OwnRules {
    fn preview(&self, rule: &AllowRule) -> Result<Vec<String>, Failure> {
        let file = SettingsFile::of_user(&self.environment);
        let changes = changes(&file, self.folder(), rule)?;
        let mut lines = vec![format!("To {}:", file.path().display())];
        lines.extend(changes.iter().map(|change| {
            let (sign, value) = match &change.value {
                NewValue::Set(value) => (":", value),
                NewValue::Append(value) => (" +", value),
            };
            format!("+ {}{sign} {value}", change.keys.join(" › "))
        }));
        lines.push(String::new());
        lines.push("Enter writes it and allows the call. It holds for all chats in this folder.".to_owned());
        Ok(lines)
    }

    fn write(&self, rule: &AllowRule) -> Result<String, Failure> {
        let file = SettingsFile::of_user(&self.environment);
        let saved = file.change(&changes(&file, self.folder(), rule)?)?;
        self.added.add(rule, &saved.path);
        Ok(saved.path.display().to_string())
    }

    fn list(&self) -> Vec<String> {
        list(&self.environment, &self.roots)
    }
}

impl OwnRules {
    fn folder(&self) -> &Path {
        self.roots.first().map_or(Path::new("."), PathBuf::as_path)
    }
}

fn changes(file: &SettingsFile, folder: &Path, rule: &AllowRule) -> Result<Vec<SettingsChange>, Failure> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).display().to_string();
    let keys: Vec<String> =
        ["projects", &folder, "toolCall", "approval", "allow", &rule.target].map(str::to_owned).to_vec();
    let values = Value::Object(file.values()?);
    let known = keys.iter().try_fold(&values, |value, key| value.get(key));
    let exists = || Failure::user("This rule is there already. It holds when Dragoman is started again.");
    let Some((argument, patterns)) = &rule.pattern else {
        return match known {
            Some(known) if known == &json!({}) => Err(exists()),
            _ => Ok(vec![SettingsChange { keys, value: NewValue::Set(json!({})) }]),
        };
    };
    let known_patterns = match known {
        // A rule for the whole tool covers these calls.
        Some(known) if known.get("argsMatchers").is_none() => return Err(exists()),
        Some(known) => known["argsMatchers"][*argument].as_array().cloned().unwrap_or_default(),
        None => Vec::new(),
    };
    let keys = [keys, vec!["argsMatchers".to_owned(), (*argument).to_owned()]].concat();
    let new = patterns.iter().filter(|pattern| !known_patterns.contains(&json!(pattern)));
    let changes: Vec<SettingsChange> = new
        .map(|pattern| SettingsChange { keys: keys.clone(), value: NewValue::Append(json!(pattern)) })
        .collect();
    if changes.is_empty() { Err(exists()) } else { Ok(changes) }
}

/// The rules in force for these folders, for people.
fn list(environment: &Environment, roots: &[PathBuf]) -> Vec<String> {
    let inputs = Inputs { workspace_roots: roots.to_vec(), ..Inputs::default() };
    let resolved = config::resolve(environment, &inputs);
    let rules = &resolved.settings.tools.approval;
    let mut lines = Vec::new();
    if let Some(why) = &rules.closed {
        lines.push(format!("Every call is asked: {why}"));
    }
    let default = match rules.by_default {
        Some(Approval::Allow) => "runs",
        Some(Approval::Deny) => "is refused",
        Some(Approval::Ask) if rules.asks_explicitly => "is asked about",
        Some(Approval::Ask) | None => "is asked about, unless it only reads or the sandbox contains it",
    };
    lines.push(format!("A call that no rule is about {default}."));
    for (title, list) in [("Never run", &rules.deny), ("Always asked", &rules.ask), ("Allowed", &rules.allow)]
    {
        lines.push(String::new());
        lines.push(format!("{title}:"));
        if list.is_empty() {
            lines.push("  nothing by a rule".to_owned());
        }
        // The built-in ones are the last.
        let (built_in, own): (Vec<&Rule>, Vec<&Rule>) =
            list.iter().partition(|rule| rule.origin == Origin::Default);
        lines.extend(own.into_iter().chain(built_in).map(|rule| format!("  {}", rule_line(rule))));
    }
    lines.push(String::new());
    lines.push(
        "dragoman explain-permission TOOL JSON explains one call; `dragoman docs approvals` has the order."
            .to_owned(),
    );
    lines
}

fn rule_line(rule: &Rule) -> String {
    let arguments = rule.args_matchers.iter();
    let arguments: Vec<String> =
        arguments.map(|(name, patterns)| format!("{name} = {}", patterns.join(" or "))).collect();
    let shown =
        if arguments.is_empty() { String::new() } else { format!(" where {}", arguments.join(" and ")) };
    format!("{}{shown} ({})", rule.target, rule.origin)
}
