//! The approval function alone: rules, call and review in, decision out. Each row is a call and what is decided.

use std::path::PathBuf;

use config::{Approval, ApprovalRules, BlockingHook, HookMatcher, Origin as RuleOrigin, Rule};
use domain::host::Grants;
use domain::taint::Taint;
use domain::tool::{Review, ToolEffect, ToolSpec};
use domain::tool_call::Origin;
use engine::approval::{self, ApprovalDecision, Case, Decision, Remembered};
use serde_json::{Value, json};

use Decision::{Allow, Ask, Deny};

fn spec(name: &str, server: &str, effect: ToolEffect) -> ToolSpec {
    let origin = if server == "eca" { Origin::Native } else { Origin::Mcp };
    let (name, server) = (name.to_owned(), server.to_owned());
    ToolSpec { name, server, origin, description: String::new(), input_schema: json!({}), effect }
}

fn rule(target: &str, matchers: &[(&str, &str)]) -> Rule {
    let matcher = |(name, pattern): &(&str, &str)| ((*name).to_owned(), vec![(*pattern).to_owned()]);
    let args_matchers = matchers.iter().map(matcher).collect();
    Rule { target: target.to_owned(), args_matchers, origin: RuleOrigin::CommandLine }
}

/// One call with everything else as it is by default: a person can be asked, and nothing is trusted.
struct Call {
    rules: ApprovalRules,
    spec: ToolSpec,
    input: Value,
    review: Review,
    remembered: Remembered,
    read_only: bool,
    trust: bool,
    can_ask: bool,
    granted: Grants,
}

impl Call {
    fn new(spec: ToolSpec, input: Value) -> Self {
        let rules = ApprovalRules { by_default: Some(Approval::Ask), ..ApprovalRules::default() };
        let (review, remembered) = (Review::default(), Remembered::default());
        Self {
            rules,
            spec,
            input,
            review,
            remembered,
            read_only: false,
            trust: false,
            can_ask: true,
            granted: Grants::NONE,
        }
    }

    fn shell(line: &str) -> Self {
        let mut call =
            Self::new(spec("shell_command", "eca", ToolEffect::RunsCommands), json!({"command": line}));
        call.review.commands = line.split(" && ").map(str::to_owned).collect();
        call.review.keys = call.review.commands.clone();
        call.review.changes = true;
        call
    }

    fn read(path: &str) -> Self {
        let mut call = Self::new(spec("read_file", "eca", ToolEffect::Reads), json!({"path": path}));
        call.review.paths = vec![("path".to_owned(), [path.to_owned(), format!("/project/{path}")])];
        call.review.harmless = true;
        call
    }

    fn decide(&self) -> ApprovalDecision {
        approval::decide(&Case {
            rules: &self.rules,
            spec: &self.spec,
            input: &self.input,
            review: &self.review,
            remembered: &self.remembered,
            read_only: self.read_only,
            trust: self.trust,
            can_ask: self.can_ask,
            granted: self.granted,
            hook: None,
            taint: &Taint::default(),
        })
    }

    fn decision(&self) -> Decision {
        self.decide().decision
    }
}

#[test]
fn a_default_decides_where_no_rule_does() {
    for (by_default, harmless, expected) in [
        (None, true, Allow),
        (None, false, Ask),
        (Some(Approval::Ask), true, Allow),
        (Some(Approval::Ask), false, Ask),
        (Some(Approval::Allow), false, Allow),
        (Some(Approval::Deny), true, Deny),
    ] {
        let mut call = Call::shell("make");
        call.rules.by_default = by_default;
        call.review.harmless = harmless;
        assert_eq!(call.decision(), expected, "{by_default:?} {harmless}");
    }
    let mut call = Call::shell("make");
    call.review.must_ask = Some("It redirects.".to_owned());
    assert_eq!(call.decide().reason, "It redirects.");
}

