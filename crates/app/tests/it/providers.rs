//! Providers from outside: keys that are kept, signing in, caps, failover, limits that processes share.

use std::io::Write;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::client::{Client, Home, answer, contents, fake_provider, is_finished, system_text};

/// The program with a configuration, `input` on its stdin.
async fn run(home: &Home, config: &Value, arguments: &[&str], input: &str) -> Output {
    let mut command = home.command(arguments);
    command
        .env("DRAGOMAN_CONFIG", config.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let input = input.to_owned();
    let running = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().expect("the program starts");
        let _ = child.stdin.take().expect("stdin").write_all(input.as_bytes());
        child.wait_with_output().expect("the program ends")
    });
    tokio::time::timeout(Duration::from_secs(30), running).await.expect("it ends").expect("it runs")
}

fn all_output(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn a_key_is_kept_for_its_owner_alone_used_and_forgotten() {
    use std::os::unix::fs::PermissionsExt;
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = json!({
        "defaultModel": "fake/m1",
        "providers": {"fake": {"api": "anthropic", "url": fake.url(), "models": {"m1": {}}}},
    });
    let kept = run(&home, &config, &["login", "fake"], "sk-kept-secret\n").await;
    assert!(kept.status.success(), "{}", all_output(&kept));
    assert!(!all_output(&kept).contains("sk-kept-secret"), "{}", all_output(&kept));
    let file = home.path().join(".local/share/dragoman/credentials.json");
    let mode = std::fs::metadata(&file).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let answered = run(&home, &config, &["run", "Hi"], "").await;
    assert!(answered.status.success(), "{}", all_output(&answered));
    assert_eq!(fake.last_request().header("x-api-key"), Some("sk-kept-secret"));
    let listed = run(&home, &config, &["login"], "").await;
    assert!(all_output(&listed).contains("kept by"), "{}", all_output(&listed));
    let gone = run(&home, &config, &["logout", "fake"], "").await;
    assert!(gone.status.success(), "{}", all_output(&gone));
    assert!(!std::fs::read_to_string(&file).expect("the file").contains("sk-kept"));
    let again = run(&home, &config, &["logout", "fake"], "").await;
    assert_eq!(again.status.code(), Some(1));
    for (provider, input, code) in
        [("nobody", "sk-x\n", 2), ("openai", "\n", 1), ("openai", "two words\n", 1)]
    {
        let output = run(&home, &json!({}), &["login", provider], input).await;
        assert_eq!(output.status.code(), Some(code), "{provider}: {}", all_output(&output));
    }
}

#[tokio::test]
async fn a_url_that_yields_nothing_is_not_replaced_by_the_vendors_own() {
    let home = Home::new();
    for (url, why) in [
        ("${env:NO_SUCH_GATEWAY}", "`providers.openai.url` is written, but is empty."),
        (
            "${cmd:exit 3}",
            "`providers.openai.url` could not be looked up: its command failed with exit code 3.",
        ),
        ("${file:~/no-such-file}", "`providers.openai.url` could not be looked up: there is no file"),
    ] {
        let config = json!({
            "defaultModel": "openai/gpt-4.1",
            "providers": {"openai": {"url": url, "key": "sk-of-the-gateway"}},
        });
        let answered = run(&home, &config, &["run", "Hi"], "").await;
        assert!(!answered.status.success(), "{}", all_output(&answered));
        let last = all_output(&answered);
        let last = &last[last.rfind("`providers.openai.url`").unwrap_or(0)..];
        assert!(last.starts_with(why), "{url}: {}", all_output(&answered));
        let listed = run(&home, &config, &["models"], "").await;
        assert!(!all_output(&listed).contains("openai/"), "{}", all_output(&listed));
        let examined = run(&home, &config, &["doctor"], "").await;
        assert!(!all_output(&examined).contains("api.openai.com"), "{}", all_output(&examined));
    }
}

/// Signs a client in at its third request; the tokens last `lasting` seconds.
struct Authority {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Authority {
    async fn start(lasting: i64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !request.windows(4).any(|it| it == b"\r\n\r\n") {
                    if socket.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                let text = String::from_utf8_lossy(&request).into_owned();
                log.lock().expect("a log").push(text.clone());
                let body = Self::answer(&text, &log, lasting).to_string();
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        Self { url, asked }
    }

    fn answer(request: &str, log: &Mutex<Vec<String>>, lasting: i64) -> Value {
        let times = |path: &str| log.lock().expect("a log").iter().filter(|it| it.contains(path)).count();
        if request.contains("/login/device/code") {
            json!({"device_code": "d-1", "user_code": "ABCD-1234", "verification_uri": "https://example.com/device",
                   "expires_in": 30, "interval": 0})
        } else if request.contains("/login/oauth/access_token") {
            match times("/login/oauth/access_token") {
                1 => json!({"error": "authorization_pending"}),
                2 => json!({"error": "slow_down", "interval": 0}),
                _ => json!({"access_token": "gho_signed_in"}),
            }
        } else {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs() as i64;
            json!({"token": format!("copilot-{}", times("/copilot_internal")), "expires_at": now + lasting})
        }
    }

    fn exchanges(&self) -> usize {
        self.asked
            .lock()
            .expect("a log")
            .iter()
            .filter(|it| it.contains("/copilot_internal/v2/token"))
            .count()
    }

    fn config(&self, fake: &FakeModel) -> Value {
        json!({
            "defaultModel": "github-copilot/gpt-4.1",
            "chat": {"title": false},
            "providers": {"github-copilot": {"url": fake.url(), "auth": {"url": self.url, "clientId": "test"}}},
        })
    }
}

#[tokio::test]
async fn signing_in_at_github_gives_tokens_that_are_renewed_by_one_process_at_a_time() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let authority = Authority::start(3600).await;
    let config = authority.config(&fake);
    let before = run(&home, &config, &["run", "Hi"], "").await;
    assert!(all_output(&before).contains("dragoman login github-copilot"), "{}", all_output(&before));
    let signed_in = run(&home, &config, &["login", "github-copilot"], "").await;
    assert!(signed_in.status.success(), "{}", all_output(&signed_in));
    assert!(
        all_output(&signed_in).contains("ABCD-1234") && !all_output(&signed_in).contains("gho_"),
        "{}",
        all_output(&signed_in)
    );
    let all = futures_util::future::join_all((0..4).map(|_| run(&home, &config, &["run", "Hi"], ""))).await;
    for output in &all {
        assert!(output.status.success(), "{}", all_output(output));
    }
    assert_eq!(authority.exchanges(), 1, "one renews, the others wait for it");
    for request in fake.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer copilot-1"));
    }
}

#[tokio::test]
async fn a_token_is_renewed_before_it_runs_out() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let authority = Authority::start(60).await;
    let config = authority.config(&fake);
    run(&home, &config, &["login", "github-copilot"], "").await;
    for turn in 1..=2 {
        run(&home, &config, &["run", "Hi"], "").await;
        let token = format!("Bearer copilot-{turn}");
        assert_eq!(fake.last_request().header("authorization"), Some(token.as_str()));
    }
}

