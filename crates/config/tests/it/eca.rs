//! A settings file as ECA's users have it: every key that means something here arrives.

use std::path::Path;
use std::time::Duration;

use config::{HookCommand, HookEvent, HookMatcher, McpTransport};

use super::{ECA_GLOBAL, OUR_GLOBAL, World, notices};

const FILE: &str = r#"{
  "$schema": "https://eca.dev/config.json",
  // providers, one of them our own
  "providers": {
    "openai": {"key": "${env:MY_KEY}", "models": {"o1": {}, "fast": {"modelName": "gpt-5", "extraPayload": {"reasoning": {"effort": "high"}},
      "extraHeaders": {"User-Agent": "me"}, "reasoningHistory": "turn", "limit": {"context": 1000, "output": 10},
      "cost": {"input": 1.5, "output": 2, "cacheRead": 0.1, "cacheWrite": 3}, "variants": {"high": {"a": 1}, "low": {}}}}},
    "my-company": {"api": "openai-chat", "url": "https://llm.example.com", "key": "k", "fetchModels": false,
      "completionUrlRelativePath": "/v2/chat?x=1", "thinkTagStart": "<t>", "thinkTagEnd": "</t>",
      "httpClient": {"version": "http-1.1"}, "cacheRetention": "long", "requiresAuth": true,
      "auth": {"url": "https://id.example.com", "clientId": "c"}, "retryRules": [{"status": 418}]}
  },
  "defaultModel": "openai/o1",
  "defaultAgent": "code",
  "agent": {
    "code": {"disabledTools": ["preview_file_change"], "defaultModel": "openai/fast", "variant": "high"},
    "sleeper": {"mode": "subagent", "description": "Sleeps", "prompt": "Sleep.", "steps": 25, "autoCompactPercentage": 40},
    "both": {"mode": ["primary", "subagent"], "inherit": "code", "prompts": {"chat": "Hello"}}
  },
  "hooks": {
    "b": {"type": "preToolCall", "matcher": "eca__shell.*", "visible": false, "actions": [{"type": "shell", "shell": "jq .", "timeout": 1000}]},
    "a": {"type": "postToolCall", "runOnError": true, "description": "d",
      "matcher": {"eca__write_file": {"argsMatchers": {"path": [".*\\.rs$"]}}}, "actions": [{"type": "shell", "file": "check.sh"}]}
  },
  "rules": [{"path": "~/rule.md"}, {"path": "team/rule.mdc"}],
  "commands": [{"path": "/abs/command.md"}],
  "skills": [{"path": "skills"}],
  "disabledTools": ["fetch_url"],
  "customTools": {"web": {"description": "Search", "command": "search {{q}}", "schema": {"properties": {"q": {"type": "string"}}, "required": ["q"]}}},
  "toolCall": {
    "approval": {"byDefault": "ask", "allow": {"eca": {}, "my-mcp": {}}, "ask": {"shell_command": {"argsMatchers": {"command": [".*rm.*"]}}}},
    "readFile": {"maxLines": 1000},
    "shellCommand": {"summaryMaxLength": 25, "path": "/bin/zsh", "args": ["-l", "-c"]},
    "outputTruncation": {"lines": 100, "sizeKb": 20},
  },
  "mcpTimeoutSeconds": 10, "lspTimeoutSeconds": 30, "streamIdleTimeoutSeconds": 33,
  "mcpServers": {
    "memory": {"command": "npx", "args": ["-y", "server-memory"], "env": {"FOO": "bar"}, "disabled": true},
    "cool": {"url": "https://mcp.example.com", "headers": {"Authorization": "Bearer x"}, "clientId": "i", "clientSecret": "s", "oauthPort": 99, "clientName": "n"}
  },
  "prompts": {"chat": "Be kind.", "compact": "Short.", "chatTitle": "${classpath:prompts/title.md}", "tools": {"eca__edit_file": "Edit."}},
  "welcomeMessage": "Hi\n",
  "autoCompactPercentage": 75, "includeParentAgentsFiles": true, "chatRetentionDays": 14,
  "index": {"ignoreFiles": [{"type": "gitignore"}], "repoMap": {"maxTotalEntries": 1, "maxEntriesPerDir": 2}},
  "completion": {"model": "openai/gpt-4.1"},
  "rewrite": {"model": "openai/o1", "fullFileMaxLines": 77},
  "variantsByModel": {".*": {"variants": {"x": {}}}},
  "otlp": {"otel.exporter.otlp.metrics.protocol": "http/protobuf", "otel.exporter.otlp.metrics.endpoint": "https://otlp.example.com/foo", "otel.exporter.otlp.headers": "Authorization=Bearer 123456"}, "plugins": {"install": []}, "remote": {"enabled": false},
  "netrcFile": null,
  "chat": {"title": false, "defaultTrust": true},
  "connectTimeoutSeconds": 40,
  "network": {"caCertFile": "/ca.pem"}
}"#;

