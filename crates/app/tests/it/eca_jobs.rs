//! Commands in the background of a chat, as an ECA client lists, reads and ends them.

use serde_json::{Value, json};
use testkit::{Answer, FakeModel};

use crate::client::{Client, Home, fake_provider};

fn is_update(message: &Value, status: &str) -> bool {
    message["method"] == "jobs/updated"
        && message["params"]["jobs"]
            .as_array()
            .is_some_and(|jobs| jobs.iter().any(|job| job["status"] == status))
}

#[tokio::test]
async fn a_job_is_listed_read_and_ended() {
    let (home, fake) = (Home::new(), FakeModel::start().await);
    let mut config = fake_provider(fake.url(), "openai-chat");
    config["toolCall"] = json!({"approval": {"allow": {"eca__shell_command": {}}}});
    let mut client = Client::start(&home, &config).await;
    assert_eq!(client.request("jobs/list", Value::Null).await, json!({"jobs": []}));

    let line = "echo one; echo two; sleep 600";
    fake.answer(Answer::tool_call(
        "j",
        "eca__shell_command",
        json!({"command": line, "background": "dev-server"}),
    ));
    fake.answer(Answer::text("It runs."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "start it"})).await;
    client.until(|it| is_update(it, "running")).await;
    client.until(crate::client::is_finished).await;
    let jobs = client.request("jobs/list", json!({})).await;
    let job = &jobs["jobs"][0];
    assert_eq!(
        (&job["type"], &job["status"], &job["label"]),
        (&json!("shell"), &json!("running"), &json!(line))
    );
    assert_eq!(
        (&job["summary"], &job["chatId"], &job["exitCode"]),
        (&json!("dev-server"), &json!("c"), &Value::Null)
    );
    assert!(
        job["startedAt"].as_str().is_some_and(|at| at.contains('T')) && job["elapsed"].is_string(),
        "{job}"
    );
    assert!(job["chatLabel"].as_str().is_some_and(|label| !label.is_empty()));

    let id = &job["id"];
    let output = client.request("jobs/readOutput", json!({"jobId": id})).await;
    let lines: Vec<&str> =
        output["lines"].as_array().expect("lines").iter().filter_map(|line| line["text"].as_str()).collect();
    assert_eq!(lines, ["one", "two"]);
    assert_eq!((&output["lines"][0]["stream"], &output["status"]), (&json!("stdout"), &json!("running")));

    assert_eq!(client.request("jobs/kill", json!({"jobId": id})).await, json!({"killed": true}));
    client.until(|it| is_update(it, "killed")).await;
    assert_eq!(client.request("jobs/kill", json!({"jobId": id})).await, json!({"killed": false}));
    assert_eq!(client.request("jobs/kill", json!({"jobId": "job-999"})).await, json!({"killed": false}));
    let nothing = client.request("jobs/readOutput", json!({"jobId": "job-999"})).await;
    assert_eq!((&nothing["lines"], &nothing["status"]), (&json!([]), &Value::Null));

    // One that ends by itself.
    let failing = json!({"command": "exit 3", "background": "short"});
    fake.answer(Answer::tool_call("k", "eca__shell_command", failing)).answer(Answer::text("It failed."));
    client.ask("chat/prompt", json!({"chatId": "c", "message": "again"})).await;
    let messages = client.until(|it| is_update(it, "failed")).await;
    let jobs = &messages.last().expect("an update")["params"]["jobs"];
    let failed =
        jobs.as_array().expect("jobs").iter().find(|job| job["status"] == "failed").expect("the job");
    assert_eq!(failed["exitCode"], 3);
}