#[tokio::test]
async fn a_chat_signs_in_and_the_models_appear() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let authority = Authority::start(3600).await;
    let mut config = authority.config(&fake);
    config["defaultModel"] = Value::Null;
    let mut client = Client::start(&home, &config).await;
    client.ask("chat/prompt", json!({"chatId": "c", "message": "/login github-copilot"})).await;
    // Which message comes first depends on how fast the user types.
    let (mut listed, mut finished, mut told) = (false, false, Vec::new());
    while !(listed && finished) {
        let message = client.next().await;
        listed |= message["params"]["chat"]["models"].to_string().contains("github-copilot/");
        finished |= is_finished(&message);
        told.push(message);
    }
    assert!(system_text(&contents(&told)).contains("ABCD-1234"), "{told:?}");
    let (_, contents) = client.prompt(Some("c"), "/login openai").await;
    assert!(system_text(&contents).contains("dragoman login openai"), "{contents:?}");
    let params = json!({"chatId": "c", "message": "Hi", "model": "github-copilot/gpt-4.1"});
    let (result, contents) = client.prompt_with(params).await;
    assert_eq!(result["status"], "prompting", "{contents:?}");
    assert_eq!(answer(&contents), "You said: Hi");
}

/// Two providers, `one` first, priced so that each call of the fake (10 in, 5 out) costs two cents.
fn two(one: &FakeModel, other: &FakeModel) -> Value {
    let provider = |fake: &FakeModel, api: &str| {
        let price = json!({"input": 1000.0, "output": 2000.0, "cacheRead": 100.0, "cacheWrite": 1250.0});
        json!({"api": api, "url": fake.url(), "key": "sk-x", "models": {"m1": {"cost": price, "limit": {"context": 100_000}}}})
    };
    json!({
        "defaultModel": "one/m1",
        "providers": {"one": provider(one, "openai-chat"), "other": provider(other, "anthropic")},
    })
}