#[test]
fn a_rule_is_about_a_tool_a_server_or_an_argument() {
    let shell = || Call::shell("git push origin main");
    let mcp = || Call::new(spec("query", "test-db", ToolEffect::Other), json!({"sql": "drop table x"}));
    let rows: &[(Call, Rule, bool)] = &[
        (shell(), rule("shell_command", &[]), true),
        (shell(), rule("eca__shell_command", &[]), true),
        (shell(), rule("eca", &[]), true),
        (shell(), rule("query", &[]), false),
        (shell(), rule("shell_command", &[("command", "git push.*")]), true),
        (shell(), rule("shell_command", &[("command", "git")]), false),
        (shell(), rule("shell_command", &[("command", "git push.*"), ("other", ".*")]), false),
        (mcp(), rule("test-db__query", &[]), true),
        (mcp(), rule("testDb__query", &[]), true),
        (mcp(), rule("test-db", &[]), true),
        // A bare name is a built-in tool's.
        (mcp(), rule("query", &[]), false),
        (mcp(), rule("test-db__query", &[("sql", "(?i)drop.*")]), true),
        (mcp(), rule("test-db__query", &[("sql", "select.*")]), false),
    ];
    for (call, rule, matches) in rows {
        let with = |list: fn(&mut ApprovalRules) -> &mut Vec<Rule>| {
            let mut rules = ApprovalRules { by_default: Some(Approval::Ask), ..ApprovalRules::default() };
            list(&mut rules).push(rule.clone());
            Call { rules, review: call.review.clone(), ..Call::new(call.spec.clone(), call.input.clone()) }
        };
        let denied = with(|rules| &mut rules.deny).decision();
        assert_eq!(denied, if *matches { Deny } else { Ask }, "deny {rule:?}");
        let allowed = with(|rules| &mut rules.allow).decision();
        assert_eq!(allowed, if *matches { Allow } else { Ask }, "allow {rule:?}");
        let mut asked = with(|rules| &mut rules.ask);
        asked.rules.by_default = Some(Approval::Allow);
        assert_eq!(asked.decision(), if *matches { Ask } else { Allow }, "ask {rule:?}");
    }
}

#[test]
fn deny_beats_ask_and_ask_beats_allow() {
    let broad = || rule("shell_command", &[]);
    let narrow = || rule("shell_command", &[("command", "make.*")]);
    let decide = |deny: Vec<Rule>, ask: Vec<Rule>, allow: Vec<Rule>| {
        let mut call = Call::shell("make test");
        (call.rules.deny, call.rules.ask, call.rules.allow) = (deny, ask, allow);
        call.decision()
    };
    assert_eq!(decide(vec![broad()], vec![narrow()], vec![narrow()]), Deny);
    assert_eq!(decide(vec![narrow()], vec![], vec![broad()]), Deny);
    assert_eq!(decide(vec![], vec![narrow()], vec![narrow()]), Ask);
    // A rule with arguments says more than one without.
    assert_eq!(decide(vec![], vec![broad()], vec![narrow()]), Allow);
    assert_eq!(decide(vec![], vec![broad()], vec![broad()]), Ask);
    assert_eq!(decide(vec![], vec![], vec![broad()]), Allow);
    let mut call = Call::shell("make test > log");
    call.rules.allow = vec![narrow()];
    call.review.must_ask = Some("It redirects.".to_owned());
    assert_eq!(call.decision(), Ask, "a pattern cannot know what else a line does");
}

#[test]
fn an_allow_pattern_covers_whole_words() {
    for (pattern, line, expected) in [
        ("git status.*", "git status", Allow),
        ("git status.*", "git status --short", Allow),
        ("git status.*", "git statusx", Ask),
        ("git status.+", "git status --short", Allow),
        ("git status.+", "git status", Ask),
        ("git status.+", "git statusx", Ask),
        ("git status[^;]*", "git status -s", Allow),
        ("git status[^;]*", "git statusx", Ask),
        ("git status[^;]+", "git statusx", Ask),
        ("git status[^;]", "git statusx", Allow),
        ("git (log|status).*", "git log -1", Allow),
        ("git (log|status).*", "git logx", Ask),
        ("ls_.*", "ls_x", Ask),
        ("make .*", "make test", Allow),
        ("make -.*", "make -j2", Allow),
        // An escape is a character of its own: the star belongs to the dot behind it.
        ("a\\d.*", "a1b", Allow),
        ("a\\\\.*", "a\\b", Allow),
        ("git.*", "git", Allow),
        ("[^a]*", "x", Allow),
        (".*", "anything at all", Allow),
        ("[", "anything", Ask),
    ] {
        let mut call = Call::shell(line);
        call.rules.allow = vec![rule("shell_command", &[("command", pattern)])];
        assert_eq!(call.decision(), expected, "{pattern} on {line}");
        // A pattern that forbids is taken as it is written.
        let mut call = Call::shell("git statusx");
        call.rules.deny = vec![rule("shell_command", &[("command", "git status.*")])];
        assert_eq!(call.decision(), Deny);
    }
}

