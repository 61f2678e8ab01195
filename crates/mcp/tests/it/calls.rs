//! What a call gives, how it is watched, and how it ends early.

use super::*;
use domain::tool_call::Details;

#[tokio::test]
async fn every_kind_of_result_arrives() {
    let bench = Bench::new();
    let options = Options { withheld_environment: vec!["HOME".into()], ..bench.options() };
    let servers = bench.with_options(&[("s", "good")], options);
    reaches(&servers, "s", ServerStatus::Running).await;
    echoes(&servers, "s").await;

    let result = call(&servers, "s__fail", json!({})).await;
    assert_eq!((said(&result.parts).as_str(), result.error), ("it went wrong", true));
    let result = call(&servers, "s__picture", json!({})).await;
    assert_eq!(said(&result.parts), "<image/png>");
    let result = call(&servers, "s__structured", json!({})).await;
    assert_eq!(said(&result.parts), "{\"answer\": 42}");
    assert_eq!(result.details, Some(Details::Json { jsons: vec!["{\"answer\":42}".into()] }));
    let result = call(&servers, "s__list", json!({})).await;
    assert_eq!(said(&result.parts), "[1,\"two\",null]", "structured content may be any JSON value");
    assert_eq!(result.details, Some(Details::Json { jsons: vec!["[1,\"two\",null]".into()] }));
    let result = call(&servers, "s__huge", json!({})).await;
    assert!(said(&result.parts).len() < 70_000);
    assert!(said(&result.parts).contains("Only the first 65536 of 2000000 bytes"));
    for (variable, value) in [("SECRET_KEY", "very-secret-value"), ("HOME", "(not set)")] {
        let result = call(&servers, "s__environment", json!({"text": variable})).await;
        assert_eq!(said(&result.parts), value);
    }
    let roots = call(&servers, "s__roots", json!({})).await;
    let root = bench.folder.path().canonicalize().unwrap();
    assert!(said(&roots.parts).contains(&format!("file://{}", root.display())), "{roots:?}");
    let sampling = call(&servers, "s__sample", json!({})).await;
    assert!(said(&sampling.parts).contains("did not allow this server to use their model"), "{sampling:?}");
}

#[tokio::test]
async fn a_review_trusts_no_hint() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("s", "good")]);
    reaches(&servers, "s", ServerStatus::Running).await;
    let hinted = tool(&servers, "s__echo").review(&json!({}), &scope()).unwrap();
    assert_eq!((hinted.harmless, hinted.changes), (false, false));
    assert_eq!(hinted.summary, "Calling echo of the MCP server s");
    let other = tool(&servers, "s__fail").review(&json!({}), &scope()).unwrap();
    assert_eq!((other.harmless, other.changes), (false, true));
    assert!(tool(&servers, "s__fail").review(&json!([1]), &scope()).is_err());
}

#[tokio::test]
async fn a_call_that_hangs_ends_by_its_deadline_and_the_server_is_told() {
    let bench = Bench::new();
    let options = Options { call_timeout: Duration::from_secs(1), ..bench.options() };
    let servers = bench.with_options(&[("s", "good")], options);
    reaches(&servers, "s", ServerStatus::Running).await;
    let result = call(&servers, "s__hang", json!({})).await;
    assert!(result.error && said(&result.parts).contains("did not answer within 1 s"), "{result:?}");
    assert!(within(LONG, || bench.told("s", "cancelled").len() == 1).await, "the server heard of it");
    echoes(&servers, "s").await;
    // Longer than the deadline, but never so long without a sign of life.
    let port = Port::new(None);
    let result = call_with(&servers, "s__progress", json!({}), port.clone()).await;
    assert_eq!((said(&result.parts).as_str(), result.error), ("done", false));
    let output = port.output.lock().unwrap().clone();
    assert!(output.contains("working (3/5)\n") && output.contains("[warning] nearly there\n"), "{output:?}");
}

#[tokio::test]
async fn a_stopped_call_ends_at_once_and_the_server_is_told() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("s", "good")]);
    reaches(&servers, "s", ServerStatus::Running).await;
    let stop = CancellationToken::new();
    let hang = tool(&servers, "s__hang");
    let run = hang.run(invocation(json!({}), Port::new(None), stop.clone()));
    let (result, ()) = tokio::join!(tokio::time::timeout(LONG, run), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        stop.cancel();
    });
    assert!(said(&result.unwrap().parts).contains("was stopped"));
    assert!(within(LONG, || bench.told("s", "cancelled").len() == 1).await);
    echoes(&servers, "s").await;
}

#[tokio::test]
async fn a_form_reaches_the_user_of_the_call() {
    let bench = Bench::new();
    let options = Options { call_timeout: Duration::from_secs(1), ..bench.options() };
    let servers = bench.with_options(&[("s", "good")], options);
    reaches(&servers, "s", ServerStatus::Running).await;
    let answers = [
        (
            Answer::Form { data: json!({"color": "red"}) },
            json!({"action": "accept", "content": {"color": "red"}}),
        ),
        (Answer::Deny { remember: false, reason: None }, json!({"action": "decline"})),
        (Answer::Cancelled, json!({"action": "cancel"})),
    ];
    for (answer, expected) in answers {
        let port = Port::new(Some(answer));
        let result = call_with(&servers, "s__ask", json!({}), port.clone()).await;
        assert_eq!(serde_json::from_str::<Value>(&said(&result.parts)).unwrap(), expected);
        let asked = port.asked.lock().unwrap();
        let [AskKind::Form { text, schema }] = asked.as_slice() else { panic!("one form") };
        assert_eq!(text, "The MCP server s asks: Which color?");
        assert_eq!(schema["required"], json!(["color"]));
    }
    // The time that a person takes does not count; a stop still ends it.
    let stop = CancellationToken::new();
    let ask = tool(&servers, "s__ask");
    let mut run = ask.run(invocation(json!({}), Port::new(None), stop.clone()));
    assert!(tokio::time::timeout(Duration::from_secs(2), &mut run).await.is_err(), "it still waits");
    stop.cancel();
    assert!(tokio::time::timeout(LONG, run).await.unwrap().error);
    echoes(&servers, "s").await;
}

#[tokio::test]
async fn a_form_without_a_call_is_declined() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("s", "eager")]);
    reaches(&servers, "s", ServerStatus::Running).await;
    assert!(within(LONG, || !bench.told("s", "unasked").is_empty()).await);
    assert_eq!(bench.told("s", "unasked"), [json!({"action": "decline"})]);
}
