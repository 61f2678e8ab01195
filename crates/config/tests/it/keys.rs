//! Keys without effect are reported by name and place, with the nearest known key.

use serde_json::json;

use super::{OUR_GLOBAL, OUR_PROJECT, World, notices};

#[test]
fn an_unknown_key_is_reported_at_every_level() {
    for (text, want) in [
        (
            r#"{"toolCall": {"aproval": {"deny": {}}}}"#,
            "line 1, column 26: `toolCall.aproval` is not a known setting and is ignored. Did you mean \
             `toolCall.approval`?",
        ),
        (
            r#"{"defualtModel": "a/b"}"#,
            "line 1, column 18: `defualtModel` is not a known setting and is ignored. Did you mean `defaultModel`?",
        ),
        (
            r#"{"providers": {"x": {"models": {"m": {"limits": {"context": 1}}}}}}"#,
            "line 1, column 49: `providers.x.models.m.limits` is not a known setting and is ignored. Did you mean \
             `providers.x.models.m.limit`?",
        ),
        (
            r#"{"maxLines": 5}"#,
            "line 1, column 14: `maxLines` is not a known setting and is ignored. Did you mean \
             `toolCall.readFile.maxLines`?",
        ),
        (
            r#"{"agent": {"plan": {"zzzzzz": 1}}}"#,
            "line 1, column 31: `agent.plan.zzzzzz` is not a known setting and is ignored.",
        ),
        (
            r#"{"rules": [{"path": "a", "pth": "b"}]}"#,
            "`rules.[0].pth` is not a known setting and is ignored. Did you mean `rules.[0].path`?",
        ),
    ] {
        let world = World::new().write(OUR_GLOBAL, text);
        let said = notices(&world, &world.resolve());
        assert!(said.starts_with(OUR_GLOBAL) && said.ends_with(want), "{text}: {said}");
    }
}

#[test]
fn names_that_a_user_chooses_are_not_keys() {
    let values = json!({
        "providers": {"anything": {"extraHeaders": {"X-Any": "a"}, "extraPayload": {"any": {"thing": 1}},
            "models": {"any.name": {"variants": {"any": {"effort": 1}}}}}},
        "mcpServers": {"any": {"command": "c", "env": {"ANY": "a"}}},
        "agent": {"any": {"prompts": {"tools": {"any": "a"}}}},
    });
    let world = World::new().write(OUR_GLOBAL, values);
    assert_eq!(notices(&world, &world.resolve()), "");
}

#[test]
fn options_of_a_client_beside_settings_are_its_own() {
    let world = World::new().options(json!({"clientOnly": {"a": 1}, "chat": {"titel": true}}));
    let said = notices(&world, &world.resolve());
    assert!(!said.contains("clientOnly") && said.contains("Did you mean `chat.title`?"), "{said}");
}

#[test]
fn many_unknown_keys_are_summed_up() {
    let values: serde_json::Map<_, _> = (0..500).map(|number| (format!("k{number}"), json!(1))).collect();
    let world = World::new().write(OUR_GLOBAL, serde_json::Value::from(values));
    let resolved = world.resolve();
    assert_eq!((resolved.notices.len(), resolved.ignored_keys.len()), (21, 500));
    assert!(resolved.notices[20].text.ends_with("480 more unknown settings are ignored."));
}

#[test]
fn settings_are_shown_without_raw_escapes() {
    let name = "evil\u{1b}]0;x\u{7}\u{9b}2J\u{202e}";
    let values = json!({
        "mcpServers": {name: {"command": name, "args": [name]}}, "welcomeMessage": name,
        "toolCall": {"approval": {"deny": {name: {"argsMatchers": {"path": [name]}}}}}, name: 1,
    });
    let world = World::new().var("DRAGOMAN_TRUST", 1).write(OUR_PROJECT, values);
    let text = world.resolve().show_text();
    assert!(text.contains("evil\\u{1b}]0;x") || text.contains("evil\\u001b"), "{text}");
    let raw: Vec<char> =
        text.chars().filter(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}').collect();
    assert!(raw.is_empty(), "{raw:?}");
}

/// A value that the program does not use is never shown as if it were in force.
#[test]
fn refused_values_are_shown_as_refused() {
    let values = json!({
        "defaultAgent": "nobody", "mcpTimeoutSeconds": "soon", "sandbox": "perhaps", "logLevel": 7,
        "mcpServers": {"empty": {"args": ["a"]}, "fine": {"command": "a"}}, "budgets": {"day": "much"},
        "compactAt": 3, "theme": "dark",
    });
    let world = World::new().write(OUR_GLOBAL, values);
    let resolved = world.resolve();
    let text = resolved.show_text();
    let line =
        |key: &str| text.lines().find(|line| line.starts_with(&format!("{key} = "))).map(str::to_owned);
    let json = resolved.show_json();
    let refused: Vec<&str> =
        json["refused"].as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap()).collect();
    for (key, reason) in [
        ("defaultAgent", "names no behavior"),
        ("sandbox", "must be"),
        ("mcpServers.empty.args", "needs a `command`"),
    ] {
        let line = line(key).unwrap_or_else(|| panic!("{key}: {text}"));
        assert!(line.contains("; refused: ") && line.contains(reason), "{line}");
        assert!(refused.contains(&key), "{key}: {refused:?}");
        assert!(json["origins"].get(key).is_none(), "{key}");
    }
    assert!(!line("mcpServers.fine.command").unwrap().contains("refused"), "{text}");
    assert_eq!(json["settings"]["defaultAgent"], "agent", "the default is in force");
    assert_eq!(json["settings"]["mcpServers"]["fine"]["command"], "a");
    assert!(json["settings"]["mcpServers"]["empty"].get("args").is_none());
}