fn world() -> World {
    let world = World::new().var("MY_KEY", "sk-mine-000").write(ECA_GLOBAL, FILE);
    world.put("home/.config/eca/check.sh", "true");
    world
}

#[test]
fn each_key_without_effect_is_named() {
    let world = world();
    let resolved = world.resolve();
    let said = notices(&world, &resolved);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    let ignored = [
        "providers.my-company.thinkTagStart",
        "providers.my-company.thinkTagEnd",
        "providers.my-company.httpClient",
        "providers.my-company.cacheRetention",
        "providers.my-company.requiresAuth",
        "providers.my-company.retryRules",
        "providers.openai.models.fast.reasoningHistory",
        "toolCall.shellCommand.summaryMaxLength",
        "toolCall.outputTruncation.lines",
        "index.ignoreFiles",
        "rewrite.fullFileMaxLines",
        "variantsByModel",
        "remote",
    ];
    let mut found: Vec<&str> = resolved.ignored_keys.iter().map(|ignored| ignored.key.as_str()).collect();
    let mut want = ignored.to_vec();
    found.sort_unstable();
    want.sort_unstable();
    assert_eq!(found, want);
    assert!(lines[0].contains(": not supported, ignored: `providers."), "{said}");
    assert!(ignored.iter().all(|key| lines[0].contains(&format!("`{key}`"))), "{said}");
    let title = "`prompts.chatTitle` refers to a file of ECA's own program; the default is used instead.";
    assert!(lines[1].ends_with(title), "{said}");
    let shown = resolved.show_text();
    let marked =
        |line: &&str| line.starts_with("remote.enabled") && line.ends_with("; not supported, ignored)");
    assert!(shown.lines().any(|line| marked(&line)), "{shown}");
    assert_eq!(resolved.show_json()["ignored"].as_array().unwrap().len(), ignored.len());
}

#[test]
fn behaviors() {
    let settings = world().settings();
    assert_eq!(settings.default_model.as_deref(), Some("openai/o1"));
    assert_eq!(
        (&*settings.default_behavior, settings.mcp_timeout, settings.stream_silence),
        ("agent", Duration::from_secs(10), Duration::from_secs(33))
    );
    assert_eq!(settings.behaviors.keys().collect::<Vec<_>>(), ["agent", "plan", "sleeper", "both"]);
    let agent = &settings.behaviors["agent"];
    assert_eq!(
        (agent.default_model.as_deref(), agent.variant.as_deref(), &agent.disabled_tools[..]),
        (Some("openai/fast"), Some("high"), &["preview_file_change".to_owned()][..])
    );
    let sleeper = &settings.behaviors["sleeper"];
    assert_eq!(
        (sleeper.primary, settings.max_steps("sleeper"), settings.auto_compact_percentage("sleeper")),
        (false, 25, 40)
    );
    assert_eq!((settings.max_steps("code"), settings.auto_compact_percentage("nobody")), (200, 75));
    assert_eq!(settings.behavior_model("code"), Some("openai/fast"));
    assert_eq!(settings.behavior_variant("code"), Some("high"));
    assert_eq!(sleeper.prompts.chat.as_ref().unwrap().known(), Some("Sleep."));
    assert_eq!(sleeper.prompts.compact.as_ref().unwrap().known(), Some("Short."));
    let both = &settings.behaviors["both"];
    assert_eq!((both.primary, both.default_model.as_deref()), (true, Some("openai/fast")));
    assert_eq!(both.prompts.chat.as_ref().unwrap().known(), Some("Hello"));
}

