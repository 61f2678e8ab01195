//! Model families: what a prompt, the tools and the requests of a chat are for one kind of model.
//!
//! The rows are data ([`table`]); a setting of the user's changes parts of them. Must not know sessions and vendors.
//! Invariant: nothing here makes a call impossible that another family offers; a row decides what is shown.

mod table;

use std::sync::{Arc, Mutex, PoisonError};

use config::{EditFormat, FamilyRule};
use domain::model::ModelInfo;
use domain::tool::ToolSpec;
use domain::tool_call::Origin;
use serde_json::{Map, Value};

use table::{ArgumentName, FAMILIES, Family, HiddenArgument};

/// Where nothing is named, everything is shown.
const ALL_TOOLS: &[&str] = &[];

/// What holds for a model, with the origin of each part.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub family: Part<&'static str>,
    pub prompt: Part<String>,
    pub edits: Part<EditFormat>,
    pub only: Part<&'static [&'static str]>,
    pub without: Part<Vec<String>>,
    pub hidden: Part<&'static [HiddenArgument]>,
    descriptions: &'static [(&'static str, &'static str)],
    pub arguments: Part<&'static [ArgumentName]>,
    pub parallel: Part<bool>,
    pub effort: Part<Option<String>>,
    pub tasks: Part<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part<T> {
    pub value: T,
    pub origin: String,
}

/// What holds for a model by its id (`provider/name`). Of several settings that fit, the last one goes before the others.
pub fn profile(id: &str, rules: &[FamilyRule]) -> Profile {
    let id = id.to_lowercase();
    let rules: Vec<&FamilyRule> =
        rules.iter().filter(|rule| fits(&rule.pattern.to_lowercase(), &id)).collect();
    let named = |rule: &&FamilyRule| {
        let name = rule.family.as_deref()?;
        Some((FAMILIES.iter().find(|family| family.name == name)?, setting(rule)))
    };
    let matched = || {
        let pattern = |family: &'static Family| {
            let pattern = family.patterns.iter().find(|pattern| fits(pattern, &id))?;
            Some((family, format!("the pattern {pattern}")))
        };
        FAMILIES.iter().find_map(pattern)
    };
    let last = &FAMILIES[FAMILIES.len() - 1];
    let (family, origin) =
        rules.iter().rev().find_map(named).or_else(matched).unwrap_or((last, "no pattern fits".to_owned()));
    let of_row = format!("the family {}", family.name);
    Profile {
        prompt: part(&rules, &of_row, family.prompt.to_owned(), |rule| rule.prompt.clone()),
        edits: part(&rules, &of_row, family.edits, |rule| rule.edits),
        // A user who says which tools are left out says all.
        only: part(&rules, &of_row, family.only, |rule| rule.without_tools.is_some().then_some(ALL_TOOLS)),
        hidden: Part { value: family.hidden, origin: of_row.clone() },
        descriptions: family.descriptions,
        without: part(
            &rules,
            &of_row,
            family.without.iter().map(|name| (*name).to_owned()).collect(),
            |rule| rule.without_tools.clone(),
        ),
        arguments: Part { value: family.arguments, origin: of_row.clone() },
        parallel: part(&rules, &of_row, family.parallel, |rule| rule.parallel),
        effort: part(&rules, &of_row, family.effort.map(str::to_owned), |rule| {
            rule.effort.clone().map(|effort| (effort != "default").then_some(effort))
        }),
        tasks: part(&rules, &of_row, family.tasks, |rule| rule.tasks),
        family: Part { value: family.name, origin },
    }
}

/// The profile of the model that a chat used last: every step needs it twice.
#[derive(Default)]
pub(crate) struct KnownProfile(Mutex<Option<(String, Arc<Profile>)>>);

impl KnownProfile {
    /// See [`profile`]; the rules of one chat stay the same.
    pub(crate) fn of(&self, id: &str, rules: &[FamilyRule]) -> Arc<Profile> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, profile)) = &*known
            && last == id
        {
            return profile.clone();
        }
        let profile = Arc::new(profile(id, rules));
        *known = Some((id.to_owned(), profile.clone()));
        profile
    }
}

/// The names of all families, in the order in which their patterns are tried.
pub fn names() -> Vec<&'static str> {
    FAMILIES.iter().map(|family| family.name).collect()
}

fn setting(rule: &FamilyRule) -> String {
    format!("the setting modelFamilies.{} ({})", rule.pattern, rule.origin)
}

fn part<T>(rules: &[&FamilyRule], of_row: &str, row: T, own: impl Fn(&FamilyRule) -> Option<T>) -> Part<T> {
    match rules.iter().rev().find_map(|rule| Some((own(rule)?, rule))) {
        Some((value, rule)) => Part { value, origin: setting(rule) },
        None => Part { value: row, origin: of_row.to_owned() },
    }
}

/// Whether a pattern with `*` fits a whole id, or the name behind its last slash.
fn fits(pattern: &str, id: &str) -> bool {
    fits_text(pattern, id) || id.rsplit_once('/').is_some_and(|(_, name)| fits_text(pattern, name))
}

