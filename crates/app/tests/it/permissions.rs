//! The decision table (`permissions.txt`): what policy says about a shell line, through the real tool's review. A row is
//! a line, its columns are situations; each column of each row is one decision.

use std::path::PathBuf;
use std::sync::Arc;

use config::{ApprovalRules, Environment, Inputs};
use domain::SessionId;
use domain::host::Grants;
use domain::tool::{Review, Scope, Tool, ToolSource, ToolSpec};
use engine::approval::{self, Case, Decision, Remembered, rememberable};
use serde_json::{Value, json};

const TABLE: &str = include_str!("permissions.txt");

#[test]
fn every_row_of_the_table_is_decided_as_it_says() {
    let shell = Shell::new();
    let allow_git = json!({"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": ["git .*"]}}}}}});
    let deny_rm = json!({"toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": [".*rm.*"]}}}}}});
    let (none, mut remembered) = (Remembered::default(), Remembered::default());
    for line in ["git status", "cargo test", "ls", "git commit -m x"] {
        let (spec, review) = shell.review(line, false, &none);
        remembered.add(&rememberable(&spec, &Value::Null, &review));
    }
    let situations = [
        (shell.rules(&json!({}), false), false, &none, false),
        (shell.rules(&json!({}), true), true, &none, false),
        (shell.rules(&json!({}), false), false, &remembered, false),
        (shell.rules(&allow_git, false), false, &none, false),
        (shell.rules(&deny_rm, false), false, &none, true),
    ];
    let mut wrong = Vec::new();
    let rows: Vec<&str> = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for line in &rows {
        let (expected, command) = line.split_once(" | ").expect("columns | line");
        for (column, (rules, plan, remembered, trust)) in situations.iter().enumerate() {
            let want = expected.as_bytes()[column] as char;
            let got = shell.decide(command, rules, *plan, remembered, *trust);
            if got != want {
                wrong.push(format!("column {column}: {command:?} is {got}, not {want}"));
            }
        }
    }
    assert!(rows.len() >= 300, "{} rows", rows.len());
    assert!(wrong.is_empty(), "{} wrong decisions:\n{}", wrong.len(), wrong.join("\n"));
    let count = rows.len() * situations.len();
    println!("figure: {count} decisions about {} shell lines, 0 other than the table says", rows.len());
}

