//! Approval rules out of every layer: none is lost, and what cannot be read fails closed.

use config::{Approval, ApprovalRules, Rule};
use serde_json::{Value, json};

use super::{ECA_GLOBAL, OUR_GLOBAL, OUR_PROJECT, World, notices};

fn targets(rules: &[Rule]) -> Vec<&str> {
    rules.iter().map(|rule| rule.target.as_str()).filter(|target| !target.starts_with("eca__")).collect()
}

fn approval(rules: Value) -> Value {
    json!({"toolCall": {"approval": rules}})
}

fn rules(world: &World) -> ApprovalRules {
    world.settings().tools.approval
}

#[test]
fn defaults_allow_what_only_reads() {
    let rules = rules(&World::new());
    assert_eq!((rules.by_default, rules.ask.len(), rules.deny.len()), (Some(Approval::Ask), 0, 0));
    assert_eq!(rules.allow.len(), 13);
    assert!(rules.allow.iter().any(|rule| rule.target == "eca__read_file"));
}

#[test]
fn no_layer_takes_a_deny_or_ask_rule_away() {
    let matchers = json!({"argsMatchers": {"command": ["rm .*"], "path": ["/etc/.*", "/usr/.*"]}});
    let world = World::new()
        .var("DRAGOMAN_TRUST", 1)
        .write(ECA_GLOBAL, approval(json!({"deny": {"shell_command": {}}, "ask": {"grep": {}}})))
        .write(
            OUR_GLOBAL,
            approval(json!({"deny": {"shell_command": matchers}, "ask": {}, "byDefault": "allow"})),
        )
        .write(OUR_PROJECT, approval(json!({"deny": {}, "ask": null, "allow": ["shell_command"]})));
    let rules = rules(&world);
    assert_eq!(targets(&rules.deny), ["shell_command", "shell_command"]);
    assert_eq!(rules.deny[0].args_matchers, []);
    let want = [("command", vec!["rm .*"]), ("path", vec!["/etc/.*", "/usr/.*"])];
    for ((argument, patterns), (want, sources)) in rules.deny[1].args_matchers.iter().zip(want) {
        assert_eq!((argument.as_str(), patterns.iter().map(String::as_str).collect()), (want, sources));
    }
    assert!(rules.deny[1].origin.to_string().ends_with(OUR_GLOBAL));
    assert_eq!((targets(&rules.ask), targets(&rules.allow)), (vec!["grep"], vec!["shell_command"]));
    assert_eq!(rules.by_default, Some(Approval::Allow));
}

#[test]
fn an_allow_rule_is_replaced_by_the_higher_layer() {
    let strict = json!({"argsMatchers": {"command": ["git status"]}});
    let world = World::new()
        .write(ECA_GLOBAL, approval(json!({"allow": {"shell_command": {}}})))
        .write(OUR_GLOBAL, approval(json!({"allow": {"shell_command": strict}})));
    let rules = rules(&world);
    let shell: Vec<&Rule> = rules.allow.iter().filter(|rule| rule.target == "shell_command").collect();
    assert_eq!((shell.len(), shell[0].args_matchers.len()), (1, 1));
}

/// What is malformed, how it is named, and what holds then: deny, ask and allow targets, and whether all asks.
type Row = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
    bool,
);

