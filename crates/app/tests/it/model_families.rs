//! What a model is shown by its family: tools, names of arguments, the prompt, and how large the first request is.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Home, fake_provider, run_command};

/// The largest first request, without files with instructions.
const MOST_BYTES: usize = 6_500;
/// What is left below it for arguments that tools may get.
const ROOM: usize = 0;

/// A provider of this name with one model.
fn provider(fake: &FakeModel, name: &str, api: &str, model: &str) -> Value {
    let mut config = fake_provider(fake.url(), api);
    config["defaultModel"] = json!(format!("{name}/{model}"));
    let mut entry = config["providers"]["fake"].take();
    entry["models"] = json!({model: {}});
    config["providers"] = json!({name: entry});
    config["chat"]["verifyChanges"] = json!(false);
    config
}

async fn first_request(home: &Home, fake: &FakeModel, config: &Value) -> Value {
    fake.forget_requests();
    fake.answer(Answer::text("hello"));
    let (code, out, err) = run_command(home, config, &["run", "hello"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    fake.requests().first().expect("a request").body.clone()
}

const FAMILIES: [(&str, &str, &str, &str); 8] = [
    ("gpt", "openai", "openai-responses", "gpt-5.1-codex"),
    ("gpt", "fake", "openai-chat", "gpt-5"),
    ("claude", "fake", "anthropic", "claude-sonnet-4-5"),
    ("gemini", "fake", "gemini", "gemini-2.5-pro"),
    ("open", "fake", "openai-chat", "qwen3-coder-480b"),
    ("small", "fake", "ollama", "llama3.1:8b"),
    ("other", "fake", "openai-chat", "m1"),
    ("other", "fake", "anthropic", "m1"),
];

#[tokio::test]
async fn the_first_request_is_small_in_every_family() {
    let fake = FakeModel::start().await;
    let mut sizes = Vec::new();
    for (family, name, api, model) in FAMILIES {
        let home = Home::new();
        let body = first_request(&home, &fake, &provider(&fake, name, api, model)).await;
        let text = body.to_string();
        println!("quality: first-request | {family} | {api} | {} |", text.len());
        for words in ["Reproduce a bug", "how you will know", "half-way", "changes of others", "ask nothing"]
        {
            assert!(text.contains(words), "{family} {api}: {words}");
        }
        assert_eq!(text.contains("in one answer"), family != "small", "{family}");
        assert!(!text.contains("grants"), "rare arguments are not shown");
        sizes.push((family, api, text.len()));
    }
    for (family, api, size) in &sizes {
        assert!(*size + ROOM <= MOST_BYTES, "{family} over {api}: {size} bytes in {sizes:?}");
    }
}

#[tokio::test]
async fn a_family_decides_what_a_model_is_shown() {
    let fake = FakeModel::start().await;
    for (family, name, api, model) in FAMILIES {
        let home = Home::new();
        let text = first_request(&home, &fake, &provider(&fake, name, api, model)).await.to_string();
        let has = |tool: &str| text.contains(&format!("eca__{tool}\""));
        assert_eq!((has("apply_patch"), has("edit_file")), (family == "gpt", family != "gpt"), "{family}");
        assert_eq!(text.contains("old_str"), family == "claude", "{family}");
        assert_eq!(has("task"), family != "small", "{family}");
        assert_eq!(text.contains("begin_patch") || text.contains("\"lark\""), name == "openai", "{family}");
    }
    let mut config = provider(&fake, "fake", "openai-chat", "gpt-5");
    config["modelFamilies"] =
        json!({"gpt-*": {"editFormat": "replace", "taskList": false, "prompt": "Be kind."}});
    let text = first_request(&Home::new(), &fake, &config).await.to_string();
    assert!(
        text.contains("eca__edit_file") && !text.contains("eca__apply_patch") && text.contains("Be kind.")
    );
    assert!(!text.contains("eca__task\""));
}

/// What a model has learned elsewhere is accepted in every family, shown or not.
#[tokio::test]
async fn tools_that_are_not_shown_are_accepted() {
    let fake = FakeModel::start().await;
    for (name, api, model) in [("fake", "openai-chat", "gpt-5"), ("fake", "anthropic", "claude-x")] {
        let home = Home::new();
        home.write("work/a.txt", "one\n");
        let config = provider(&fake, name, api, model);
        let edit = json!({"path": "a.txt", "original_content": "one", "new_content": "two"});
        let patch =
            "*** Begin Patch\n*** Update File: a.txt\n-two\n+three\n*** Add File: b.txt\n+new\n*** End Patch";
        fake.answer(Answer::tool_call("c1", "eca__edit_file", edit));
        fake.answer(Answer::tool_call("c2", "eca__apply_patch", json!({"input": patch})));
        fake.answer(Answer::text("done"));
        let (code, out, err) = run_command(&home, &config, &["run", "--approve", "all", "go"]).await;
        assert_eq!(code, Some(0), "{out}{err}");
        let read = |path: &str| std::fs::read_to_string(home.workspace().join(path)).ok();
        assert_eq!((read("a.txt"), read("b.txt")), (Some("three\n".into()), Some("new\n".into())), "{model}");
        let (code, out, err) = run_command(&home, &config, &["run", "--continue", "/undo"]).await;
        assert_eq!(code, Some(0), "{out}{err}");
        assert_eq!((read("a.txt"), read("b.txt")), (Some("one\n".into()), None), "one undo takes all back");
    }
}

/// Small models choose among few tools and see only the arguments that matter.
#[tokio::test]
async fn small_models_are_shown_few_tools_and_arguments() {
    let fake = FakeModel::start().await;
    let config = provider(&fake, "fake", "ollama", "llama3.1:8b");
    let body = first_request(&Home::new(), &fake, &config).await;
    let tools = body["tools"].as_array().expect("tools");
    let mut names: Vec<&str> =
        tools.iter().filter_map(|tool| tool["function"]["name"].as_str()?.strip_prefix("eca__")).collect();
    names.sort_unstable();
    assert_eq!(names, ["directory_tree", "edit_file", "grep", "read_file", "shell_command", "write_file"]);
    let shell = tools.iter().find(|tool| tool["function"]["name"] == "eca__shell_command").expect("a shell");
    let arguments = shell["function"]["parameters"]["properties"].as_object().expect("arguments");
    assert_eq!(arguments.keys().collect::<Vec<_>>(), ["command"], "{shell}");
    let text = body.to_string();
    for rare in ["background", "timeout", "all_occurrences", "max_results", "pty"] {
        assert!(!text.contains(rare), "{rare}: {text}");
    }
    let mut config = config;
    config["modelFamilies"] = json!({"llama*": {"withoutTools": ["grep"]}});
    let text = first_request(&Home::new(), &fake, &config).await.to_string();
    assert!(text.contains("eca__fetch_url") && !text.contains("eca__grep"), "the user's list counts");
}

/// A model that edits without having read is shown the file once, where it could read it without a question.
#[tokio::test]
async fn an_edit_of_an_unread_file_is_answered_with_it() {
    const SHOWN: &str = "You had not read the file";
    let fake = FakeModel::start().await;
    let edit = |old: &str| {
        let input = json!({"path": "calc.py", "original_content": old, "new_content": "return a + b"});
        Answer::tool_call("c1", "eca__edit_file", input)
    };
    let run = async |home: &Home, config: &Value, grants: &[&str]| {
        fake.forget_requests();
        home.write("work/calc.py", "def add(a, b):\n    return a - b\n");
        let arguments = [&["run"], grants, &["fix add"]].concat();
        let (code, out, err) = run_command(home, config, &arguments).await;
        assert_eq!(code, Some(0), "{out}{err}");
        fake.requests().iter().flat_map(|request| request.tool_results()).collect::<Vec<_>>()
    };
    let small = provider(&fake, "fake", "openai-chat", "qwen2.5-coder-1.5b");
    let home = Home::new();
    for answer in [edit("return a minus b"), edit("return b - a"), edit("return a - b"), Answer::text("done")]
    {
        fake.answer(answer);
    }
    let results = run(&home, &small, &["--approve", "all"]).await;
    assert!(results[0].contains(SHOWN) && results[0].contains("return a - b"), "{results:?}");
    assert!(!results[1].contains(SHOWN), "it is shown once: {results:?}");
    let now = std::fs::read_to_string(home.workspace().join("calc.py")).expect("a file");
    assert_eq!(now, "def add(a, b):\n    return a + b\n", "{results:?}");

    let mut asking = small.clone();
    asking["toolCall"] = json!({"approval": {"ask": {"eca__read_file": {}}}});
    let large = provider(&fake, "fake", "openai-chat", "gpt-5");
    for (why, config) in [("reading is asked about", asking), ("a large model reads by itself", large)] {
        fake.answer(edit("return a minus b")).answer(Answer::text("done"));
        let results = run(&Home::new(), &config, &[]).await;
        assert!(!results[0].contains(SHOWN) && !results[0].contains("return a - b"), "{why}: {results:?}");
    }
}

/// A model that fills every optional argument asks for nothing by it.
#[tokio::test]
async fn a_call_with_every_argument_filled_runs() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = provider(&fake, "fake", "openai-chat", "qwen2.5-coder-1.5b");
    let input = json!({
        "command": "echo plain", "working_directory": "", "timeout": 0, "background": "", "pty": false,
        "grants": ["network:HOST", "port:NUMBER", "write:/PATH", "secret:PATH", "registries", "registry-credentials",
            "run-later", "git-config", "git-credentials", "ssh", "signing", "cloud", "containers"],
    });
    fake.answer(Answer::tool_call("c1", "eca__shell_command", input)).answer(Answer::text("done"));
    let (code, out, err) = run_command(&home, &config, &["run", "--approve", "all", "go"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let results = fake.last_request().tool_results();
    assert!(results[0].contains("plain") && !results[0].contains("refused"), "{results:?}");
}

/// A call whose argument is plain text, as OpenAI streams it.
fn text_call(name: &str, text: &str) -> Answer {
    let item = |input: &str| json!({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": name, "input": input});
    let (head, tail) = text.split_at(text.len() / 2);
    let delta = |delta: &str| json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "ctc_1", "delta": delta});
    let events = [
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item("")}),
        delta(head),
        delta(tail),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item(text)}),
        json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}}),
    ];
    Answer::new().raw(events.map(|event| format!("data: {event}\n\n")).concat())
}

