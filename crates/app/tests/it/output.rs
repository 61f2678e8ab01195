//! Every command with a stdout that is full, and with one that nobody reads: no panic, no output that is lost in silence.
//!
//! The commands come from the help of the program, so a new one fails here until it has a row below.

use std::collections::BTreeSet;
use std::fs::File;
use std::process::{Output, Stdio};

use serde_json::json;
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider};

/// How a command is run. `{n}` is another word in each run, for what can be made only once.
enum Run {
    With(&'static str),
    /// It serves until a signal, so it is run only where its first line cannot be written.
    Forever(&'static str),
    /// Only its help is asked for, with the reason.
    No(#[allow(dead_code, reason = "for the reader")] &'static str),
}
use Run::{Forever, No, With};

const ROWS: &[(&str, Run)] = &[
    ("chat", With("")),
    ("attach", With("")),
    ("ps", With("--json")),
    ("server", With("")),
    ("acp", With("")),
    ("threads", With("")),
    ("mcp-server", With("")),
    ("copilot", With("")),
    ("generate", With("api.json --single-file")),
    ("studio", Forever("--no-open --json")),
    ("serve", Forever("--no-open --json")),
    ("serve tokens add", With("anna{n} --role view")),
    ("serve tokens list", With("")),
    ("serve tokens change", With("kept --budget 3")),
    ("serve tokens revoke", With("gone{n}")),
    ("serve audit", With("")),
    ("spec check", With("api.json")),
    ("run", With("--quiet hello")),
    ("store check", With("")),
    ("store repair", With("")),
    ("models", With("")),
    ("models pull", With("")),
    ("models add", With("none.gguf")),
    ("models remove", With("none")),
    ("models list", With("--json")),
    ("models show", With("openai/gpt-5")),
    ("login", With("")),
    ("logout", With("anthropic")),
    ("chats list", With("")),
    ("chats search", With("nothing")),
    ("chats show", With("c1")),
    ("chats export", With("c1")),
    ("chats import", With("chat.jsonl")),
    ("chats delete", With("none")),
    ("store migrate", With("--to postgres")),
    ("submit", With("hello --repo .")),
    ("tasks list", With("")),
    ("tasks show", With("x")),
    ("tasks cancel", With("x")),
    ("tasks logs", With("x")),
    ("tasks delete", With("x")),
    ("worker", With("--drain")),
    ("replay", With("--all")),
    ("mcp list", With("")),
    ("mcp get", With("memo")),
    ("mcp add", With("new{n} -- true")),
    ("mcp add-json", With("json{n} {\"command\":\"true\"}")),
    ("mcp import", With("none.json")),
    ("mcp remove", With("none")),
    ("mcp enable", With("memo")),
    ("mcp disable", With("memo")),
    ("mcp login", With("none")),
    ("mcp logout", With("memo")),
    ("mcp test", With("none")),
    ("mcp client-metadata", With("https://me.example.com/dragoman.json")),
    ("acp-agents list", With("")),
    ("acp-agents add", With("new{n} -- true")),
    ("acp-agents remove", With("none")),
    ("acp-agents login", With("none")),
    ("plugins list", With("")),
    ("plugins install", With("none@none")),
    ("plugins update", With("none")),
    ("plugins uninstall", With("none")),
    ("import", With("--dry-run")),
    ("stats", With("")),
    ("doctor", With("")),
    ("doctor sandbox", No("it takes ten seconds, and prints like `doctor`")),
    ("config show", With("")),
    ("config check", With("")),
    ("config get", With("maxSteps")),
    ("config set", With("maxSteps 50")),
    ("config edit", No("opens an editor")),
    ("config schema", With("")),
    ("trust", With("--list")),
    ("grants", With("")),
    ("explain-permission", With("shell_command {\"command\":\"ls\"}")),
    ("setup", With("")),
    ("update", With("")),
    ("docs", With("approvals")),
    ("completions", With("bash")),
    ("man", With("")),
];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Sink {
    Read,
    Full,
    Closed,
}

struct World {
    home: Home,
    config: String,
}

impl World {
    async fn new(fake: &FakeModel) -> Self {
        fake.respond_with(|_| Answer::text("ok"));
        let home = Home::new();
        let mut config = fake_provider(fake.url(), "openai-chat");
        config["chat"] = json!({"title": false});
        let own = json!({"mcpServers": {"memo": {"command": "true", "disabled": true}}});
        home.write(".config/dragoman/config.json", &own.to_string());
        let api = json!({"openapi": "3.0.0", "info": {"title": "A", "version": "1"}, "paths": {"/pets": {"get": {
            "responses": {"200": {"description": "ok"}}}}}});
        home.write("work/api.json", &api.to_string());
        let head = json!({"type": "dragoman-chat", "version": 1, "id": "c1"});
        let opened = json!({"number": 1, "at": 1, "fact": {"fact": "sessionOpened", "workspace": ["/"], "settings": {},
            "client": "x"}});
        home.write("work/chat.jsonl", &format!("{head}\n{opened}\n"));
        let world = Self { home, config: config.to_string() };
        for line in ["chats import chat.jsonl", "serve tokens add kept --role view"] {
            assert!(world.run(line, 0, Sink::Read).status.success(), "{line}");
        }
        for number in 1..4 {
            world.run(&format!("serve tokens add gone{number} --role view"), 0, Sink::Read);
        }
        world
    }

    fn run(&self, line: &str, number: usize, sink: Sink) -> Output {
        let line = line.replace("{n}", &number.to_string());
        // The JSON of a row has no blanks.
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = self.home.command(&words);
        command.env("DRAGOMAN_CONFIG", &self.config).env("HF_ENDPOINT", "http://127.0.0.1:9");
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        match sink {
            Sink::Read => command.stdout(Stdio::piped()),
            Sink::Full => command.stdout(File::options().write(true).open("/dev/full").expect("a device")),
            Sink::Closed => {
                let (reader, writer) = std::io::pipe().expect("a pipe");
                drop(reader);
                command.stdout(writer)
            }
        };
        command.spawn().expect("it starts").wait_with_output().expect("it ends")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The commands that a help page names.
fn commands_of(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // The first page has its commands in groups.
    let is_grouped = help.contains("`dragoman COMMAND --help`");
    let lines =
        lines.take_while(|line| if is_grouped { !line.starts_with('`') } else { !line.trim().is_empty() });
    // A name has two blanks before it; the text of a long description has more.
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// All commands that do something, and their help with a full stdout.
fn all_commands(world: &World) -> BTreeSet<String> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![String::new()]);
    while let Some(path) = waiting.pop() {
        let line = format!("{path} --help");
        let help = world.run(&line, 0, Sink::Read);
        assert!(help.status.success(), "{line}");
        check(&line, Sink::Full, &world.run(&line, 0, Sink::Full), true);
        let inner = commands_of(&text(&help.stdout));
        // `serve` and `models` do something without a command, too.
        let usage = text(&help.stdout);
        let usage = usage.lines().find(|line| line.starts_with("Usage:")).unwrap_or_default();
        let is_whole = inner.is_empty() || !usage.contains("<COMMAND>");
        if !path.is_empty() && is_whole {
            found.insert(path.trim().to_owned());
        }
        waiting.extend(inner.iter().map(|name| format!("{path} {name}")));
    }
    found
}

/// What a command owes to a caller that cannot read its output.
fn check(line: &str, sink: Sink, output: &Output, has_output: bool) {
    let said = text(&output.stderr);
    assert!(!said.contains("panicked") && output.status.code() != Some(101), "{line} {sink:?}: {said}");
    assert!(output.status.code().is_some(), "{line} {sink:?} was killed: {said}");
    if sink == Sink::Full && has_output {
        assert!(output.status.code() != Some(0), "{line}: its output is lost, and the exit code is 0");
        let has_reason = said.contains("could not be written") || said.contains("Writing the answer");
        assert!(has_reason, "{line}: the reason is missing: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_panics_or_loses_its_output_in_silence() {
    let fake = FakeModel::start().await;
    let world = World::new(&fake).await;
    let rows: BTreeSet<String> = ROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(all_commands(&world), rows, "each command has a row in this test");
    for line in ["--version", "--version --json", "--help", "help"] {
        check(line, Sink::Full, &world.run(line, 0, Sink::Full), true);
        let closed = world.run(line, 0, Sink::Closed);
        assert!(closed.status.success() && closed.stderr.is_empty(), "{line}: {}", text(&closed.stderr));
    }
    for (name, run) in ROWS {
        let (line, is_endless) = match run {
            With(arguments) => (format!("{name} {arguments}"), false),
            Forever(arguments) => (format!("{name} {arguments}"), true),
            No(_) => continue,
        };
        let plain = (!is_endless).then(|| world.run(&line, 1, Sink::Read));
        let has_output =
            plain.as_ref().is_some_and(|plain| plain.status.success() && !plain.stdout.is_empty());
        check(&line, Sink::Full, &world.run(&line, 2, Sink::Full), has_output);
        let closed = world.run(&line, 3, Sink::Closed);
        check(&line, Sink::Closed, &closed, has_output);
        // A reader that has seen enough is no failure, unless what it missed cannot be shown again.
        if has_output && *name != "serve tokens add" {
            assert_eq!(closed.status.code(), Some(0), "{line}: {}", text(&closed.stderr));
        }
    }
}

/// An account whose token nobody has seen does not exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_account_is_left_without_its_token() {
    let fake = FakeModel::start().await;
    let world = World::new(&fake).await;
    for (name, sink) in [("full", Sink::Full), ("closed", Sink::Closed)] {
        for more in ["", " --json"] {
            let output = world.run(&format!("serve tokens add {name} --role admin{more}"), 0, sink);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(&format!("The account {name} was not made")), "{said}");
        }
        let listed = text(&world.run("serve tokens list", 0, Sink::Read).stdout);
        assert!(listed.contains("kept") && !listed.contains(name), "{listed}");
        let made = world.run(&format!("serve tokens add {name} --role admin"), 0, Sink::Read);
        assert!(made.status.success() && text(&made.stdout).contains("dragoman_"), "the name is free again");
    }
}

/// A stderr that is full or closed changes no exit code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_cannot_be_written_are_no_panic() {
    let fake = FakeModel::start().await;
    let world = World::new(&fake).await;
    for (line, code) in [
        ("chats show none", 1),
        ("nonsense", 2),
        ("docs nothing-like-it", 2),
        ("mcp get none", 1),
        ("run --cwd /nowhere hello", 2),
        ("run --mcp-config {\"x\":1} hello", 2),
    ] {
        for sink in [Sink::Full, Sink::Closed] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut command = world.home.command(&words);
            command.env("DRAGOMAN_CONFIG", &world.config).stdin(Stdio::null()).stdout(Stdio::null());
            match sink {
                Sink::Full | Sink::Read => {
                    command.stderr(File::options().write(true).open("/dev/full").expect("a device"))
                }
                Sink::Closed => {
                    let (reader, writer) = std::io::pipe().expect("a pipe");
                    drop(reader);
                    command.stderr(writer)
                }
            };
            assert_eq!(command.status().expect("it runs").code(), Some(code), "{line} {sink:?}");
        }
    }
}
