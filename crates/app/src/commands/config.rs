//! `dragoman config`: shows the settings in force, checks them, and prints their schema.

use std::process::ExitCode;

use config::{Environment, Inputs, Resolved};
use domain::{Level, Notice, visible_json, visible_line};
use providers::ProviderDeps;
use serde_json::json;
use terminal::Bindings;

use crate::places::PlaceReport;
use crate::settings_review;

pub(crate) fn show(json: bool) -> ExitCode {
    let environment = Environment::from_process();
    let mut resolved = resolve(&environment);
    resolved.notices = settings_review::notices(&resolved, &settings_review::built_in_tools());
    for (name, failure) in providers::configured(&resolved, &ProviderDeps::new(&environment)).unusable {
        resolved.refuse(&["providers", &name], &failure.message);
        resolved.notices.push(Notice { level: Level::Error, text: failure.to_string() });
    }
    let places = PlaceReport::new(&environment, &resolved, &crate::working_folder::current_folder());
    let json_text = || {
        let mut shown = resolved.show_json();
        shown["places"] = places.json();
        visible_json(&format!("{shown:#}\n")).into_owned()
    };
    let text = if json { json_text() } else { format!("{}{}", resolved.show_text(), places.text()) };
    super::print_bytes(text.as_bytes())
}

/// Exit code 1 where an error or a warning was found.
pub(crate) fn check(json: bool) -> ExitCode {
    let environment = Environment::from_process();
    let resolved = resolve(&environment);
    let mut notices = settings_review::notices(&resolved, &settings_review::built_in_tools());
    let problems = providers::configured(&resolved, &ProviderDeps::new(&environment)).problems;
    notices.extend(problems.iter().map(|problem| Notice { level: Level::Error, text: problem.to_string() }));
    notices.extend(chat_problems(&resolved, &environment));
    let is_problem = |notice: &Notice| matches!(notice.level, Level::Error | Level::Warning);
    let found = notices.iter().filter(|notice| is_problem(notice)).count();
    let text = if json {
        let entries: Vec<_> =
            notices.iter().map(|notice| json!({"level": word(notice.level), "text": notice.text})).collect();
        visible_json(&format!("{:#}\n", json!({"ok": found == 0, "notices": entries}))).into_owned()
    } else {
        let mut lines: Vec<String> = notices
            .iter()
            .map(|notice| format!("{}: {}", word(notice.level), visible_line(&notice.text)))
            .collect();
        lines.push(match found {
            0 => "The settings have no problems.".to_owned(),
            1 => "The settings have 1 problem.".to_owned(),
            found => format!("The settings have {found} problems."),
        });
        format!("{}\n", lines.join("\n"))
    };
    let printed = super::print_bytes(resolved.redactor.redact(&text).as_bytes());
    if found == 0 { printed } else { ExitCode::FAILURE }
}

pub(crate) fn schema(markdown: bool) -> ExitCode {
    let text = if markdown { config::configuration_page() } else { format!("{:#}\n", config::json_schema()) };
    super::print_bytes(text.as_bytes())
}

/// Keys and the theme of `dragoman chat` that it would refuse.
fn chat_problems(resolved: &Resolved, environment: &Environment) -> Vec<Notice> {
    let chat = &resolved.settings.chat;
    let (_, wrong) = Bindings::read(&chat.keys);
    let keys = wrong.into_iter().map(|key| {
        format!("{key} is not understood: name a key, and a key or a /command for it (`dragoman docs chat`).")
    });
    let theme = super::chat_themes::problem(&chat.theme, environment);
    keys.chain(theme).map(|text| Notice { level: Level::Warning, text }).collect()
}

fn resolve(environment: &Environment) -> Resolved {
    let inputs = Inputs { workspace_roots: crate::working_folder::current_folder(), ..Inputs::default() };
    config::resolve(environment, &inputs)
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "note",
    }
}
