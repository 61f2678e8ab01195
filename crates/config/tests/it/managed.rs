//! Managed settings over those of users and projects: they lower and take away, and nothing goes around them.

use std::path::Path;

use config::{Environment, Inputs, Managed, Resolved};
use serde_json::{Value, json};

use crate::{OUR_GLOBAL, OUR_PROJECT, World};

const FILE: &str = "/etc/dragoman/managed.json";

fn resolve(world: &World, variables: &[(&str, &str)], overrides: Value, managed: &Value) -> Resolved {
    let managed = Managed::parse(Path::new(FILE), &managed.to_string()).unwrap();
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment = Environment::new(world.path("home"), variables).with_managed(managed);
    let inputs = Inputs {
        workspace_roots: vec![world.path("project")],
        overrides: overrides.as_object().cloned().unwrap_or_default(),
        ..Inputs::default()
    };
    config::resolve(&environment, &inputs)
}

fn origin(resolved: &Resolved, key: &str) -> String {
    resolved.origin(key).map(ToString::to_string).unwrap_or_default()
}

#[test]
fn limits_are_lowered_and_never_raised() {
    let rules = json!({"budgets": {"day": 5, "run": 1}, "retentionDays": 30});
    let world =
        World::new().write(OUR_GLOBAL, json!({"budget": {"day": 50, "chat": 3}, "chatRetentionDays": 0}));
    let resolved = resolve(&world, &[], json!({"budget": {"run": 9}}), &rules);
    let settings = &resolved.settings;
    assert_eq!(
        (settings.budget.chat, settings.budget.day, settings.budget.run),
        (Some(3.0), Some(5.0), Some(1.0))
    );
    assert_eq!((settings.chat.retention_days, settings.worker.retention_days), (Some(30), Some(30)));
    assert_eq!(origin(&resolved, "budget.day"), FILE);
    assert_eq!(origin(&resolved, "chatRetentionDays"), FILE);
    assert!(origin(&resolved, "budget.chat").ends_with("config.json"));
    let shown = resolved.show_text();
    assert!(shown.contains(&format!("budget.day = 5    ({FILE})")), "{shown}");
    assert!(shown.contains(&format!("managed.retentionDays = 30    ({FILE})")), "{shown}");
    assert_eq!(resolved.show_json()["managed"]["file"], FILE);
    // What is lower stays, also in `DRAGOMAN_CONFIG`; a project's days are no days.
    world.put(OUR_PROJECT, json!({"chatRetentionDays": 7}));
    let own = r#"{"budget": {"day": 2, "run": "x"}}"#;
    let resolved = resolve(&world, &[("DRAGOMAN_CONFIG", own), ("DRAGOMAN_TRUST", "1")], json!({}), &rules);
    assert_eq!((resolved.settings.budget.day, resolved.settings.budget.run), (Some(5.0), Some(0.0)));
    assert_eq!(resolved.settings.chat.retention_days, Some(30));
    // Nothing of a user's files is read, and the rules hold.
    let resolved = resolve(&world, &[("DRAGOMAN_PURE", "1")], json!({}), &rules);
    assert_eq!((resolved.settings.budget.day, resolved.settings.budget.chat), (Some(5.0), None));
}

#[test]
fn providers_servers_and_plugins_that_are_not_listed_are_left_out() {
    let server = json!({"command": "server"});
    let world = World::new().write(
        OUR_GLOBAL,
        json!({"providers": {"corp": {"url": "https://llm.corp.example"}, "other": {"url": "https://o.example"}},
            "mcpServers": {"notes": server, "mail": server}}),
    );
    let rules = json!({"allowedProviders": ["corp"], "allowedMcpServers": ["notes"], "allowedPlugins": []});
    let resolved = resolve(&world, &[("ANTHROPIC_API_KEY", "k")], json!({}), &rules);
    let providers: Vec<&String> = resolved.settings.providers.keys().collect();
    assert_eq!(providers, ["corp"]);
    assert_eq!(resolved.settings.mcp_servers.keys().collect::<Vec<_>>(), ["notes"]);
    let texts: Vec<&str> = resolved.notices.iter().map(|notice| notice.text.as_str()).collect();
    for what in ["The provider other", "The provider anthropic", "The MCP server mail"] {
        assert!(
            texts.iter().any(|text| text.contains(what) && text.contains("administrator")),
            "{what}: {texts:?}"
        );
    }
}

#[test]
fn telemetry_is_switched_off_or_goes_to_one_place() {
    let world = World::new().write(
        OUR_GLOBAL,
        json!({"otlp": {"otel.exporter.otlp.endpoint": "https://mine.example", "content": true}}),
    );
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "https://variable.example")];
    let off = resolve(&world, &variables, json!({}), &json!({"telemetry": false}));
    assert_eq!(off.settings.telemetry, None);
    let rules = json!({"telemetry": {"otel.exporter.otlp.endpoint": "https://corp.example", "otel.exporter.otlp.headers": "key=secret"}});
    let only = resolve(&world, &variables, json!({}), &rules);
    let telemetry = only.settings.telemetry.as_ref().unwrap();
    assert!(telemetry.traces.as_ref().unwrap().url.starts_with("https://corp.example"));
    assert!(!telemetry.content);
    assert!(!only.show_text().contains("secret") && !only.show_json().to_string().contains("secret"));
}

#[test]
fn a_sandbox_that_is_required_is_on() {
    let world = World::new().write(OUR_GLOBAL, json!({"sandbox": "off"}));
    let resolved = resolve(&world, &[], json!({"sandbox": "off"}), &json!({"sandboxRequired": true}));
    assert!(resolved.settings.sandbox.enabled);
    assert_eq!(origin(&resolved, "sandboxRequired"), FILE);
    assert!(resolved.show_text().contains(&format!("sandboxRequired = true    ({FILE})")));
}

#[test]
fn an_administrator_names_or_forbids_the_reviewer() {
    let own = json!({"toolCall": {"approval": {"reviewer": "own/model"}}});
    let world = World::new().write(OUR_GLOBAL, own);
    let reviewer = |rules: Value| resolve(&world, &[], json!({}), &rules).settings.tools.reviewer;
    assert_eq!(reviewer(json!({})).as_deref(), Some("own/model"));
    assert_eq!(reviewer(json!({"reviewer": "corp/judge"})).as_deref(), Some("corp/judge"));
    assert_eq!(reviewer(json!({"reviewer": "off"})), None);
    assert!(Managed::parse(Path::new(FILE), r#"{"reviewer": true}"#).is_err());
}