#[test]
fn one_command_is_enough_to_forbid_and_all_are_needed_to_allow() {
    let decide = |list: fn(&mut ApprovalRules) -> &mut Vec<Rule>, pattern: &str, line: &str| {
        let mut call = Call::shell(line);
        list(&mut call.rules).push(rule("shell_command", &[("command", pattern)]));
        call.decision()
    };
    let allow: fn(&mut ApprovalRules) -> &mut Vec<Rule> = |rules| &mut rules.allow;
    let deny: fn(&mut ApprovalRules) -> &mut Vec<Rule> = |rules| &mut rules.deny;
    assert_eq!(decide(deny, "rm .*", "make && rm x"), Deny);
    assert_eq!(decide(deny, "rm .*", "make && RM x"), Deny, "the same program on some file systems");
    assert_eq!(decide(deny, "rm .*", "make && echo rm"), Ask);
    assert_eq!(decide(deny, "[", "anything"), Deny, "what cannot be compared forbids all");
    assert_eq!(decide(allow, "make.*", "make && rm x"), Ask);
    assert_eq!(decide(allow, "(make|rm) .*", "make x && rm x"), Allow);
    assert_eq!(decide(allow, ".* && rm x", "make && rm x"), Ask, "the line matches, its commands do not");
    // Subcommands alone never allow a line.
    let mut call = Call::shell("git push --force");
    call.review.subcommands = vec!["git push".to_owned()];
    call.rules.allow = vec![rule("shell_command", &[("command", "git push")])];
    assert_eq!(call.decision(), Ask);
    call.rules.deny = vec![rule("shell_command", &[("command", "git push")])];
    assert_eq!(call.decision(), Deny);
}

#[test]
fn a_path_is_what_it_leads_to() {
    let through_link = || {
        let mut call = Call::read("link/key");
        call.review.paths =
            vec![("path".to_owned(), ["secret/key".to_owned(), "/project/secret/key".to_owned()])];
        call
    };
    for (pattern, expected) in [
        ("secret/.*", Deny),
        ("SECRET/.*", Deny),
        ("/project/secret/.*", Deny),
        ("link/.*", Deny),
        ("src/.*", Allow),
    ] {
        let mut call = through_link();
        call.rules.deny = vec![rule("read_file", &[("path", pattern)])];
        assert_eq!(call.decision(), expected, "{pattern}");
    }
    let mut call = through_link();
    call.review.harmless = false;
    call.rules.allow = vec![rule("read_file", &[("path", "link/.*")])];
    assert_eq!(call.decision(), Ask, "how it is written allows nothing");
    call.rules.allow = vec![rule("read_file", &[("path", "secret/.*")])];
    assert_eq!(call.decision(), Allow);
    call.rules.allow = vec![rule("read_file", &[("path", "SECRET/.*")])];
    assert_eq!(call.decision(), Ask, "other letters may be another file");
}

