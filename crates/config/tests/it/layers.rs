//! Which layer wins, and how `config show` reports it.

use serde_json::json;

use super::{ECA_GLOBAL, ECA_PROJECT, OUR_GLOBAL, OUR_PROJECT, World, notices};

/// A layer's name, how to set it, and how its origin ends.
type Place = (&'static str, fn(World, serde_json::Value) -> World, &'static str);

/// Each place from the lowest to the highest sets the model to its own name.
#[test]
fn a_higher_layer_wins_and_is_named() {
    let model = |name: &str| json!({"defaultModel": format!("layer/{name}")});
    let all: [Place; 7] = [
        ("options", |world, value| world.options(value), "initializationOptions"),
        ("eca variable", |world, value| world.var("ECA_CONFIG", value), "$ECA_CONFIG"),
        ("our variable", |world, value| world.var("DRAGOMAN_CONFIG", value), "$DRAGOMAN_CONFIG"),
        ("eca global", |world, value| world.write(ECA_GLOBAL, value), ECA_GLOBAL),
        ("our global", |world, value| world.write(OUR_GLOBAL, value), OUR_GLOBAL),
        ("eca project", |world, value| world.write(ECA_PROJECT, value), ECA_PROJECT),
        ("our project", |world, value| world.write(OUR_PROJECT, value), OUR_PROJECT),
    ];
    for highest in 0..all.len() {
        let mut world = World::new().var("DRAGOMAN_TRUST", 1);
        for (name, set, _) in &all[..=highest] {
            world = set(world, model(name));
        }
        let (name, _, origin) = all[highest];
        let resolved = world.resolve();
        assert_eq!(resolved.settings.default_model, Some(format!("layer/{name}")));
        assert!(resolved.origin("defaultModel").unwrap().to_string().ends_with(origin), "{name}");
        assert_eq!(notices(&world, &resolved), "");
    }
}

#[test]
fn the_command_line_wins_over_everything() {
    let mut world = World::new().write(OUR_GLOBAL, json!({"logLevel": "warn", "failover": ["a/b"]}));
    world.overrides = json!({"logLevel": "debug", "failover": ["c/d", "e/f"]}).as_object().unwrap().clone();
    let resolved = world.resolve();
    assert_eq!(resolved.settings.log_level, config::LogLevel::Debug);
    assert_eq!(resolved.settings.failover, ["c/d", "e/f"]);
    assert_eq!(resolved.origin("logLevel").unwrap().to_string(), "command line");
}

#[test]
fn objects_are_merged_and_lists_replaced() {
    let world = World::new()
        .write(
            ECA_GLOBAL,
            json!({"providers": {"x": {"url": "http://low", "models": {"a": {}}}}, "failover": ["a/b"]}),
        )
        .write(
            OUR_GLOBAL,
            json!({"providers": {"x": {"models": {"b.c": {"modelName": "d"}}}}, "failover": []}),
        );
    let resolved = world.resolve();
    let provider = &resolved.settings.providers["x"];
    assert_eq!(provider.url.as_ref().unwrap().known(), Some("http://low"));
    assert_eq!(provider.models.keys().collect::<Vec<_>>(), ["a", "b.c"]);
    assert!(resolved.settings.failover.is_empty());
    let name = resolved.origin("providers.x.models.\"b.c\".modelName").unwrap().to_string();
    assert!(name.ends_with(OUR_GLOBAL));
}

#[test]
fn null_gives_the_default_back_and_in_options_means_nothing() {
    let world = World::new()
        .write(
            ECA_GLOBAL,
            json!({"defaultModel": "a/b", "autoCompactPercentage": 10, "defaultAgent": "plan"}),
        )
        .write(OUR_GLOBAL, json!({"defaultModel": null, "autoCompactPercentage": null}))
        .options(json!({"chatAgent": null, "mcpTimeoutSeconds": null}));
    let settings = world.settings();
    assert_eq!((settings.default_model, settings.chat.auto_compact_percentage), (None, 85));
    assert_eq!((&*settings.default_behavior, settings.mcp_timeout.as_secs()), ("plan", 60));
}

#[test]
fn defaults_hold_where_nobody_says_anything() {
    let resolved = World::new().resolve();
    let settings = &resolved.settings;
    assert_eq!(resolved.notices, []);
    assert_eq!(settings.default_behavior, "agent");
    assert_eq!(settings.behaviors.keys().collect::<Vec<_>>(), ["agent", "plan"]);
    assert!(settings.behaviors.values().all(|behavior| behavior.primary));
    let numbers = [
        (settings.tools.read_file_max_lines, 2000),
        (settings.tools.output_max_bytes, 50 * 1024),
        (settings.chat.auto_compact_percentage, 85),
        (settings.chat.max_steps, 200),
        (settings.stream_silence.as_secs(), 120),
        (settings.mcp_timeout.as_secs(), 60),
        (settings.concurrency, 256),
    ];
    for (number, (got, want)) in numbers.into_iter().enumerate() {
        assert_eq!(got, want, "number {number}");
    }
    assert!(settings.chat.title && !settings.chat.default_trust && !settings.chat.welcome_message.is_empty());
    assert_eq!((settings.budget, settings.log_level), (config::Budget::default(), config::LogLevel::Warn));
}

