//! A text that cannot be read as a whole is named by file, line and column, used nowhere, and everything asks.

use serde_json::json;

use super::{ECA_GLOBAL, ECA_PROJECT, OUR_GLOBAL, OUR_PROJECT, World, notices};

#[test]
fn a_broken_file_is_named_and_not_used_and_everything_asks() {
    let text =
        "{\n  \"defaultModel\": \"a/broken\",\n  \"toolCall\": {\"approval\": {\"deny\": {\"x\": {}}}\n";
    for file in [ECA_GLOBAL, OUR_GLOBAL, ECA_PROJECT, OUR_PROJECT] {
        let fine = if file == OUR_GLOBAL { ECA_GLOBAL } else { OUR_GLOBAL };
        let approval = json!({"byDefault": "allow", "deny": {"y": {}}});
        let world = World::new()
            .var("DRAGOMAN_TRUST", 1)
            .write(fine, json!({"defaultModel": "a/fine", "toolCall": {"approval": approval}}))
            .write(file, text);
        let resolved = world.resolve();
        let want = format!(
            "The settings in {file} cannot be used: line 3, column 15: unterminated object. None of them \
             applies, and every tool call asks, until they are corrected."
        );
        assert_eq!(notices(&world, &resolved), want);
        assert_eq!(resolved.settings.default_model.as_deref(), Some("a/fine"));
        let approval = &resolved.settings.tools.approval;
        assert_eq!((approval.allow.len(), approval.by_default), (0, Some(config::Approval::Ask)), "{file}");
        assert_eq!(approval.deny[0].target, "y");
        assert!(approval.closed.as_ref().unwrap().contains(file));
    }
}

#[test]
fn a_broken_variable_is_named_too() {
    for name in ["ECA_CONFIG", "DRAGOMAN_CONFIG"] {
        let world = World::new().var(name, "{\"defaultModel\": oops}");
        let resolved = world.resolve();
        let want = format!(
            "The settings in ${name} cannot be used: line 1, column 18: unexpected token. None of them \
             applies, and every tool call asks, until they are corrected."
        );
        assert_eq!((notices(&world, &resolved), resolved.settings.default_model), (want, None));
        assert!(resolved.settings.tools.approval.closed.is_some());
    }
}

#[test]
fn what_is_no_readable_file_is_said_so() {
    let world = World::new();
    std::fs::create_dir_all(world.path(OUR_GLOBAL)).unwrap();
    assert!(notices(&world, &world.resolve()).contains("it is not a regular file"));

    let world = World::new();
    world.put(OUR_GLOBAL, "");
    std::fs::write(world.path(OUR_GLOBAL), b"{\n \"a\": \"\xff\"}").unwrap();
    assert!(notices(&world, &world.resolve()).contains("line 2, column 8: this is no UTF-8 text"));

    let world = World::new().write(OUR_GLOBAL, format!("{{\"a\": \"{}\"}}", "x".repeat(5 << 20)));
    assert!(notices(&world, &world.resolve()).contains("it is larger than 4 MiB"));

    let world = World::new().options(json!(["not", "an", "object"]));
    assert_eq!(
        notices(&world, &world.resolve()),
        "initializationOptions must be an object; they are ignored."
    );
}

#[test]
fn a_file_with_very_many_keys_is_refused() {
    let keys: Vec<String> = (0..200_000).map(|number| format!("\"k{number}\": {{}}")).collect();
    for file in [OUR_GLOBAL, OUR_PROJECT] {
        let world = World::new().write(file, format!("{{{}}}", keys.join(", ")));
        let said = notices(&world, &world.resolve());
        assert!(said.contains("there are more than 20000 values") && said.len() < 1000, "{}", said.len());
    }
}