/// A path that may not be read may not be read by any tool.
#[test]
fn a_forbidden_path_is_forbidden_to_every_tool() {
    for target in ["read_file", "eca__read_file", "eca"] {
        let mut grep = Call::new(spec("grep", "eca", ToolEffect::Reads), json!({"pattern": "KEY"}));
        grep.review.harmless = true;
        grep.rules.deny = vec![rule(target, &[("path", "\\.env")])];
        assert_eq!(grep.decision(), Allow);
        grep.review.paths = vec![("folder".to_owned(), [".env".to_owned(), "/project/.env".to_owned()])];
        let decided = grep.decide();
        assert_eq!(decided.decision, Deny, "{target}");
        assert!(decided.reason.contains("Forbidden by the argument rule for"), "{}", decided.reason);
        assert_eq!(approval::forbidden_paths(&grep.rules), ["\\.env"]);

        let mut shell = Call::shell("cat .env");
        shell.rules = grep.rules.clone();
        assert_eq!(shell.decision(), Ask);
        shell.review.read_paths = vec![[".env".to_owned(), "/project/.env".to_owned()]];
        assert_eq!(shell.decision(), Deny, "{target}");
    }
    for (target, argument) in [("shell_command", "path"), ("read_file", "offset"), ("other", "path")] {
        let rules =
            ApprovalRules { deny: vec![rule(target, &[(argument, "x")])], ..ApprovalRules::default() };
        assert!(approval::forbidden_paths(&rules).is_empty(), "{target} {argument}");
    }
    let mut broken = Call::shell("cat a");
    broken.rules.deny = vec![rule("read_file", &[("path", "[")])];
    assert_eq!(broken.decision(), Ask, "the line names no path");
    broken.review.read_paths = vec![["a".to_owned(), "/project/a".to_owned()]];
    assert_eq!(broken.decision(), Deny, "a pattern that cannot be compared forbids everything");
}

/// A line that is not understood may do what a rule forbids: neither an allow rule nor trust lets it run.
#[test]
fn a_line_that_may_evade_a_rule_is_asked() {
    let decide = |deny: Vec<Rule>, unclear: bool, reads_unnamed: bool, trust: bool, can_ask: bool| {
        let mut call = Call::shell("x=touch; $x P");
        call.rules.allow = vec![rule("shell_command", &[])];
        call.rules.deny = deny;
        (call.review.unclear, call.review.reads_unnamed) = (unclear, reads_unnamed);
        (call.trust, call.can_ask) = (trust, can_ask);
        call.decision()
    };
    let on_commands = || vec![rule("shell_command", &[("command", "touch.*")])];
    let on_paths = || vec![rule("read_file", &[("path", "\\.env")])];
    let elsewhere = || vec![rule("write_file", &[("content", "x")])];
    for (deny, unclear, reads_unnamed, expected) in [
        (vec![], true, true, Allow),
        (elsewhere(), true, true, Allow),
        (vec![rule("other", &[("command", "touch.*")])], true, false, Allow),
        (vec![rule("shell_command", &[("background", "true")])], true, false, Allow),
        (on_commands(), false, false, Allow),
        (on_commands(), false, true, Allow),
        (on_commands(), true, false, Ask),
        (on_paths(), false, false, Allow),
        (on_paths(), true, false, Ask),
        (on_paths(), false, true, Ask),
    ] {
        let row = format!("{deny:?} {unclear} {reads_unnamed}");
        assert_eq!(decide(deny.clone(), unclear, reads_unnamed, false, true), expected, "{row}");
        assert_eq!(decide(deny.clone(), unclear, reads_unnamed, true, true), expected, "trusted: {row}");
        let unasked = if expected == Ask { Deny } else { expected };
        assert_eq!(decide(deny, unclear, reads_unnamed, true, false), unasked, "nobody there: {row}");
    }
    // Only shell lines can hide anything.
    let mut call = Call::read("a");
    call.rules.deny = on_paths();
    (call.review.unclear, call.review.reads_unnamed) = (true, true);
    assert_eq!(call.decision(), Allow);
}