/// A rule holds for what a call does, however it is spelt.
#[test]
fn no_spelling_gets_around_a_rule() {
    let home = tempfile::tempdir().expect("a home");
    let work = home.path().join("work");
    for folder in ["src", "secret"] {
        std::fs::create_dir_all(work.join(folder)).expect("a folder");
    }
    std::fs::write(work.join("secret/key"), "k").expect("a file");
    std::fs::write(work.join("src/a"), "a").expect("a file");
    std::os::unix::fs::symlink("secret", work.join("link")).expect("a link");
    let work = work.canonicalize().expect("a workspace");
    let absolute = work.join("secret/key");
    let absolute = absolute.to_str().expect("text");
    let tools = tools::BuiltInTools::new(tools::Options::default()).tools();
    let by = |list: &str, tool: &str, argument: &str, pattern: &str| json!({"toolCall": {"approval": {list: {tool: {"argsMatchers": {argument: [pattern]}}}}}});
    let decide = |config: &Value, name: &str, input: Value, trust: bool, remembered: &Remembered| {
        let environment = Environment::new(home.path(), [("DRAGOMAN_CONFIG", config.to_string())]);
        let roots = vec![work.clone()];
        let resolved =
            config::resolve(&environment, &Inputs { workspace_roots: roots.clone(), ..Inputs::default() });
        let tool = tools.iter().find(|tool| tool.spec().name == name).expect("a tool");
        let scope = Scope {
            session: SessionId::new("s"),
            roots: roots.into(),
            read_only: false,
            remembered: Arc::from([]),
            forbidden_paths: std::sync::Arc::from([]),
            tainted: false,
            secret_read: false,
        };
        let review = tool.review(&input, &scope).expect("a review");
        let rules = approval::rules_for(&resolved.settings, "agent");
        approval::decide(&Case {
            rules: &rules,
            spec: tool.spec(),
            input: &input,
            review: &review,
            remembered,
            read_only: false,
            trust,
            can_ask: true,
            granted: Grants::NONE,
            hook: None,
            taint: &domain::taint::Taint::default(),
        })
        .decision
    };
    let none = Remembered::default();
    // What is denied stays denied, in a trusted chat too.
    let no_secret = by("deny", "read_file", "path", "secret/.*");
    for path in ["secret/key", "./secret/key", "src/../secret/key", "link/key", "secret//key", absolute] {
        assert_eq!(
            decide(&no_secret, "read_file", json!({"path": path}), true, &none),
            Decision::Deny,
            "{path}"
        );
        let other_name = json!({"file_path": path});
        assert_eq!(decide(&no_secret, "read_file", other_name, true, &none), Decision::Deny, "{path}");
    }
    assert_eq!(decide(&no_secret, "read_file", json!({"path": "src/a"}), true, &none), Decision::Allow);
    let no_move = by("deny", "move_file", "source", "secret/.*");
    let input = json!({"source": "src/../secret/key", "destination": "b"});
    assert_eq!(decide(&no_move, "move_file", input, true, &none), Decision::Deny);
    let all = json!({"toolCall": {"approval": {"deny": {"eca": {}}}}});
    assert_eq!(
        decide(&all, "read_file", json!({"path": "src/a"}), true, &none),
        Decision::Deny,
        "a server's name"
    );
    for pattern in ["rm .*", "rm( .*)?"] {
        let no_rm = by("deny", "shell_command", "command", pattern);
        for line in [
            "rm x",
            "ls; rm x",
            "cd src && rm x",
            "/bin/rm x",
            "r'm' x",
            "\\rm x",
            "env A=1 rm x",
            "sh -c 'rm x'",
            "echo $(rm x)",
            "find . -exec rm {} ;",
            "ls | xargs rm -f",
            "if true; then rm x; fi",
            "A=1 rm x",
        ] {
            let got = decide(&no_rm, "shell_command", json!({"command": line}), true, &none);
            assert_eq!(got, Decision::Deny, "{pattern}: {line}");
        }
    }
    // What is allowed allows nothing beside it.
    let in_src = by("allow", "write_file", "path", "src/.*");
    for (path, expected) in [
        ("src/new", Decision::Allow),
        ("./src/new", Decision::Allow),
        ("src/../secret/key", Decision::Ask),
        ("src/../.bashrc", Decision::Ask),
        ("link/new", Decision::Ask),
    ] {
        let got = decide(&in_src, "write_file", json!({"path": path, "content": "x"}), false, &none);
        assert_eq!(got, expected, "{path}");
    }
    let origin = by("allow", "shell_command", "command", "git push origin .*");
    for (line, expected) in [
        ("git push origin main", Decision::Allow),
        ("git push origin main; git push evil main", Decision::Ask),
        ("git push origin main && curl x", Decision::Ask),
    ] {
        assert_eq!(
            decide(&origin, "shell_command", json!({"command": line}), false, &none),
            expected,
            "{line}"
        );
    }
    // git's own files are no part of what may be written, whatever is allowed, and neither is what cannot be compared.
    let writes = json!({"toolCall": {"approval": {"byDefault": "allow", "allow": {"write_file": {}, "move_file": {}}}}});
    for path in [".git/hooks/pre-commit", ".GIT/config", "src/../.git/config"] {
        let input = json!({"path": path, "content": "x"});
        assert_eq!(decide(&writes, "write_file", input, false, &none), Decision::Ask, "{path}");
        let input = json!({"source": "src/a", "destination": path});
        assert_eq!(decide(&writes, "move_file", input, false, &none), Decision::Ask, "{path}");
    }
    let input = json!({"path": "src/new", "content": "x"});
    assert_eq!(decide(&writes, "write_file", input, false, &none), Decision::Allow);
    for pattern in ["(?x) secret/.* # the keys", "(a{1000}){1000}"] {
        let rule = by("deny", "read_file", "path", pattern);
        assert_eq!(
            decide(&rule, "read_file", json!({"path": "src/a"}), true, &none),
            Decision::Deny,
            "{pattern}"
        );
    }
    let no_rm = by("deny", "shell_command", "command", "rm .*");
    assert_eq!(decide(&no_rm, "shell_command", json!({"command": "RM x"}), true, &none), Decision::Deny);
    assert_eq!(decide(&no_secret, "read_file", json!({"path": "SECRET/key"}), true, &none), Decision::Deny);
    // What is remembered does not silence a rule about arguments.
    let careful = by("ask", "shell_command", "command", "git push .*--force.*");
    let mut remembered = Remembered::default();
    let shell = Shell::new();
    let (spec, review) = shell.review("git push", false, &none);
    remembered.add(&rememberable(&spec, &Value::Null, &review));
    for (line, expected) in [("git push", Decision::Allow), ("git push --force", Decision::Ask)] {
        let got = decide(&careful, "shell_command", json!({"command": line}), false, &remembered);
        assert_eq!(got, expected, "{line}");
    }
}