const WRONG: &[(&str, &str)] = &[
    (
        "{\n  \"autoCompactPercentage\": 200\n}",
        "line 2, column 28: `autoCompactPercentage` must be a whole number from 1 to 100; the default is used instead.",
    ),
    (
        "{\"toolCall\": {\"readFile\": {\"maxLines\": \"x\"}}}",
        "line 1, column 40: `toolCall.readFile.maxLines` must be a whole number from 1 to 100000; the default is used instead.",
    ),
    (
        "{\"defaultModel\": 5}",
        "line 1, column 18: `defaultModel` must be a text; the default is used instead.",
    ),
    (
        "{\"chat\": {\"title\": \"yes\"}}",
        "line 1, column 20: `chat.title` must be true or false; the default is used instead.",
    ),
    (
        "{\"mcpServers\": []}",
        "line 1, column 16: `mcpServers` must be an object; the default is used instead.",
    ),
    (
        "{\"mcpServers\": {\"a.b\": {\"args\": []}}}",
        "line 1, column 24: `mcpServers.\"a.b\"` needs a `command` or a `url`; the server is left out.",
    ),
    (
        "{\"defaultAgent\": \"nobody\"}",
        "line 1, column 18: `defaultAgent` names no behavior that can be chosen (agent, plan can); the default is used instead.",
    ),
    (
        "{\"logLevel\": \"loud\"}",
        "line 1, column 14: `logLevel` must be error, warn, info, debug or trace; the default is used instead.",
    ),
    (
        "{\"budget\": {\"day\": \"5\"}}",
        "line 1, column 20: `budget.day` must be a number of dollars. Nothing is spent until it is corrected.",
    ),
    (
        "{\"rules\": \"x\"}",
        "line 1, column 11: `rules` must be a list of {\"path\": …}; the default is used instead.",
    ),
    ("{\"unheardOf\": 1}", "line 1, column 15: `unheardOf` is not a known setting and is ignored."),
    (
        "{\"network\": {\"clientCert\": \"/a\"}}",
        "line 1, column 13: `network` needs `clientCert` and `clientKey` together; the default is used instead.",
    ),
];

#[test]
fn a_wrong_value_is_named_by_place_and_the_default_used() {
    for (text, want) in WRONG {
        let world = World::new().write(OUR_GLOBAL, text);
        let resolved = world.resolve();
        assert_eq!(notices(&world, &resolved), format!("{OUR_GLOBAL}, {want}"), "{text}");
        assert_eq!(resolved.settings.chat.auto_compact_percentage, 85);
    }
    let capped =
        World::new().write(OUR_GLOBAL, json!({"budget": {"day": "5", "run": 2.5}})).settings().budget;
    assert_eq!((capped.day, capped.run, capped.chat), (Some(0.0), Some(2.5), None));
}

#[test]
fn extra_files_lie_above_the_project() {
    let world = World::new()
        .var("DRAGOMAN_TRUST", 1)
        .write(OUR_GLOBAL, json!({"extraConfigs": ["~/more.json", "gone.json"], "defaultModel": "a/global"}))
        .write(OUR_PROJECT, json!({"defaultModel": "a/project", "extraConfigs": ["evil.json"]}))
        .write("project/evil.json", json!({"defaultModel": "a/evil"}))
        .write("home/more.json", json!({"defaultModel": "a/extra", "chatBehavior": "plan"}));
    let resolved = world.resolve();
    assert_eq!(resolved.settings.default_model.as_deref(), Some("a/extra"));
    assert_eq!(resolved.settings.default_behavior, "plan");
    assert_eq!(notices(&world, &resolved), "There is no file project/gone.json, which `extraConfigs` names.");
}

#[test]
fn a_chat_is_summarized_by_what_is_full_or_by_what_is_left() {
    let config = r#"{"autoCompactPercentage": 80, "autoCompactTokensLeft": 5000,
        "agent": {"plan": {"autoCompactTokensLeft": 100}, "own": {"autoCompactPercentage": 10}}}"#;
    let settings = World::new().write(OUR_GLOBAL, config).settings();
    for (behavior, percentage, left) in [("agent", 80, 5000), ("plan", 80, 100), ("own", 10, 5000)] {
        let read = (settings.auto_compact_percentage(behavior), settings.auto_compact_tokens_left(behavior));
        assert_eq!(read, (percentage, Some(left)), "{behavior}");
    }
}