/// A hook that may forbid calls and cannot run makes its calls ask, trusted chat or not.
#[test]
fn a_hook_that_cannot_run_is_about_its_own_calls() {
    let pattern = |pattern: &str| HookMatcher::Pattern(pattern.to_owned());
    for (matcher, expected) in [
        (HookMatcher::All, Ask),
        (pattern("eca__shell.*"), Ask),
        (pattern("eca__read.*"), Allow),
        (pattern("["), Ask),
        (HookMatcher::Rules(vec![rule("shell_command", &[("command", "make.*")])]), Ask),
        (HookMatcher::Rules(vec![rule("shell_command", &[("command", "rm.*")])]), Allow),
    ] {
        let mut call = Call::shell("make");
        call.trust = true;
        let row = format!("{matcher:?}");
        call.rules.blocking_hooks =
            vec![BlockingHook { name: "check".into(), matcher, origin: RuleOrigin::CommandLine }];
        assert_eq!(call.decision(), expected, "{row}");
    }
}

#[test]
fn trust_and_approve_answer_only_what_a_person_would_be_asked() {
    let trusted = |change: fn(&mut Call)| {
        let mut call = Call::shell("make");
        call.trust = true;
        change(&mut call);
        call.decision()
    };
    assert_eq!(trusted(|_| {}), Allow);
    assert_eq!(trusted(|call| call.review.outside = vec![PathBuf::from("/etc/x")]), Allow);
    assert_eq!(trusted(|call| call.rules.ask = vec![rule("eca", &[])]), Allow);
    assert_eq!(trusted(|call| call.rules.deny = vec![rule("eca", &[])]), Deny);
    assert_eq!(trusted(|call| call.rules.closed = Some("no JSON".to_owned())), Ask);
    assert_eq!(trusted(|call| call.review.grants = vec!["It may use ssh.".to_owned()]), Ask);
    assert_eq!(trusted(|call| call.read_only = true), Deny);

    let granted = |granted: Grants, effect: ToolEffect, server: &str, outside: bool| {
        let mut call = Call::new(spec("tool", server, effect), json!({}));
        call.granted = granted;
        call.can_ask = false;
        call.review.outside = outside.then(|| PathBuf::from("/etc/x")).into_iter().collect();
        let decided = call.decide();
        assert_eq!(decided.unasked, decided.decision == Deny);
        decided.decision
    };
    use ToolEffect::{Other, Previews, Reads, RunsCommands, UsesNetwork, WritesFiles};
    for effect in [Reads, Previews, WritesFiles, UsesNetwork, RunsCommands, Other] {
        assert_eq!(granted(Grants::NONE, effect, "eca", false), Deny, "{effect:?}");
        assert_eq!(granted(Grants::ALL, effect, "eca", true), Allow, "{effect:?}");
        let reads = matches!(effect, Reads | Previews);
        let expected = |allowed: bool| if allowed { Allow } else { Deny };
        assert_eq!(granted(Grants::READ, effect, "eca", false), expected(reads), "{effect:?}");
        assert_eq!(granted(Grants::READ, effect, "eca", true), Deny, "{effect:?}");
        assert_eq!(
            granted(Grants::EDIT, effect, "eca", false),
            expected(reads || effect == WritesFiles),
            "{effect:?}"
        );
        let network = granted(Grants::NETWORK, effect, "eca", false);
        assert_eq!(network, expected(effect == UsesNetwork), "{effect:?}");
        assert_eq!(granted(Grants::EDIT, effect, "eca", true), Deny, "{effect:?}");
        assert_eq!(granted(Grants::EDIT, effect, "server", false), expected(reads), "{effect:?}");
    }
}