/// Over the Responses API the patch is plain text on the wire, in both directions.
#[tokio::test]
async fn a_patch_is_plain_text_on_the_responses_api() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    home.write("work/a.txt", "say \"one\"\n");
    let config = provider(&fake, "openai", "openai-responses", "gpt-5");
    let patch = "*** Begin Patch\n*** Update File: a.txt\n-say \"one\"\n+say \"two\"\n*** End Patch\n";
    fake.answer(text_call("eca__apply_patch", patch));
    fake.answer(Answer::text("done"));
    let (code, out, err) = run_command(&home, &config, &["run", "--approve", "all", "go"]).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let now = std::fs::read_to_string(home.workspace().join("a.txt")).expect("a file");
    assert_eq!(now, "say \"two\"\n");
    let request = fake.last_request().body;
    let items = request["input"].as_array().expect("items").clone();
    let call = items.iter().find(|item| item["type"] == "custom_tool_call").expect("the call");
    assert_eq!((&call["input"], &call["name"]), (&json!(patch), &json!("eca__apply_patch")));
    let result = items.iter().find(|item| item["type"] == "custom_tool_call_output").expect("the result");
    assert!(result["output"].to_string().contains("Changed a.txt"), "{result}");
}

/// A rule against edits holds for patches, whichever file of the patch it is about.
#[tokio::test]
async fn rules_about_edits_hold_for_patches() {
    let fake = FakeModel::start().await;
    let denied = [
        json!({"eca__edit_file": {}}),
        json!({"write_file": {"argsMatchers": {"path": [".*b\\.txt"]}}}),
        json!({"eca__edit_file": {"argsMatchers": {"new_content": ["(?s).*secret.*"]}}}),
    ];
    for deny in denied {
        let home = Home::new();
        home.write("work/a.txt", "one\n");
        let mut config = provider(&fake, "fake", "openai-chat", "gpt-5");
        config["toolCall"] = json!({"approval": {"deny": deny}});
        let patch = "*** Begin Patch\n*** Update File: a.txt\n-one\n+two\n*** Add File: b.txt\n+secret\n*** End Patch";
        fake.answer(Answer::tool_call("c1", "eca__apply_patch", json!({"input": patch})));
        fake.answer(Answer::text("done"));
        let (_, out, err) = run_command(&home, &config, &["run", "--approve", "all", "go"]).await;
        let read = |path: &str| std::fs::read_to_string(home.workspace().join(path)).ok();
        assert_eq!((read("a.txt"), read("b.txt")), (Some("one\n".into()), None), "{deny}: {out}{err}");
    }
    let home = Home::new();
    let mut config = provider(&fake, "fake", "openai-chat", "gpt-5");
    config["disabledTools"] = json!(["write_file"]);
    let text = first_request(&home, &fake, &config).await.to_string();
    assert!(!text.contains("eca__apply_patch"), "it would write files all the same");
}