const MALFORMED: &[Row] = &[
    (
        r#"{"deny": {"a": {"argsMatchers": {"command": ["(unclosed"]}}}}"#,
        "`toolCall.approval.deny.a` has a regular expression for “command” that cannot be read (unclosed group); \
         the tool is denied whatever its arguments",
        &["a"],
        &[],
        &[],
        false,
    ),
    (r#"{"deny": {"a": {"argsMatchers": {"command": ["(?!x)y"]}}}}"#, "look-around", &["a"], &[], &[], false),
    (
        r#"{"ask": {"a": {"argMatchers": {"command": ["x"]}}}}"#,
        "has the unknown key “argMatchers”; only `argsMatchers` is known; the tool is asked about whatever its",
        &[],
        &["a"],
        &[],
        false,
    ),
    (
        r#"{"allow": {"a": {"argMatchers": {"command": ["x"]}}, "b": {}}}"#,
        "it allows nothing until it is corrected",
        &[],
        &[],
        &["b"],
        false,
    ),
    (
        r#"{"allow": {"a": {"argsMatchers": {"command": "x"}}}}"#,
        "has no list of regular expressions for “command”",
        &[],
        &[],
        &[],
        false,
    ),
    (r#"{"allow": {"a": {"argsMatchers": {"command": [5]}}}}"#, "that is no text", &[], &[], &[], false),
    (r#"{"allow": {"a": true}}"#, "must be {} or", &[], &[], &[], false),
    (
        r#"{"deny": "a", "allow": {"b": {}}}"#,
        "`toolCall.approval.deny` must be an object from tool to {}. Every tool call asks",
        &[],
        &[],
        &[],
        true,
    ),
    (
        r#"{"deny": [5], "ask": ["c"]}"#,
        "names a tool by something else than text. Every tool call asks",
        &[],
        &["c"],
        &[],
        true,
    ),
    (
        r#"{"byDefault": "alow", "allow": {"b": {}}}"#,
        "`toolCall.approval.byDefault` must be \"allow\", \"ask\" or \"deny\". Every",
        &[],
        &[],
        &[],
        true,
    ),
    (r#"{"denied": {"b": {}}}"#, "`toolCall.approval.denied` is no list of rules", &[], &[], &[], true),
    (r#""deny""#, "`toolCall.approval` must be an object; every tool call asks", &[], &[], &[], true),
];

#[test]
fn malformed_rules_fail_closed() {
    for (block, told, deny, ask, allow, closed) in MALFORMED {
        let world = World::new()
            .write(ECA_GLOBAL, approval(json!({"byDefault": "allow", "allow": {"a": {}}})))
            .write(OUR_GLOBAL, format!("{{\"toolCall\": {{\"approval\": {block}}}}}"));
        let resolved = world.resolve();
        let (said, rules) = (notices(&world, &resolved), resolved.settings.tools.approval);
        assert!(said.contains(told) && said.starts_with(OUR_GLOBAL), "{block}: {said}");
        assert_eq!((targets(&rules.deny), targets(&rules.ask)), (deny.to_vec(), ask.to_vec()), "{block}");
        assert_eq!(rules.closed.is_some(), *closed, "{block}");
        // What the lower layer allows about the malformed target is gone too.
        let untouched = !block.contains("\"allow\": {\"a\"") && !closed;
        let want: Vec<&str> = untouched.then_some("a").into_iter().chain(allow.iter().copied()).collect();
        assert_eq!(targets(&rules.allow), want, "{block}");
        if *closed {
            assert_eq!((rules.allow.len(), rules.by_default), (0, Some(Approval::Ask)), "{block}");
        }
    }
}

#[test]
fn a_tool_block_that_is_none_hides_no_rules() {
    for (text, key) in [(json!({"toolCall": 5}), "toolCall"), (json!({"agent": {"plan": []}}), "agent.plan")]
    {
        let world = World::new().write(OUR_GLOBAL, &text);
        let resolved = world.resolve();
        let said = notices(&world, &resolved);
        assert!(said.contains(&format!("`{key}` must be an object; every tool call asks")), "{text}: {said}");
        let closed = [&resolved.settings.tools.approval, &resolved.settings.behaviors["plan"].approval];
        assert!(closed.iter().any(|rules| rules.closed.is_some()), "{text}");
    }
}

#[test]
fn behaviors_have_rules_of_their_own_and_inherit() {
    let world = World::new().write(
        OUR_GLOBAL,
        json!({"agent": {
            "plan": {"toolCall": {"approval": {"deny": {"shell_command": {}}, "allow": {"grep": {}}}}},
            "careful": {"inherit": "plan", "maxSteps": 5, "toolCall": {"approval": {"ask": {"grep": {}}, "byDefault": "deny"}}},
            "loop": {"inherit": "loop"},
            "ring": {"inherit": "rong"}, "rong": {"inherit": "ring", "maxSteps": 9},
        }}),
    );
    let settings = world.settings();
    let careful = &settings.behaviors["careful"];
    assert_eq!(
        (targets(&careful.approval.deny), targets(&careful.approval.ask)),
        (vec!["shell_command"], vec!["grep"])
    );
    assert_eq!((careful.approval.by_default, careful.max_steps), (Some(Approval::Deny), Some(5)));
    assert_eq!(settings.behaviors["plan"].approval.by_default, None);
    assert_eq!(settings.behaviors["ring"].max_steps, Some(9));
}

#[test]
fn an_unknown_ancestor_is_reported() {
    let world = World::new().write(
        OUR_GLOBAL,
        json!({"agent": {"one": {"inherit": "plna"}, "two": {"inherit": "code"}, "three": {"inherit": "one"}}}),
    );
    let notices = world.resolve().notices;
    let about: Vec<_> = notices.iter().filter(|notice| notice.text.contains("names no behavior")).collect();
    assert!(matches!(about.as_slice(), [one] if one.text.contains("agent.one.inherit")), "{notices:?}");
}