#[test]
fn what_is_remembered_is_exactly_what_was_asked() {
    let mut call = Call::shell("npm test && make");
    assert_eq!(approval::rememberable(&call.spec, &call.input, &call.review), ["npm test", "make"]);
    call.remembered.add(&approval::rememberable(&call.spec, &call.input, &call.review));
    assert_eq!((call.decision(), call.remembered.keys().len()), (Allow, 2));
    let remembered = call.remembered;
    for (line, expected) in [("make", Allow), ("npm test", Allow), ("npm test && rm x", Ask), ("npm", Ask)] {
        let call = Call { remembered: remembered.clone(), ..Call::shell(line) };
        assert_eq!(call.decision(), expected, "{line}");
    }
    // A line that must be asked is neither remembered nor allowed by what is.
    let mut call = Call { remembered, ..Call::shell("make") };
    call.review.must_ask = Some("It redirects.".to_owned());
    assert_eq!(call.decision(), Ask);
    assert!(approval::rememberable(&call.spec, &call.input, &call.review).is_empty());
    call.remembered = Remembered::default();
    call.remembered.add(&approval::rememberable(&call.spec, &call.input, &call.review));
    call.review.must_ask = None;
    assert_eq!(call.decision(), Ask);
    // A shell line without a key is never remembered; a tool of a server is, with the arguments that decide.
    call.review.keys.clear();
    call.remembered.add(&approval::rememberable(&call.spec, &call.input, &call.review));
    assert_eq!(call.decision(), Ask);
    assert!(approval::rememberable(&call.spec, &call.input, &call.review).is_empty());
    let mut tool = Call::new(spec("query", "db", ToolEffect::Other), json!({}));
    assert_eq!(approval::rememberable(&tool.spec, &tool.input, &tool.review), ["db__query"]);
    tool.remembered.add(&approval::rememberable(&tool.spec, &tool.input, &tool.review));
    assert_eq!(tool.decision(), Allow);
    tool.remembered.deny(&tool.spec);
    assert_eq!(tool.decision(), Deny, "a refusal for the session stands");
    let mut other = Call::new(spec("other", "db", ToolEffect::Other), json!({}));
    other.remembered = tool.remembered;
    assert_eq!(other.decision(), Ask);
}

#[test]
fn a_remembered_call_of_a_server_covers_its_target_alone() {
    let write = |path: &str, text: &str| {
        Call::new(spec("write", "files", ToolEffect::Other), json!({"path": path, "text": text}))
    };
    let mut call = write("a.txt", "x");
    let keys = approval::rememberable(&call.spec, &call.input, &call.review);
    assert_eq!(keys, ["files__write path=\"a.txt\" …"]);
    call.remembered.add(&approval::rememberable(&call.spec, &call.input, &call.review));
    for (path, text, expected) in [("a.txt", "y", Allow), ("b.txt", "x", Ask), ("../a.txt", "x", Ask)] {
        let other = Call { remembered: call.remembered.clone(), ..write(path, text) };
        assert_eq!(other.decision(), expected, "{path}");
    }
}

#[test]
fn a_remembered_path_outside_is_remembered_with_its_call() {
    let edit = |outside: &[&str]| {
        let mut call = Call::new(spec("edit_file", "eca", ToolEffect::WritesFiles), json!({}));
        call.review.outside = outside.iter().map(PathBuf::from).collect();
        call
    };
    let mut call = edit(&["/etc/a"]);
    assert_eq!(approval::rememberable(&call.spec, &call.input, &call.review), ["edit_file /etc/a"]);
    call.remembered.add(&approval::rememberable(&call.spec, &call.input, &call.review));
    for (outside, expected) in
        [(&["/etc/a"][..], Allow), (&["/etc/b"], Ask), (&["/etc/a", "/etc/b"], Ask), (&[], Ask)]
    {
        let other = Call { remembered: call.remembered.clone(), ..edit(outside) };
        assert_eq!(other.decision(), expected, "{outside:?}");
    }
    let inside = edit(&[]);
    let keys = approval::rememberable(&inside.spec, &inside.input, &inside.review);
    assert_eq!(keys, ["edit_file in this workspace"]);

    // A command and a path that were allowed apart are not allowed together.
    let line = |text: &str, outside: &[&str]| {
        let mut call = Call::shell(text);
        call.review.outside = outside.iter().map(PathBuf::from).collect();
        call
    };
    let mut remembered = Remembered::default();
    for call in [line("make", &[]), line("tar x", &["/other"])] {
        remembered.add(&approval::rememberable(&call.spec, &call.input, &call.review));
    }
    for (text, outside, expected) in [
        ("make", &[][..], Allow),
        ("tar x", &["/other"], Allow),
        ("make", &["/other"], Ask),
        ("tar x", &[], Ask),
    ] {
        let call = Call { remembered: remembered.clone(), ..line(text, outside) };
        assert_eq!(call.decision(), expected, "{text} {outside:?}");
    }
}