#[tokio::test]
async fn another_model_goes_on_where_one_fails_and_no_tool_runs_twice() {
    let (home, one, other) = (Home::new(), FakeModel::start().await, FakeModel::start().await);
    home.write("work/a.txt", "content of a");
    one.answer(Answer::tool_call("c1", "eca__read_file", json!({"path": "a.txt"})));
    one.answer(Answer::status(401));
    let mut config = two(&one, &other);
    config["failover"] = json!(["one/m1", "nobody/x", "other/m1"]);
    let mut client = Client::start(&home, &config).await;
    let (_, contents) = client.prompt(Some("c"), "Read a.txt").await;
    let text = answer(&contents);
    assert!(text.contains("The tool said:") && text.contains("content of a"), "{text}");
    let ran = contents.iter().filter(|it| it["content"]["type"] == "toolCalled").count();
    assert_eq!((ran, one.requests().len(), other.requests().len()), (1, 2, 1));
    assert!(other.last_request().tool_results()[0].contains("content of a"), "the history is whole");
    drop(client);
    // By flag, for a run.
    one.answer(Answer::status(403));
    config["failover"] = json!([]);
    let output = run(&home, &config, &["run", "--failover", "other/m1", "Hi"], "").await;
    assert!(
        output.status.success() && all_output(&output).contains("You said: Hi"),
        "{}",
        all_output(&output)
    );
    one.answer(Answer::status(403));
    let output = run(&home, &config, &["run", "Hi"], "").await;
    assert_eq!(output.status.code(), Some(1), "without a list it fails: {}", all_output(&output));
}

#[tokio::test]
async fn caps_stop_before_the_next_request() {
    let (one, other) = (FakeModel::start().await, FakeModel::start().await);
    for (cap, what) in [("chat", "This chat"), ("day", "Today's work"), ("run", "This turn")] {
        let home = Home::new();
        home.write("work/a.txt", "a");
        let mut config = two(&one, &other);
        config["budget"] = json!({cap: 0.015});
        one.answer(Answer::tool_call("c1", "eca__read_file", json!({"path": "a.txt"})));
        let before = one.requests().len();
        let mut client = Client::start(&home, &config).await;
        let (_, contents) = client.prompt(Some("c"), "Read a.txt").await;
        let text = system_text(&contents);
        assert!(text.contains(what) && text.contains(&format!("budget.{cap}")), "{cap}: {text}");
        assert_eq!(one.requests().len(), before + 1, "{cap}");
        drop(client);
        // A day is one for all processes, a chat and a run are not.
        let output = run(&home, &config, &["run", "Hi"], "").await;
        assert_eq!(output.status.success(), cap != "day", "{cap}: {}", all_output(&output));
    }
}

#[tokio::test]
async fn costs_say_what_was_spent_on_what_and_what_broke_the_cache() {
    let (home, one, other) = (Home::new(), FakeModel::start().await, FakeModel::start().await);
    let mut client = Client::start(&home, &two(&one, &other)).await;
    client.prompt(Some("c"), "Hi").await;
    let params = json!({"chatId": "c", "message": "Hi", "model": "other/m1"});
    client.prompt_with(params).await;
    let (_, contents) = client.prompt(Some("c"), "/costs").await;
    let text = system_text(&contents);
    let expected = [
        "This chat: $0.0400",
        "Today on this machine: $0.0400",
        "- answers, one/m1: $0.0200 in 1 call (10 in, 0 cache read, 0 cache written, 5 out)",
        "- answers, other/m1: $0.0200 in 1 call",
        "- another model (other/m1): 10 tokens were read anew, $0.0115 more",
    ];
    for line in expected {
        assert!(text.contains(line), "no {line} in {text}");
    }
}

