//! Commands that outlive their calls, with the real program and its sandbox: no question for what is contained, undo and
//! leftovers settled at their end, also after `kill -9`; `/jobs` in the front-ends.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::acp_client::Editor;
use crate::client::{Client, Home, contents, fake_provider, is_finished, run_command, system_text};

/// The whole wall can be built here.
async fn is_whole(home: &Home) -> bool {
    let (_, text, _) = run_command(home, &json!({}), &["doctor"]).await;
    let whole = text.contains("namespaces, Landlock and seccomp");
    if !whole {
        testkit::skip("this system has no complete sandbox");
    }
    whole
}

fn sandboxed(fake: &FakeModel) -> Value {
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["sandbox"] = json!("on");
    config
}

/// One call of a tool in the chat "c", which must not be asked about. Its result.
async fn call(client: &mut Client, fake: &FakeModel, tool: &str, input: Value) -> String {
    fake.answer(Answer::tool_call("c", &format!("eca__{tool}"), input)).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "go"})).await;
    let shown = contents(&client.until(is_finished).await);
    let run = shown.iter().find(|it| it["content"]["type"] == "toolCallRun").expect("a call");
    assert_eq!(run["content"]["manualApproval"], false, "{run:#}");
    fake.last_request().tool_results().last().cloned().expect("a result")
}

/// What a slash command answers.
async fn slash(client: &mut Client, line: &str) -> String {
    let (_, shown) = client.prompt(Some("c"), line).await;
    system_text(&shown)
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn job_in(told: &str) -> String {
    let at = told.find("job-").unwrap_or_else(|| panic!("no job in {told}"));
    told[at..].chars().take_while(|character| character.is_alphanumeric() || *character == '-').collect()
}

/// It changes files, plants one that an editor would run, and tries to leave its sandbox; all after its limit.
const SLOW: &str = "echo begun; sleep 1; echo changed > old.txt; echo made > made.txt; mkdir -p app/.vscode; \
                    echo evil > app/.vscode/tasks.json; echo evil > \"$HOME/outside.txt\" || echo refused; touch ready; ";

#[tokio::test]
async fn a_contained_line_becomes_a_job_unasked_and_is_settled_when_it_ends() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    home.write("work/old.txt", "old\n");
    home.write("work/slow.sh", &format!("{SLOW}sleep 1; echo over\n"));
    let read = |name: &str| std::fs::read_to_string(home.workspace().join(name)).ok();
    let mut client = Client::start(&home, &sandboxed(&fake)).await;
    let line = json!({"command": "bash slow.sh", "timeout": 300});
    let told = call(&mut client, &fake, "shell_command", line).await;
    assert!(told.starts_with("begun") && told.contains("goes on as job-"), "{told}");
    let job = job_in(&told);
    let listed = slash(&mut client, "/jobs").await;
    assert!(listed.contains(&format!("- {job} (")) && listed.contains("bash slow.sh"), "{listed}");
    let wait = json!({"action": "wait", "job_id": job});
    let told = call(&mut client, &fake, "background_job", wait).await;
    assert!(told.contains("exit 0") && told.contains("over"), "{told}");
    // Another program would run it, and its user may have made it: it is put aside.
    assert!(told.contains("put aside") && told.contains(".vscode.taken-back"), "{told}");
    assert!(!home.workspace().join("app/.vscode").exists());
    assert!(read("app/.vscode.taken-back/tasks.json").is_some());
    assert!(!home.path().join("outside.txt").exists());
    assert_eq!(
        (read("old.txt").as_deref(), read("made.txt").as_deref()),
        (Some("changed\n"), Some("made\n"))
    );
    // Undo takes back what came after the call had ended.
    slash(&mut client, "/undo").await;
    assert_eq!((read("old.txt").as_deref(), read("made.txt")), (Some("old\n"), None));
    client.end().await;
}

#[tokio::test]
async fn what_a_job_did_is_settled_after_a_kill() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    home.write("work/old.txt", "old\n");
    home.write("work/slow.sh", &format!("{SLOW}sleep 600\n"));
    let read = |name: &str| std::fs::read_to_string(home.workspace().join(name)).ok();
    let config = sandboxed(&fake);
    let mut client = Client::start(&home, &config).await;
    let line = json!({"command": "bash slow.sh", "timeout": 300});
    let job = job_in(&call(&mut client, &fake, "shell_command", line).await);
    until("the change", || home.workspace().join("ready").exists()).await;
    client.child.kill().await.expect("kill -9");
    // The same chat in the next process.
    let mut client = Client::start(&home, &config).await;
    let told =
        call(&mut client, &fake, "background_job", json!({"action": "read_output", "job_id": job})).await;
    assert!(told.contains(&format!("There is no job {job}")), "{told}");
    assert!(
        !home.workspace().join("app/.vscode").exists() && read("app/.vscode.taken-back/tasks.json").is_some()
    );
    assert!(slash(&mut client, "/jobs").await.contains("No command runs"));
    slash(&mut client, "/undo").await;
    assert_eq!((read("old.txt").as_deref(), read("made.txt")), (Some("old\n"), None));
    client.end().await;
}