#[test]
fn reasons_name_the_rule_and_the_pattern() {
    let mut call = Call::shell("git push origin main");
    let mut two = rule("shell_command", &[("command", "git fetch.*")]);
    two.args_matchers[0].1.push("git push.*".to_owned());
    call.rules.deny = vec![two];
    let decided = call.decide();
    assert!(decided.reason.contains("command = git push.*"), "{}", decided.reason);
    assert!(decided.message_for_model().contains(&decided.reason));
    call.rules.deny = vec![rule("eca", &[])];
    assert!(call.decide().reason.starts_with("Forbidden by the rule for eca ("), "{}", call.decide().reason);

    let mut outside = Call::read("../x");
    outside.review.outside = vec![PathBuf::from("/home/x")];
    assert_eq!(outside.decide().reason, "/home/x is outside the workspace.");
    outside.review.must_ask = Some("It is a device.".to_owned());
    assert_eq!(outside.decide().reason, "It is a device.");
    outside.review.keys = vec!["key".to_owned()];
    assert_eq!(outside.decide().reason, "/home/x is outside the workspace.");
    outside.can_ask = false;
    let refused = outside.decide();
    assert!(
        refused.unasked && refused.decision == Deny && refused.reason.ends_with("Nobody can be asked here.")
    );
}

/// A sandbox that contains a call takes the place of a person, and of nothing else.
#[test]
fn a_contained_call_is_allowed_where_a_person_would_be_asked_by_default() {
    let contained = |change: &dyn Fn(&mut Call)| {
        let mut call = Call::shell("make");
        call.review.contained = true;
        change(&mut call);
        let ApprovalDecision { decision, contained, .. } = call.decide();
        (decision, contained)
    };
    assert_eq!(contained(&|_| ()), (Allow, true));
    assert_eq!(contained(&|call| call.review.must_ask = Some("It writes to a.".to_owned())), (Allow, true));
    assert_eq!(contained(&|call| call.can_ask = false), (Deny, false));
    let unattended = |call: &mut Call| {
        call.can_ask = false;
        call.granted = Grants::CONTAINED;
    };
    assert_eq!(contained(&unattended), (Allow, true));
    for stricter in [
        &(|call: &mut Call| call.review.contained = false) as &dyn Fn(&mut Call),
        &|call: &mut Call| call.rules.deny = vec![rule("eca", &[])],
        &|call: &mut Call| call.rules.ask = vec![rule("eca", &[])],
        &|call: &mut Call| call.rules.closed = Some("no JSON".to_owned()),
        &|call: &mut Call| call.review.grants = vec!["It may use ssh.".to_owned()],
    ] {
        let decided = contained(&|call| {
            unattended(call);
            stricter(call);
        });
        assert_eq!(decided, (Deny, false));
    }
    // Whoever allowed it by another way did not mean the stricter sandbox.
    assert_eq!(contained(&|call| call.trust = true), (Allow, false));
    assert_eq!(contained(&|call| call.granted = Grants::ALL), (Allow, false));
    assert_eq!(contained(&|call| call.rules.allow.push(rule("shell_command", &[]))), (Allow, false));
    assert_eq!(contained(&|call| call.rules.by_default = Some(Approval::Allow)), (Allow, false));
    for change in [
        &(|call: &mut Call| call.rules.ask.push(rule("shell_command", &[]))) as &dyn Fn(&mut Call),
        &|call| call.rules.ask.push(rule("shell_command", &[("command", "make.*")])),
        &|call| call.rules.closed = Some("broken".to_owned()),
        &|call| call.review.grants = vec!["It may use ssh.".to_owned()],
        &|call| call.review.outside = vec![PathBuf::from("/etc/passwd")],
        // A program could read what no tool may.
        &|call| call.rules.deny.push(rule("read_file", &[("path", ".*\\.env")])),
        &|call| call.review.contained = false,
    ] {
        assert_eq!(contained(change), (Ask, false));
    }
    assert_eq!(contained(&|call| call.read_only = true), (Deny, false));
    assert_eq!(contained(&|call| call.rules.by_default = Some(Approval::Deny)), (Deny, false));
}