#[tokio::test]
async fn models_show_prints_the_row_and_its_origins() {
    let home = Home::new();
    let config = json!({"modelFamilies": {"house/*": {"family": "claude", "effort": "high"}}});
    let (code, out, err) = run_command(&home, &config, &["models", "show", "house/x", "--json"]).await;
    assert_eq!(code, Some(0), "{err}");
    let shown: Value = serde_json::from_str(&out).expect("JSON");
    let part = |name: &str| shown["parts"][name].clone();
    assert_eq!(part("family")["value"], "claude");
    assert!(
        part("family")["origin"].as_str().is_some_and(|it| it.contains("modelFamilies.house/*")),
        "{shown}"
    );
    assert_eq!(
        (part("effort")["value"].clone(), part("editFormat")["origin"].clone()),
        (json!("high"), json!("the family claude"))
    );
    assert!(part("argumentNames")["value"].to_string().contains("old_str"), "{shown}");
    let (code, out, _) = run_command(&home, &config, &["models", "show", "openai/gpt-5"]).await;
    assert_eq!(code, Some(0));
    assert!(out.contains("patch") && out.contains("the pattern gpt-*"), "{out}");
}

/// The messages of a request, whichever API it is for.
fn messages(body: &Value) -> Vec<Value> {
    let list = ["messages", "input", "contents"].iter().find_map(|name| body[*name].as_array());
    list.cloned().unwrap_or_default()
}