#[tokio::test]
async fn providers() {
    let settings = world().settings();
    let openai = &settings.providers["openai"];
    assert_eq!(openai.key.as_ref().unwrap().get().await.unwrap().expose(), "sk-mine-000");
    let fast = &openai.models["fast"];
    assert_eq!(fast.model_name.as_deref(), Some("gpt-5"));
    assert_eq!((fast.context_limit, fast.output_limit), (Some(1000), Some(10)));
    assert_eq!(
        (fast.input_cost, fast.output_cost, fast.cache_read_cost, fast.cache_write_cost),
        (Some(1.5), Some(2.0), Some(0.1), Some(3.0))
    );
    assert_eq!(
        (fast.extra_payload["reasoning"]["effort"].as_str(), fast.extra_headers[0].0.as_str()),
        (Some("high"), "User-Agent")
    );
    assert_eq!((fast.variants.len(), fast.variants["low"].len()), (2, 0));
    let company = &settings.providers["my-company"];
    assert_eq!((company.api.as_deref(), company.fetch_models), (Some("openai-chat"), Some(false)));
    assert_eq!(company.completion_path.as_deref(), Some("/v2/chat?x=1"));
    assert_eq!(company.auth_client_id.as_deref(), Some("c"));
}

/// A hook that may forbid calls and cannot be read is never consent.
#[test]
fn a_hook_that_cannot_be_read_makes_calls_ask() {
    for actions in [
        r#"[]"#,
        r#"[{"type": "http"}]"#,
        r#"[{"shell": "x", "file": "y"}]"#,
        r#"[{"shell": "x", "timeout": 0}]"#,
    ] {
        let hooks = format!(
            r#"{{"hooks": {{"h": {{"type": "preToolCall", "matcher": "x", "actions": {actions}}}}}}}"#
        );
        let world = World::new().write(ECA_GLOBAL, &hooks);
        let settings = world.settings();
        assert!(settings.hooks.is_empty(), "{actions}");
        let [hook] = settings.tools.approval.blocking_hooks.as_slice() else { panic!("{actions}") };
        assert_eq!((hook.name.as_str(), &hook.matcher), ("h", &HookMatcher::Pattern("x".into())));
    }
}

#[test]
fn hooks_rules_and_tools() {
    let world = world();
    let settings = world.settings();
    let [a, b] = settings.hooks.as_slice() else { panic!("{:?}", settings.hooks) };
    assert_eq!(
        (a.name.as_str(), a.event, a.run_on_error, a.visible),
        ("a", HookEvent::PostToolCall, true, true)
    );
    let script = HookCommand::File(world.path("home/.config/eca/check.sh"));
    assert_eq!((a.actions[0].command.clone(), a.actions[0].timeout.as_secs()), (script, 30));
    assert_eq!(
        (b.name.as_str(), b.visible, &b.matcher),
        ("b", false, &HookMatcher::Pattern("eca__shell.*".into()))
    );
    assert_eq!(
        (b.actions[0].command.clone(), b.actions[0].timeout.as_secs()),
        (HookCommand::Line("jq .".into()), 1)
    );

    assert_eq!(settings.rules, [world.path("home/rule.md"), "team/rule.mdc".into()]);
    assert_eq!(settings.commands[0].as_path(), Path::new("/abs/command.md"));
    let tools = &settings.tools;
    assert_eq!((tools.read_file_max_lines, tools.output_max_bytes), (1000, 20 * 1024));
    assert_eq!(
        (tools.shell.program.as_deref(), tools.shell.args.join(" ")),
        (Some("/bin/zsh"), "-l -c".into())
    );
    assert_eq!(
        (tools.approval.ask.len(), tools.approval.allow.len(), &tools.disabled[..]),
        (1, 15, &["fetch_url".to_owned()][..])
    );
}

#[tokio::test]
async fn servers() {
    let settings = world().settings();
    let memory = &settings.mcp_servers["memory"];
    let McpTransport::Stdio { command, args, env } = &memory.transport else { panic!("{memory:?}") };
    assert_eq!(
        (memory.disabled, command.known(), args.len(), env[0].0.as_str()),
        (true, Some("npx"), 2, "FOO")
    );
    let McpTransport::Http { url, headers, .. } = &settings.mcp_servers["cool"].transport else { panic!() };
    assert_eq!((url.known(), headers.len()), (Some("https://mcp.example.com"), 1));
}