#[tokio::test]
async fn a_limit_of_one_process_is_honored_by_another() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    fake.answer(Answer::status(429).header("retry-after", "2"));
    let mut first = Client::start(&home, &config).await;
    let since = Instant::now();
    first.ask("chat/prompt", json!({"chatId": "a", "message": "say 1 words"})).await;
    first.until(|it| it["params"]["content"]["text"].to_string().contains("Rate limited")).await;
    let output = run(&home, &config, &["run", "say 1 words"], "").await;
    assert!(output.status.success(), "{}", all_output(&output));
    assert!(since.elapsed() >= Duration::from_secs(2), "it did not wait");
    first.until(is_finished).await;
    assert_eq!(fake.requests().iter().filter(|it| it.last_user_text() == "say 1 words").count(), 3);
}

/// Every example of the page is taken as it stands.
#[tokio::test]
async fn the_examples_of_the_documentation_work() {
    let page = include_str!("../../../../docs/providers.md");
    let mut examples = 0;
    for block in page.split("```json\n").skip(1) {
        let text = block.split("```").next().expect("an end");
        let config: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let home = Home::new();
        let output = run(&home, &config, &["config", "show"], "").await;
        assert!(output.status.success(), "{text}: {}", all_output(&output));
        let shown = all_output(&output);
        assert!(!shown.contains("is not known") && !shown.contains("must be"), "{text}: {shown}");
        examples += 1;
    }
    assert!(examples >= 20, "{examples}");
    for vendor in [
        "openai",
        "anthropic",
        "google",
        "ollama",
        "github-copilot",
        "openrouter",
        "deepseek",
        "mistral",
        "groq",
        "xai",
        "moonshot",
        "z-ai",
        "qwen",
        "litellm",
        "lmstudio",
        "llama.cpp",
        "vllm",
        "azure",
        "bedrock",
    ] {
        assert!(page.contains(&format!("{vendor}/")) || page.contains(&format!("\"{vendor}\"")), "{vendor}");
    }
}

#[tokio::test]
async fn a_newer_list_of_models_is_fetched_when_asked_and_kept() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/api.json", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let _ = socket.read(&mut request).await;
            let body = json!({"anthropic": {"models": {"claude-next": {
                "release_date": "2027-01-01", "tool_call": true, "limit": {"context": 5_000_000, "output": 1},
                "cost": {"input": 1.0, "output": 2.0}, "modalities": {"output": ["text"]}}}}})
            .to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    for arguments in [&["models", "--refresh"][..], &["models"]] {
        let mut command = home.command(arguments);
        command.env("DRAGOMAN_CATALOG", &url).env("ANTHROPIC_API_KEY", "sk-x");
        let output =
            tokio::task::spawn_blocking(move || command.output()).await.expect("it runs").expect("it runs");
        assert!(
            all_output(&output).contains("anthropic/claude-next"),
            "{arguments:?}: {}",
            all_output(&output)
        );
        assert!(all_output(&output).contains("5000000"));
    }
}

/// The settings of the network reach the client that speaks to providers.
#[tokio::test]
async fn broken_certificates_are_named() {
    let home = Home::new();
    let authority = home.write("ca.pem", "no certificate");
    let settings = [
        (json!({"caCertFile": authority}), "certificate authorities holds no certificate"),
        (json!({"caCertFile": "/nowhere/ca.pem"}), "/nowhere/ca.pem"),
        (json!({"clientCert": authority, "clientKey": authority}), "client certificate"),
    ];
    for (network, words) in settings {
        let config = json!({
            "defaultModel": "far/m",
            "network": network,
            "providers": {"far": {"api": "openai-chat", "url": "https://127.0.0.1:9/v1", "key": "sk-x", "models": {"m": {}}}},
        });
        let output = run(&home, &config, &["run", "--timeout", "2", "Hi"], "").await;
        assert!(
            !output.status.success() && all_output(&output).contains(words),
            "{network}: {}",
            all_output(&output)
        );
    }
}

#[tokio::test]
async fn an_editor_starts_the_login_in_its_terminal() {
    let home = Home::new();
    let config = fake_provider("http://127.0.0.1:9", "openai-chat");
    let stored = run(&home, &config, &["acp", "--login"], "fake\nsk-kept-secret\n").await;
    assert!(stored.status.success(), "{}", all_output(&stored));
    assert!(all_output(&stored).contains("The key of fake is stored"), "{}", all_output(&stored));
    assert!(!all_output(&stored).contains("sk-kept-secret"));
    let nothing = run(&home, &config, &["acp", "--login"], "\n").await;
    assert!(!nothing.status.success() && all_output(&nothing).contains("nothing is stored"));
}