/// Whether a request begins with everything of the one before it, so that a provider's cache holds that part. Marks of
/// caches move on.
fn extends(before: &Value, now: &Value) -> bool {
    let plain = |body: &Value| -> Vec<String> {
        messages(body)
            .iter()
            .map(|it| it.to_string().replace(",\"cache_control\":{\"type\":\"ephemeral\"}", ""))
            .collect()
    };
    let (earlier, later) = (plain(before), plain(now));
    let is_head = ["tools", "system", "instructions"].iter().all(|name| before[*name] == now[*name]);
    is_head && later.starts_with(&earlier)
}

/// The same small task in each family, with the calls that its models make: what it sends, and what of it is cached.
#[tokio::test]
async fn a_task_sends_little_and_extends_the_cached_prefix() {
    let fake = FakeModel::start().await;
    for (family, name, api, model) in FAMILIES {
        let home = Home::new();
        home.write("work/a.py", "def add(a, b):\n    return a - b\n");
        home.write("work/test_a.py", "from a import add\nassert add(1, 2) == 3\n");
        let patch = "*** Begin Patch\n*** Update File: a.py\n@@ def add(a, b):\n-    return a - b\n+    return a + b\n*** End Patch";
        let edit = match family {
            "gpt" => ("eca__apply_patch", json!({"input": patch})),
            "claude" => ("eca__edit_file", json!({"path": "a.py", "old_str": "a - b", "new_str": "a + b"})),
            "small" => {
                ("eca__write_file", json!({"path": "a.py", "content": "def add(a, b):\n    return a + b\n"}))
            }
            _ => (
                "eca__edit_file",
                json!({"path": "a.py", "original_content": "a - b", "new_content": "a + b"}),
            ),
        };
        let read = |path: &str| json!({"path": path});
        fake.forget_requests();
        fake.answer(Answer::new().call("c1", "eca__read_file", read("a.py")).call(
            "c2",
            "eca__read_file",
            read("test_a.py"),
        ));
        fake.answer(Answer::tool_call("c3", edit.0, edit.1));
        fake.answer(Answer::tool_call("c4", "eca__grep", json!({"pattern": "a \\+ b"})));
        fake.answer(Answer::text("add was subtracting. It adds now; the test was not run."));
        let config = provider(&fake, name, api, model);
        let (code, out, err) =
            run_command(&home, &config, &["run", "--approve", "all", "The test fails. Fix it."]).await;
        assert_eq!(code, Some(0), "{out}{err}");
        let now = std::fs::read_to_string(home.workspace().join("a.py")).expect("a file");
        assert_eq!(now, "def add(a, b):\n    return a + b\n", "{family}");
        let bodies: Vec<Value> =
            fake.requests().iter().map(|it| it.body.clone()).filter(|it| !messages(it).is_empty()).collect();
        let bodies: Vec<Value> = bodies.into_iter().filter(|it| !it["tools"].is_null()).collect();
        assert_eq!(bodies.len(), 4, "{family}");
        let extending = bodies.windows(2).filter(|pair| extends(&pair[0], &pair[1])).count();
        assert_eq!(extending, bodies.len() - 1, "{family} over {api}");
        let bytes: usize = bodies.iter().map(|body| body.to_string().len()).sum();
        let new = bodies.last().map_or(0, |body| body.to_string().len());
        println!(
            "quality: tokens | {family} | {api} | {} | {extending} | {} | {} |",
            bodies.len(),
            bytes / 4,
            new / 4
        );
    }
}
