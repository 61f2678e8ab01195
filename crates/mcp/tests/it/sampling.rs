//! A server that wants the user's model: refused, unless the user allowed it, and asked each time.

use super::*;

fn allowed(bench: &Bench, mode: &str) -> Supervisor {
    let config = ServerConfig { sampling: true, ..ServerConfig::fixed(&bench.spec("s", mode)) };
    let servers = Supervisor::new(vec![config], bench.options());
    servers.start();
    servers
}

fn yes() -> Option<Answer> {
    Some(Answer::Text { text: "Allow this once".into() })
}

#[tokio::test]
async fn a_server_uses_the_model_only_where_the_user_allowed_it_and_says_yes() {
    for mode in ["good", "modern"] {
        let bench = Bench::new();
        let servers = allowed(&bench, mode);
        reaches(&servers, "s", ServerStatus::Running).await;
        let port = Port::new(yes());
        let result = call_with(&servers, "s__sample", json!({}), port.clone()).await;
        let answer: Value =
            serde_json::from_str(&said(&result.parts)).unwrap_or_else(|_| panic!("{result:?}"));
        assert_eq!(answer["content"]["text"], "Paris", "{mode} {answer}");
        assert_eq!((&answer["model"], &answer["stopReason"]), (&json!("test/one"), &json!("endTurn")));
        let asked = port.asked.lock().unwrap().clone();
        let [AskKind::Question { text, .. }] = asked.as_slice() else { panic!("one question: {asked:?}") };
        assert!(
            text.contains("What is the capital of France?") && text.contains("Answer with one word."),
            "{text}"
        );
        assert_eq!(port.sampled.lock().unwrap()[0].max_tokens, Some(20));
        assert!(port.output.lock().unwrap().contains("answered the server: Paris"), "the answer is shown");

        for no in [Answer::Text { text: "Decline".into() }, Answer::Cancelled] {
            let port = Port::new(Some(no));
            let result = call_with(&servers, "s__sample", json!({}), port.clone()).await;
            assert!(said(&result.parts).contains("did not allow this request"), "{mode} {result:?}");
            assert!(port.sampled.lock().unwrap().is_empty(), "the model is not asked");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_allowed_is_told_the_reason_and_nobody_is_asked() {
    for mode in ["good", "modern"] {
        let bench = Bench::new();
        let servers = bench.supervisor(&[("s", mode)]);
        reaches(&servers, "s", ServerStatus::Running).await;
        let port = Port::new(yes());
        let result = call_with(&servers, "s__sample", json!({}), port.clone()).await;
        assert!(said(&result.parts).contains("did not allow this server"), "{mode} {result:?}");
        assert!(port.asked.lock().unwrap().is_empty() && port.sampled.lock().unwrap().is_empty());
        let offered =
            bench.told("s", "received").iter().any(|message| message.to_string().contains("\"sampling\""));
        assert!(!offered, "the capability is not claimed");
    }
}
