//! Real agents of other vendors against the fake model, where they are installed: in `DRAGOMAN_TEST_AGENTS`, a folder of
//! programs outside of the temporary folder, or on PATH.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, FakeModel, Request};

use crate::client::Home;

/// How an agent is pointed at the fake model, and how its model writes a file.
struct RealAgent {
    name: &'static str,
    program: &'static str,
    /// Variables, with `{url}` for the address of the fake model.
    variables: &'static [(&'static str, &'static str)],
    /// Files of the home, with `{url}` too.
    files: &'static [(&'static str, &'static str)],
    /// A call of its tool that writes files; `{path}` is an absolute path.
    write: (&'static str, &'static str),
}

const AGENTS: &[RealAgent] = &[
    RealAgent {
        name: "claude",
        program: "claude-agent-acp",
        variables: &[
            ("ANTHROPIC_BASE_URL", "{url}"),
            ("ANTHROPIC_API_KEY", "sk-ant-test"),
            ("DISABLE_TELEMETRY", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ],
        files: &[],
        write: ("Write", r#"{"file_path": "{path}", "content": "made by the agent\n"}"#),
    },
    RealAgent {
        name: "codex",
        program: "codex-acp",
        variables: &[("FAKE_KEY", "k"), ("OPENAI_API_KEY", "k")],
        files: &[(
            ".codex/config.toml",
            "model = \"fake-model\"\nmodel_provider = \"fake\"\napproval_policy = \"never\"\n\n[model_providers.fake]\nname = \"fake\"\nbase_url = \"{url}/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n",
        )],
        write: ("shell_command", r#"{"command": "printf 'made by the agent\\n' > {path}"}"#),
    },
    RealAgent {
        name: "gemini",
        program: "gemini",
        variables: &[("GEMINI_API_KEY", "k"), ("GOOGLE_GEMINI_BASE_URL", "{url}")],
        files: &[(
            ".gemini/settings.json",
            r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}, "model": {"name": "gemini-2.5-flash"}, "privacy": {"usageStatisticsEnabled": false}}"#,
        )],
        write: ("write_file", r#"{"file_path": "{path}", "content": "made by the agent\n"}"#),
    },
    RealAgent {
        name: "opencode",
        program: "opencode",
        variables: &[("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("OPENCODE_DISABLE_MODELS_FETCH", "1")],
        files: &[(
            ".config/opencode/opencode.json",
            r#"{"model": "fake/fake-model", "small_model": "fake/fake-model", "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "{url}/v1", "apiKey": "k"}, "models": {"fake-model": {}}}}, "permission": {"*": "allow"}}"#,
        )],
        write: ("write", r#"{"filePath": "{path}", "content": "made by the agent\n"}"#),
    },
    RealAgent {
        name: "qwen",
        program: "qwen",
        variables: &[
            ("OPENAI_BASE_URL", "{url}/v1"),
            ("OPENAI_API_KEY", "k"),
            ("OPENAI_MODEL", "fake-model"),
        ],
        files: &[(
            ".qwen/settings.json",
            r#"{"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": false}}"#,
        )],
        write: ("write_file", r#"{"file_path": "{path}", "content": "made by the agent\n"}"#),
    },
    RealAgent {
        name: "goose",
        program: "goose",
        variables: &[
            ("GOOSE_PROVIDER", "openai"),
            ("OPENAI_HOST", "{url}"),
            ("OPENAI_API_KEY", "k"),
            ("GOOSE_MODEL", "fake-model"),
            ("GOOSE_DISABLE_KEYRING", "1"),
            ("GOOSE_MODE", "auto"),
        ],
        files: &[],
        write: ("developer__shell", r#"{"command": "printf 'made by the agent\\n' > {path}"}"#),
    },
];

/// The PATH on which the agents are looked for.
fn search_path() -> String {
    let own = std::env::var("DRAGOMAN_TEST_AGENTS").unwrap_or_default();
    format!("{own}:{}", std::env::var("PATH").unwrap_or_default())
}

fn find(program: &str) -> Option<PathBuf> {
    let path = search_path();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|it| it.is_file());
    found.filter(|it| !it.starts_with(std::env::temp_dir()))
}

/// A model that greets, and that writes a file when it is asked to.
fn respond(request: &Request, agent: &'static RealAgent, file: &str) -> Answer {
    let said = request.last_user_text();
    let has_result = !request.tool_results().is_empty();
    if said.contains("write the file") && !has_result {
        let (tool, input) = agent.write;
        let input: Value = serde_json::from_str(&input.replace("{path}", file)).expect("JSON");
        return Answer::tool_call("c1", tool, input);
    }
    Answer::text(if has_result { "The file is written." } else { "The answer is plum." })
}

async fn prompt(home: &Home, config: &Value, arguments: &[&str]) -> (bool, String) {
    let mut command: tokio::process::Command = home.command(arguments).into();
    command.env("DRAGOMAN_CONFIG", config.to_string()).env("PATH", search_path()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(90), command.output()).await;
    let output = output.expect("it ends").expect("it starts");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

async fn try_agent(agent: &'static RealAgent) {
    if find(agent.program).is_none() {
        return testkit::skip(format!("the agent {} is not installed", agent.program));
    }
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let port = fake.url().rsplit(':').next().expect("a port").to_owned();
    let written = |text: &str| text.replace("{url}", fake.url());
    for (name, text) in agent.files {
        home.write(name, &written(text));
    }
    let variables: serde_json::Map<String, Value> =
        agent.variables.iter().map(|(name, value)| ((*name).to_owned(), json!(written(value)))).collect();
    let model = format!("acp:{}/default", agent.name);
    let config = json!({
        "chat": {"title": false},
        "acpAgents": {agent.name: {"env": variables, "grants": [format!("port:{port}"), format!("network:127.0.0.1:{port}")]}},
    });
    let file = home.workspace().join("made.txt");
    let shown = file.display().to_string();
    fake.respond_with(move |request| respond(request, agent, &shown));
    let (ok, said) =
        prompt(&home, &config, &["run", "--model", &model, "--approve", "all", "say the answer"]).await;
    assert!(ok && said.contains("The answer is plum."), "{}: {said}", agent.name);
    let go_on = ["run", "--continue", "--model", model.as_str(), "--approve", "all"];
    let (ok, said) = prompt(&home, &config, &[&go_on[..], &["write the file"]].concat()).await;
    let made = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(ok && made == "made by the agent\n", "{}: {said}", agent.name);
    let (ok, said) = prompt(&home, &config, &[&go_on[..], &["/undo"]].concat()).await;
    assert!(ok && !file.exists(), "{}: {said}", agent.name);
}

#[tokio::test]
async fn claude_code_answers_and_its_file_is_undone() {
    try_agent(&AGENTS[0]).await;
}

#[tokio::test]
async fn codex_answers_and_its_file_is_undone() {
    try_agent(&AGENTS[1]).await;
}

#[tokio::test]
async fn gemini_cli_answers_and_its_file_is_undone() {
    try_agent(&AGENTS[2]).await;
}

#[tokio::test]
async fn opencode_answers_and_its_file_is_undone() {
    try_agent(&AGENTS[3]).await;
}

#[tokio::test]
async fn qwen_code_answers_and_its_file_is_undone() {
    try_agent(&AGENTS[4]).await;
}

#[tokio::test]
async fn goose_answers_and_its_file_is_undone() {
    try_agent(&AGENTS[5]).await;
}