/// A file that the user approved while a job ran is not blamed on the job.
#[tokio::test]
async fn a_file_that_was_approved_beside_a_job_stays() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    let mut client = Client::start(&home, &sandboxed(&fake)).await;
    let line = json!({"command": "sleep 600", "timeout": 200});
    let job = job_in(&call(&mut client, &fake, "shell_command", line).await);
    let write = json!({"path": "app/.vscode/tasks.json", "content": "{}\n"});
    fake.answer(Answer::tool_call("c", "eca__write_file", write)).answer(Answer::text("ok"));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "write it"})).await;
    let messages = client.until(|it| it["params"]["content"]["type"] == "toolCallRun").await;
    let id = messages.last().expect("the call")["params"]["content"]["id"].clone();
    client.notify("chat/toolCallApprove", json!({"chatId": "c", "toolCallId": id})).await;
    client.until(is_finished).await;
    let file = home.workspace().join("app/.vscode/tasks.json");
    assert!(file.exists(), "it was approved");
    assert!(slash(&mut client, &format!("/jobs stop {job}")).await.contains("was ended"));
    assert!(file.exists());
    client.end().await;
}

#[tokio::test]
async fn a_question_is_answered_in_a_pseudo_terminal_inside_the_sandbox() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    if !is_whole(&home).await {
        return;
    }
    home.write(
        "work/ask.sh",
        "read -r _ _ _ _ _ _ tty _ < /proc/self/stat; [ \"$tty\" = 0 ] && echo no terminal\n\
         echo through > /dev/tty\nread -r -p 'Proceed? ' a; echo \"got $a\"\n",
    );
    let mut client = Client::start(&home, &sandboxed(&fake)).await;
    let line = json!({"command": "bash ask.sh", "pty": true});
    let told = call(&mut client, &fake, "shell_command", line).await;
    assert!(told.starts_with("through\nProceed?") && !told.contains("no terminal"), "{told}");
    // What is typed stays in the same sandbox, so it is not asked about either.
    let write = json!({"action": "write", "job_id": job_in(&told), "input": "y"});
    let told = call(&mut client, &fake, "background_job", write).await;
    assert!(told.contains("exit 0") && told.contains("got y"), "{told}");
    client.end().await;
}

#[tokio::test]
async fn jobs_are_listed_shown_and_ended_by_the_user() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["toolCall"] = json!({"approval": {"allow": {"eca__shell_command": {}}}});
    let mut client = Client::start(&home, &config).await;
    assert!(slash(&mut client, "/jobs").await.contains("No command runs in the background."));
    let line = json!({"command": "echo up; sleep 600", "background": "server"});
    let told = call(&mut client, &fake, "shell_command", line).await;
    let job = job_in(&told);
    let listed = slash(&mut client, "/jobs").await;
    assert!(listed.contains(&format!("- {job} (server), running for")), "{listed}");
    assert!(slash(&mut client, &format!("/jobs {job}")).await.contains("up"));
    assert!(slash(&mut client, &format!("/jobs stop {job}")).await.contains("was ended"));
    assert!(slash(&mut client, "/jobs").await.contains("ended by you"));
    client.end().await;
}

/// ACP has no messages about jobs: the command answers as text, and is among the commands that the editor offers.
#[tokio::test]
async fn an_acp_editor_lists_and_ends_jobs_by_the_command() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["toolCall"] = json!({"approval": {"allow": {"eca__shell_command": {}}}});
    let mut editor = Editor::start(&home, &config, json!({})).await;
    let line = json!({"command": "echo up; sleep 600", "background": "server"});
    fake.answer(Answer::tool_call("c", "eca__shell_command", line)).answer(Answer::text("ok"));
    editor.say("start it").await;
    let job = job_in(&fake.last_request().tool_results().last().cloned().expect("a result"));
    editor.say("/jobs").await;
    let shown = editor.text("agent_message_chunk");
    assert!(shown.contains(&format!("{job} (server), running")), "{shown}");
    editor.say(&format!("/jobs stop {job}")).await;
    let shown = editor.text("agent_message_chunk");
    assert!(shown.contains("was ended"), "{shown}");
}

/// The file of a long output belongs to its chat and goes with it.
#[tokio::test]
async fn long_outputs_are_kept_for_the_chat_and_deleted_with_it() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let config = fake_provider(fake.url(), "openai-chat");
    let run = async |arguments: &[&str]| {
        let (code, out, err) = run_command(&home, &config, arguments).await;
        assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
        out
    };
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": "seq 200000"})));
    fake.answer(Answer::text("ok"));
    run(&["run", "--approve", "all", "count"]).await;
    let told = fake.last_request().tool_results().last().cloned().expect("a result");
    let file = told.split(" bytes are in ").nth(1).and_then(|rest| rest.split(": ").next()).expect("a file");
    assert!(file.starts_with(home.path().to_str().expect("a path")) && Path::new(file).exists(), "{file}");
    // The next turn reads the middle without a question.
    fake.answer(Answer::tool_call(
        "c",
        "eca__read_file",
        json!({"path": file, "line_offset": 99_999, "limit": 1}),
    ));
    fake.answer(Answer::text("ok"));
    run(&["run", "--continue", "the middle"]).await;
    let told = fake.last_request().tool_results().last().cloned().expect("a result");
    assert!(told.starts_with("100000\t100000\n"), "{told}");
    let list: Value = serde_json::from_str(&run(&["chats", "list", "--json"]).await).expect("JSON");
    run(&["chats", "delete", list["chats"][0]["id"].as_str().expect("an id")]).await;
    assert!(!Path::new(file).exists());
    // Of a chat that is not kept nothing is kept.
    fake.answer(Answer::tool_call("c", "eca__shell_command", json!({"command": "seq 200000"})));
    fake.answer(Answer::text("ok"));
    run(&["run", "--ephemeral", "--approve", "all", "count"]).await;
    let told = fake.last_request().tool_results().last().cloned().expect("a result");
    assert!(told.contains("bytes left out") && !told.contains("bytes are in"), "{}", told.len());
}
