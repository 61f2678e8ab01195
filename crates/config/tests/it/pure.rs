//! `pureConfig`: files are ignored, but never the user's own deny rules, unless the environment says so.

use serde_json::json;

use super::{ECA_GLOBAL, OUR_GLOBAL, OUR_PROJECT, World};

fn world() -> World {
    World::new()
        .write(
            ECA_GLOBAL,
            json!({"toolCall": {"approval": {"deny": {"shell_command": {}}, "allow": {"x": {}}}}}),
        )
        .write(
            OUR_GLOBAL,
            json!({
                "defaultModel": "a/b",
                "toolCall": {"approval": {"ask": {"y": {}}, "byDefault": "allow"}},
                "agent": {"plan": {"toolCall": {"approval": {"deny": {"fetch_url": {}}}}}},
            }),
        )
        .write(OUR_PROJECT, json!({"toolCall": {"approval": {"deny": {"z": {}}}}, "pureConfig": false}))
}

#[test]
fn files_are_ignored_but_not_the_deny_rules_of_the_user() {
    let pure = json!({"pureConfig": true, "defaultAgent": "plan"});
    let ways = [
        world().options(pure.clone()),
        world().var("ECA_CONFIG", &pure),
        world().var("DRAGOMAN_CONFIG", &pure),
        world().var("DRAGOMAN_PURE", 1).options(pure.clone()),
    ];
    for (way, world) in ways.into_iter().enumerate() {
        let settings = world.settings();
        let approval = &settings.tools.approval;
        assert_eq!((settings.default_model, &*settings.default_behavior), (None, "plan"));
        assert_eq!(approval.by_default, Some(config::Approval::Ask));
        assert!(
            approval.ask.is_empty() && approval.allow.iter().all(|rule| rule.target.starts_with("eca__"))
        );
        let denied: Vec<&str> = approval.deny.iter().map(|rule| rule.target.as_str()).collect();
        let planned: Vec<&str> =
            settings.behaviors["plan"].approval.deny.iter().map(|rule| rule.target.as_str()).collect();
        let want: (&[&str], &[&str]) =
            if way == 3 { (&[], &[]) } else { (&["shell_command"], &["fetch_url"]) };
        assert_eq!((&denied[..], &planned[..]), want, "way {way}");
    }
}

#[test]
fn a_file_cannot_ask_for_it() {
    for file in [ECA_GLOBAL, OUR_GLOBAL, OUR_PROJECT] {
        let world = World::new().var("DRAGOMAN_TRUST", 1).write("home/.config/dragoman/config.json", "{}");
        world.put(file, json!({"pureConfig": true, "defaultModel": "a/b"}));
        assert_eq!(world.settings().default_model.as_deref(), Some("a/b"), "{file}");
    }
}

#[test]
fn a_default_of_deny_and_a_broken_file_stay_closed() {
    let world = World::new()
        .options(json!({"pureConfig": true, "toolCall": {"approval": {"allow": {"x": {}}}}}))
        .write(OUR_GLOBAL, json!({"toolCall": {"approval": {"byDefault": "deny"}}}));
    assert_eq!(world.settings().tools.approval.by_default, Some(config::Approval::Deny));
    world.put(OUR_GLOBAL, "{\"toolCall\": ");
    let approval = world.settings().tools.approval;
    assert!(approval.closed.is_some() && approval.allow.is_empty());
}