fn fits_text(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let Some(tail) = pieces.pop() else { return true };
    for piece in pieces {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    text.len() >= tail.len() && text.ends_with(tail)
}

impl Profile {
    /// Whether a built-in tool is shown to the model. The others are accepted all the same.
    pub(crate) fn shows(&self, name: &str) -> bool {
        let by_format = match self.edits.value {
            EditFormat::Replace | EditFormat::Whole => name != "apply_patch",
            EditFormat::Patch => !matches!(name, "edit_file" | "write_file" | "move_file"),
        };
        let is_among = self.only.value.is_empty() || self.only.value.contains(&name);
        by_format
            && is_among
            && (self.tasks.value || name != "task")
            && !self.without.value.iter().any(|it| it == name)
    }

    /// The effort of a request for which nobody has chosen one.
    pub(crate) fn effort_for(&self, model: &ModelInfo) -> Option<String> {
        self.effort.value.clone().filter(|effort| model.variants.contains(effort))
    }

    /// The file of a failed edit is shown where the chat has not read it.
    pub(crate) fn shows_unread_files(&self) -> bool {
        !self.only.value.is_empty()
    }

    /// A tool as the family is shown it: its description, the arguments that matter and their names. `is_own`: the user wrote
    /// the description.
    pub(crate) fn show_tool(&self, spec: &mut ToolSpec, is_own: bool) {
        if spec.origin == Origin::Native {
            let described = self.descriptions.iter().find(|(tool, _)| !is_own && *tool == spec.name);
            if let Some((_, text)) = described {
                spec.description = (*text).to_owned();
            }
            let ToolSpec { name: tool, input_schema, .. } = &mut *spec;
            let is_hidden = |name: &str| self.hidden.value.contains(&(tool.as_str(), name));
            if let Some(Value::Object(properties)) = input_schema.get_mut("properties") {
                properties.retain(|name, _| !is_hidden(name));
            }
        }
        self.rename_arguments(spec);
    }

    fn rename_arguments(&self, spec: &mut ToolSpec) {
        for (_, own, shown) in self.arguments.value.iter().filter(|(tool, ..)| *tool == spec.name) {
            spec.description = spec.description.replace(own, shown);
            if let Some(Value::Object(properties)) = spec.input_schema.get_mut("properties") {
                let renamed: Map<String, Value> = std::mem::take(properties)
                    .into_iter()
                    .map(
                        |(name, value)| {
                            if name == *own { ((*shown).to_owned(), value) } else { (name, value) }
                        },
                    )
                    .collect();
                *properties = renamed;
            }
            if let Some(Value::Array(required)) = spec.input_schema.get_mut("required") {
                for name in required.iter_mut().filter(|name| name.as_str() == Some(own)) {
                    *name = (*shown).into();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str) -> FamilyRule {
        FamilyRule { pattern: pattern.into(), ..FamilyRule::default() }
    }

    #[test]
    fn a_model_is_of_the_first_family_that_fits() {
        for (id, family) in [
            ("openai/gpt-5.1-codex", "gpt"),
            ("azure/o4-mini", "gpt"),
            ("openrouter/anthropic/claude-sonnet-4-5", "claude"),
            ("bedrock/us.anthropic.claude-opus-4", "claude"),
            ("google/gemini-2.5-pro", "gemini"),
            ("ollama/qwen2.5-coder:7b", "small"),
            ("ollama/qwen3-coder:30b", "open"),
            ("deepseek/deepseek-chat", "open"),
            ("local/smollm2-135m", "embedded"),
            ("house/mystery", "other"),
        ] {
            assert_eq!(profile(id, &[]).family.value, family, "{id}");
        }
    }

    #[test]
    fn a_setting_changes_parts_and_the_last_one_wins() {
        let rules = [
            FamilyRule { family: Some("gpt".into()), tasks: Some(false), ..rule("house/*") },
            FamilyRule { edits: Some(EditFormat::Whole), effort: Some("high".into()), ..rule("mystery") },
        ];
        let profile = profile("house/Mystery", &rules);
        assert_eq!((profile.family.value, profile.edits.value), ("gpt", EditFormat::Whole));
        assert!(profile.edits.origin.starts_with("the setting modelFamilies.mystery"), "{profile:?}");
        assert_eq!(profile.arguments.origin, "the family gpt");
        assert!(!profile.tasks.value && profile.effort.value.as_deref() == Some("high"));
        assert!(profile.shows("edit_file") && !profile.shows("apply_patch") && !profile.shows("task"));
    }

    #[test]
    fn small_models_see_few_tools_unless_the_user_lists_others() {
        let small = profile("ollama/qwen2.5-coder:1.5b", &[]);
        assert!(small.shows("read_file") && !small.shows("fetch_url") && small.shows_unread_files());
        let embedded = profile("local/qwen2.5-coder-1.5b", &[]);
        assert!(embedded.shows("shell_command") && !embedded.shows("grep") && small.shows("grep"));
        let rules = [FamilyRule { without_tools: Some(vec!["grep".into()]), ..rule("*:1.5b") }];
        let own = profile("ollama/qwen2.5-coder:1.5b", &rules);
        assert!(own.shows("fetch_url") && !own.shows("grep"));
        assert!(!profile("openai/gpt-5", &[]).shows_unread_files());
    }

    #[test]
    fn patterns_fit_whole_names() {
        assert!(fits("gpt-*", "openai/gpt-5") && fits("*claude*", "a/b/claude-x") && fits("a/*", "a/b/c"));
        assert!(!fits("gpt-*", "openai/my-gpt-5") && !fits("*-7b", "ollama/x-7b-instruct"));
        assert!(fits("*a*b", "xaxb") && !fits("a*a", "a"));
    }
}