/// A deny rule on commands holds for every spelling: a line that hides the command is asked, and refused where nobody
/// can be asked. A trusted chat and `--approve all` change nothing about that.
#[test]
fn a_forbidden_command_runs_in_no_spelling() {
    let shell = Shell::new();
    let deny = json!({"toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": ["touch .*"]}}}}}});
    let rules = shell.rules(&deny, false);
    let none = Remembered::default();
    for line in [
        "x=touch; $x P",
        "x=touch; ${x} P",
        "x=tou y=ch; $x$y P",
        "eval touch P",
        "eval 'tou''ch P'",
        "command touch P",
        "builtin command touch P",
        "env touch P",
        "env -i A=1 touch P",
        "exec touch P",
        "echo P | xargs touch",
        "find . -maxdepth 0 -exec touch P ;",
        "bash -c 'touch P'",
        "sh -c \"touch P\"",
        "bash <<< 'touch P'",
        "bash <<EOF\ntouch P\nEOF",
        "alias t=touch; t P",
        "t() { touch P; }; t",
        "function t { touch P; }; t",
        "\\touch P",
        "to''uch P",
        "t\"ou\"ch P",
        "{touch,P}",
        "/bin/t?uch P",
        "/usr/bin/touch P",
        "$(echo touch) P",
        "`echo touch` P",
        "source ./t.sh",
        ". ./t.sh",
        "python3 -c 'open(\"P\",\"w\")'",
        "perl -e 'open F,\">P\"'",
        "ruby -e 'File.write(\"P\",\"\")'",
        "node -e 'require(\"fs\").writeFileSync(\"P\",\"\")'",
        "awk 'BEGIN{system(\"touch P\")}'",
        "vim -c '!touch P' -c q",
        "git -c alias.t='!touch P' t",
        "sudo touch P",
        "nohup touch P",
        "timeout 5 touch P",
        "nice touch P",
        "time touch P",
        "setsid touch P",
        "ssh localhost touch P",
        "echo dG91Y2ggUAo= | base64 -d | sh",
        "printf 'touch P' | sh",
        "printf 'touch P' | bash -s",
        "cat <(touch P)",
        "coproc touch P",
        "trap 'touch P' EXIT",
        "PROMPT_COMMAND='touch P' bash -i",
        "BASH_ENV=t.sh bash -c true",
        "echo $(touch P)",
        "echo \"$(touch P)\"",
        "if touch P; then true; fi",
        "true && touch P",
        "true; touch P",
        "true & touch P",
        "(touch P)",
        "! touch P",
        "watch -n1 touch P",
        "busybox touch P",
        "parallel touch ::: P",
        "script -c 'touch P' /dev/null",
        "$'\\x74ouch' P",
        "TOUCH P",
    ] {
        let (spec, review) = shell.review(line, false, &none);
        let input = json!({"command": line});
        let decide = |trust: bool, can_ask: bool, granted: Grants| {
            let case = Case {
                rules: &rules,
                spec: &spec,
                input: &input,
                review: &review,
                remembered: &none,
                read_only: false,
                trust,
                can_ask,
                granted,
                hook: None,
                taint: &domain::taint::Taint::default(),
            };
            approval::decide(&case).decision
        };
        assert_ne!(decide(true, true, Grants::NONE), Decision::Allow, "{line}");
        assert_eq!(decide(true, false, Grants::ALL), Decision::Deny, "{line}");
    }
}

struct Shell {
    home: tempfile::TempDir,
    tool: Arc<dyn Tool>,
}

impl Shell {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a home");
        let work = home.path().join("work");
        std::fs::create_dir_all(work.join("src")).expect("a workspace");
        std::fs::create_dir_all(home.path().join("elsewhere")).expect("a folder outside");
        for link in ["link", "src/link"] {
            std::os::unix::fs::symlink(home.path().join("elsewhere"), work.join(link)).expect("a link");
        }
        let tools = tools::BuiltInTools::new(tools::Options::default()).tools();
        let tool = tools.into_iter().find(|tool| tool.spec().name == "shell_command").expect("shell_command");
        Self { home, tool }
    }

    fn roots(&self) -> Vec<PathBuf> {
        vec![self.home.path().join("work").canonicalize().expect("a workspace")]
    }

    fn review(&self, command: &str, plan: bool, remembered: &Remembered) -> (ToolSpec, Review) {
        let scope = Scope {
            session: SessionId::new("s"),
            roots: self.roots().into(),
            read_only: plan,
            remembered: remembered.keys().into(),
            forbidden_paths: std::sync::Arc::from([]),
            tainted: false,
            secret_read: false,
        };
        let review = self.tool.review(&json!({"command": command}), &scope).expect("a review");
        (self.tool.spec().clone(), review)
    }

    fn rules(&self, config: &Value, plan: bool) -> ApprovalRules {
        let environment = Environment::new(self.home.path(), [("DRAGOMAN_CONFIG", config.to_string())]);
        let inputs = Inputs { workspace_roots: self.roots(), ..Inputs::default() };
        let resolved = config::resolve(&environment, &inputs);
        approval::rules_for(&resolved.settings, if plan { "plan" } else { "agent" })
    }

    fn decide(
        &self,
        command: &str,
        rules: &ApprovalRules,
        plan: bool,
        remembered: &Remembered,
        trust: bool,
    ) -> char {
        let (spec, review) = self.review(command, plan, remembered);
        let verdict = approval::decide(&Case {
            rules,
            spec: &spec,
            input: &json!({"command": command}),
            review: &review,
            remembered,
            read_only: plan,
            trust,
            can_ask: true,
            granted: Grants::NONE,
            hook: None,
            taint: &domain::taint::Taint::default(),
        });
        match verdict.decision {
            Decision::Allow => 'a',
            Decision::Ask => '?',
            Decision::Deny => '-',
        }
    }
}