#[test]
fn prompts_chat_and_the_rest() {
    let settings = world().settings();
    assert_eq!(settings.prompts.chat.as_ref().unwrap().known(), Some("Be kind."));
    assert_eq!((settings.prompts.chat_title.is_none(), settings.prompts.tools.len()), (true, 1));
    assert_eq!(
        (&*settings.chat.welcome_message, settings.chat.title, settings.chat.default_trust),
        ("Hi\n", false, true)
    );
    assert_eq!((settings.chat.auto_compact_percentage, settings.chat.retention_days), (75, Some(14)));
    assert!(settings.include_parent_agents_files);
    assert_eq!(settings.network.ca_cert_file.as_deref(), Some(Path::new("/ca.pem")));
    assert_eq!(settings.network.connect_timeout, Some(std::time::Duration::from_secs(40)));
    let map = config::MapSettings { entries: Some(1), entries_per_folder: Some(2) };
    assert_eq!(settings.tools.map, map);
}

/// `test-mcp` of an ECA file is `testMcp`, `myProvider` is `my-provider`, and our own files describe the same things.
#[test]
fn names_of_eca_have_its_spelling_and_are_one_with_ours() {
    let world = World::new()
        .write(
            ECA_GLOBAL,
            r#"{"providers": {"myProvider": {"api": "openai-chat", "url": "http://a", "models": {"m": {}}}},
                "mcpServers": {"test-mcp": {"command": "a"}, "both-here": {"command": "b"}, "bothHere": {"command": "c"}}}"#,
        )
        .write(
            OUR_GLOBAL,
            r#"{"providers": {"myProvider": {"models": {"n": {}}}, "ourOwn": {"api": "openai-chat", "url": "http://b"}},
                "mcpServers": {"test-mcp": {"disabled": true}, "our-own": {"command": "d"}}}"#,
        );
    let settings = world.settings();
    let providers: Vec<&str> = settings.providers.keys().map(String::as_str).collect();
    assert_eq!(providers, ["my-provider", "ourOwn"]);
    assert_eq!(settings.providers["my-provider"].models.keys().collect::<Vec<_>>(), ["m", "n"]);
    let servers: Vec<&str> = settings.mcp_servers.keys().map(String::as_str).collect();
    assert_eq!(servers, ["testMcp", "both-here", "bothHere", "our-own"]);
    assert!(settings.mcp_servers["testMcp"].disabled, "our file turns it off by the name as it is written");
}

#[test]
fn a_wrong_value_below_a_renamed_server_has_its_line() {
    let world = World::new()
        .write(ECA_GLOBAL, "{\n\"mcpServers\": {\n\"test-mcp\": {\"command\": \"a\", \"disabled\": 7}}}");
    let said = notices(&world, &world.resolve());
    assert!(said.contains("line 3") && said.contains("mcpServers.testMcp.disabled"), "{said}");
}

/// ECA speaks to Google in the form of OpenAI; only its own files mean that.
#[test]
fn google_at_an_address_of_eca_speaks_the_form_of_openai() {
    let at = |url: &str| format!(r#"{{"providers": {{"google": {{"url": "{url}"}}}}}}"#);
    let api = |world: World| world.settings().providers["google"].api.clone();
    assert_eq!(api(World::new().write(ECA_GLOBAL, at("http://a"))).as_deref(), Some("openai-chat"));
    let options = serde_json::from_str(&at("http://a")).unwrap();
    assert_eq!(api(World::new().options(options)).as_deref(), Some("openai-chat"));
    assert_eq!(api(World::new().write(OUR_GLOBAL, at("http://a"))), None);
    assert_eq!(api(World::new().write(ECA_GLOBAL, at("http://a")).write(OUR_GLOBAL, at("http://b"))), None);
    let native = r#"{"providers": {"google": {"url": "http://a", "api": "gemini"}}}"#;
    assert_eq!(api(World::new().write(ECA_GLOBAL, native)).as_deref(), Some("gemini"));
    assert_eq!(api(World::new().write(ECA_GLOBAL, r#"{"providers": {"google": {"key": "k"}}}"#)), None);
}
