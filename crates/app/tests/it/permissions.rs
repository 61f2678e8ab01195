//! The decision table: what policy says about a call, through the real tools' reviews. A row is a line of a shell or a
//! call, and its columns are situations; each column of each row is one decision.

use std::path::PathBuf;
use std::sync::Arc;

use config::{Environment, Inputs};
use domain::SessionId;
use domain::host::Grants;
use domain::tool::{Review, Scope, Tool, ToolSource, ToolSpec};
use engine::approval::{self, Case, Decision, Remembered};
use serde_json::{Value, json};

/// `a` allow, `?` ask, `-` deny. Columns: agent · plan · after `git status`, `cargo test` and `ls` were remembered ·
/// with the rule "allow git .*" · with the rule "deny .*rm.*" in a trusted chat.
const SHELL: &str = r#"
aaaaa | ls
aaaaa | ls -la src
aaaaa | cat README.md
aaaaa | head -n 5 README.md
aaaaa | wc -l README.md
aaaaa | pwd
aaaaa | git status
aaaaa | git log --oneline -5
aaaaa | git diff
aaaaa | git show HEAD
aaaaa | grep -rn todo src
aaaaa | ls && git status
aaaaa | git status; ls
aaaaa | cat README.md | head
?-aaa | git commit -m x
?-?aa | git push
?-?aa | git push --force
?-??a | git status && git push; curl x
?-??a | git status | tee out
?-a?a | cargo test
?-??a | cargo test && cargo publish
?-??a | cargo publish
?-??a | make
?-??a | npm install
?-??a | touch x
?-??- | rm x
?-??- | rm -rf /
?-??- | /bin/rm x
?-??- | \rm x
?-??- | r'm' x
?-??- | "rm" x
?-??- | cd x && rm y
?-??- | ls; rm y
?-??- | ls | xargs rm
?-??- | env rm x
?-??- | env A=1 rm x
?-??- | A=1 rm x
?-??- | sh -c 'rm x'
?-??- | bash -c "rm x"
?-??- | eval rm x
?-??- | $(echo rm) x
?-??- | `echo rm` x
?-??- | find . -exec rm {} \;
?-??- | find . -delete -name rm
?-??- | nohup rm x &
?-??- | time rm x
?-??- | sudo rm x
?-??- | command rm x
?-??- | exec rm x
?-??- | xargs rm < list
?-??a | ls > out
?-??a | ls >> out
?-??a | git status > out
?-??a | git log --output=out
?-??a | git -c core.pager=x log
?-??a | git -c alias.x='!sh' x
?-??a | git --exec-path=. status
?-??a | GIT_PAGER=x git log
?-??a | git log $(touch x)
?-??a | ls `touch x`
?-??a | ls <(touch x)
?-??a | find . -name '*.rs' -exec touch {} +
?-??a | find . -fprint out
?-??a | sort -o out in
?-??a | ls &
?-??a | curl https://example.org
?-??a | wget https://example.org
?-??a | ssh host ls
?-??a | python3 -c 'print(1)'
?-??a | perl -e 1
?-??a | node -e 1
?-??a | awk 'BEGIN{system("x")}'
?-??a | sed -i s/a/b/ f
?-??a | tee out
?-??a | dd if=a of=b
?-??a | chmod +x f
?-??a | mv a b
?-??a | cp a b
?-??a | ln -s a b
?-??a | kill 1
?-??a | ls; touch x
?-??a | ls || touch x
"#;

#[test]
fn every_row_of_the_table_is_decided_as_it_says() {
    let shell = Shell::new();
    let allow_git = json!({"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": {"command": ["git .*"]}}}}}});
    let deny_rm = json!({"toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": [".*rm.*"]}}}}}});
    let mut remembered = Remembered::default();
    for line in ["git status", "cargo test", "ls", "git commit -m x"] {
        let (spec, review) = shell.review(line, false);
        remembered.allow(&spec, &review);
    }
    let none = Remembered::default();
    let situations = [
        (json!({}), false, &none, false),
        (json!({}), true, &none, false),
        (json!({}), false, &remembered, false),
        (allow_git, false, &none, false),
        (deny_rm, false, &none, true),
    ];
    let mut wrong = Vec::new();
    let mut rows = 0;
    for line in SHELL.lines().filter(|line| !line.is_empty()) {
        let (expected, command) = line.split_once(" | ").expect("columns | line");
        for (column, (config, plan, remembered, trust)) in situations.iter().enumerate() {
            rows += 1;
            let want = expected.as_bytes()[column] as char;
            let got = shell.decide(command, config, *plan, remembered, *trust);
            if got != want {
                wrong.push(format!("column {column}: {command:?} is {got}, not {want}"));
            }
        }
    }
    assert!(rows >= 300, "{rows} rows");
    assert!(wrong.is_empty(), "{} of {rows} rows:\n{}", wrong.len(), wrong.join("\n"));
}

struct Shell {
    home: tempfile::TempDir,
    tool: Arc<dyn Tool>,
}

impl Shell {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a home");
        std::fs::create_dir_all(home.path().join("work/src")).expect("a workspace");
        let tools = tools::BuiltIn::new(tools::Options::default()).tools();
        let tool = tools.into_iter().find(|tool| tool.spec().name == "shell_command").expect("shell_command");
        Self { home, tool }
    }

    fn roots(&self) -> Vec<PathBuf> {
        vec![self.home.path().join("work").canonicalize().expect("a workspace")]
    }

    fn review(&self, command: &str, plan: bool) -> (ToolSpec, Review) {
        let scope = Scope {
            session: SessionId::new("s"),
            roots: self.roots().into(),
            plan,
            remembered: Arc::from([]),
        };
        let review = self.tool.review(&json!({"command": command}), &scope).expect("a review");
        (self.tool.spec().clone(), review)
    }

    fn decide(
        &self,
        command: &str,
        config: &Value,
        plan: bool,
        remembered: &Remembered,
        trust: bool,
    ) -> char {
        let environment = Environment::new(self.home.path(), [("DRAGOMAN_CONFIG", config.to_string())]);
        let inputs = Inputs { workspace_roots: self.roots(), ..Inputs::default() };
        let resolved = config::resolve(&environment, &inputs);
        let (spec, review) = self.review(command, plan);
        let rules = approval::rules_for(&resolved.settings, if plan { "plan" } else { "agent" });
        let verdict = approval::decide(&Case {
            rules: &rules,
            spec: &spec,
            input: &json!({"command": command}),
            review: &review,
            remembered,
            plan,
            trust,
            can_ask: true,
            granted: Grants::None,
        });
        match verdict.decision {
            Decision::Allow => 'a',
            Decision::Ask => '?',
            Decision::Deny => '-',
        }
    }
}
