//! The peer's requests and notifications: codes, shapes, ids, order, panics, cancellation.

use crate::support::*;
use rpc::{CancelMethod, End, Fault, Framing, PeerOptions};
use serde_json::{Value, json};
use std::time::Duration;

const LSP_CANCEL: CancelMethod = CancelMethod { method: "$/cancelRequest", parameter: "id" };

#[tokio::test]
async fn what_we_write_is_exact() {
    let request = |version| format!("{{{version}\"id\":7,\"method\":\"nothing\",\"params\":null}}");
    let with = request("\"jsonrpc\":\"2.0\",");
    for (settings, request, expected) in [
        (
            PeerOptions::header(),
            &with,
            "Content-Length: 38\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}",
        ),
        (PeerOptions::newline(), &with, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}\n"),
        (threads(), &request(""), "{\"id\":7,\"result\":null}\n"),
        (threads(), &with, "{\"id\":7,\"result\":null}\n"),
    ] {
        let mut client = Client::start(settings);
        client.send(request).await;
        assert_eq!(client.receive_bytes(expected.len()).await, expected);
    }
}

#[tokio::test]
async fn each_error_has_its_code_and_the_connection_goes_on() {
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"echo"}}"#, "x".repeat(2000));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo","params":{}"#, "[".repeat(100_000));
    let cases: &[(&str, Value, i64)] = &[
        ("not json", Value::Null, -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"echo""#, Value::Null, -32700),
        ("\u{0}", Value::Null, -32700),
        (&deep, Value::Null, -32700),
        ("3", Value::Null, -32600),
        ("\"text\"", Value::Null, -32600),
        ("null", Value::Null, -32600),
        ("[]", Value::Null, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"echo"}]"#, Value::Null, -32600),
        ("{}", Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":5}"#, json!(5), -32600),
        (r#"{"id":5,"method":"echo"}"#, json!(5), -32600),
        (r#"{"jsonrpc":"1.0","id":5,"method":"echo"}"#, json!(5), -32600),
        (r#"{"jsonrpc":"2.0","id":5,"method":5}"#, json!(5), -32600),
        (r#"{"jsonrpc":"2.0","id":5,"method":null}"#, json!(5), -32600),
        (r#"{"jsonrpc":"2.0","id":"a","method":"echo","params":"text"}"#, json!("a"), -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"echo"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"echo"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":true,"method":"echo"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}"#, Value::Null, -32600),
        (&long_id, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":5,"method":"no/such"}"#, json!(5), -32601),
        (r#"{"jsonrpc":"2.0","id":5,"method":"typed","params":{"chatId":5}}"#, json!(5), -32602),
        (r#"{"jsonrpc":"2.0","id":5,"method":"typed","params":{}}"#, json!(5), -32602),
        (r#"{"jsonrpc":"2.0","id":5,"method":"typed"}"#, json!(5), -32602),
        (r#"{"jsonrpc":"2.0","id":5,"method":"panic"}"#, json!(5), -32603),
        (r#"{"jsonrpc":"2.0","id":5,"method":"drop"}"#, json!(5), -32603),
        (r#"{"jsonrpc":"2.0","id":5,"method":"unserializable"}"#, json!(5), -32603),
    ];
    for settings in [PeerOptions::header(), PeerOptions::newline()] {
        let mut client = Client::start(settings);
        for (body, id, code) in cases {
            let answer = client.answer_to(body).await;
            let shown = &body[..body.len().min(100)];
            assert_eq!((&answer["id"], &answer["error"]["code"]), (id, &json!(code)), "{shown}: {answer}");
            assert!(answer["error"]["message"].as_str().is_some_and(|text| text.len() > 10), "{answer}");
            assert!(answer.get("result").is_none() && answer["error"].get("data").is_none(), "{answer}");
            client.assert_alive(shown).await;
        }
    }
}

#[tokio::test]
async fn messages_name_what_is_wrong() {
    let mut client = Client::start(threads());
    for (body, part) in [
        (r#"{"id":1,"method":"nonExistentMethod"}"#, "Method not found - 'nonExistentMethod'"),
        (r#"{"id":1,"method":"typed"}"#, "missing field `chatId`"),
        (r#"{"id":1,"method":"typed","params":{"chatId":[]}}"#, "expected a string"),
        ("[]", "batches are not supported"),
        ("{", "EOF while parsing"),
    ] {
        let message =
            client.answer_to(body).await["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(part), "{body}: {message}");
    }
}

#[tokio::test]
async fn ids_come_back_as_they_were() {
    let mut client = Client::start(PeerOptions::newline());
    for id in
        ["0", "-1", "1.50", "1e3", "123456789012345678901234567890", r#""""#, r#""a\u00e9\"b""#, r#""é""#]
    {
        client.send(&format!(r#"{{"jsonrpc":"2.0","method":"nothing","id": {id} }}"#)).await;
        let expected = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":null}}\n");
        assert_eq!(client.receive_bytes(expected.len()).await, expected);
    }
}

#[tokio::test]
async fn shapes_that_are_accepted() {
    let mut client = Client::start(PeerOptions::header());
    let version = r#""jsonrpc":"2.0","id":1"#;
    for (members, result) in [
        (r#""method":"echo","params":null"#, json!(null)),
        (r#""method":"echo""#, json!(null)),
        (r#""method":"echo","params":[1,{"a":"é"}]"#, json!([1, {"a": "é"}])),
        (r#""method":"ech\u006f","params":{}"#, json!({})),
        (r#""params":{"b":1},"method":"echo","unknown":{"x":[1]}"#, json!({"b": 1})),
        (r#""method":"optional""#, json!(null)),
        (r#""method":"optional","params":null"#, json!(null)),
        (r#""method":"optional","params":{"limit":3,"new":1}"#, json!(3)),
        (r#""method":"typed","params":["by position"]"#, json!("by position")),
    ] {
        let answer = client.answer_to(&format!("{{{version},{members}}}")).await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": result}), "{members}");
    }
    client
        .send_bytes(
            b"Content-Length: 51\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"nothing\"}  \r\n   \n\n",
        )
        .await;
    assert_eq!(client.receive().await["id"], 2, "white space counted in the length");
    client.send_bytes(b"Content-Length: 2\r\nContent-Type: a; charset=ascii\r\n\r\n{}").await;
    assert_eq!(client.receive().await["error"]["code"], -32600);
    client.send_bytes(b"\r\nContent-Size: 2\r\n\r\n{}").await;
    assert_eq!(client.receive().await["error"]["code"], -32700);
    client.assert_alive("headers").await;
}

#[tokio::test]
async fn bad_utf8_is_a_parse_error() {
    for settings in [PeerOptions::header(), PeerOptions::newline()] {
        let mut client = Client::start(settings);
        let body = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"x\":\"\xff\"}";
        client.send_bytes(&frame(client.framing, body)).await;
        assert_eq!(client.receive().await["error"]["code"], -32700);
        client.assert_alive("bad utf-8").await;
    }
}

#[tokio::test]
async fn messages_over_the_limit_are_answered_and_skipped() {
    for framing in [Framing::Header, Framing::Newline] {
        let too_large = Fault::new(-32003, "Context too large; send a smaller specification.");
        let settings = PeerOptions { framing, message_limit: 5000, too_large, ..PeerOptions::header() };
        let mut client = Client::start(settings);
        let filler = "x".repeat(300_000);
        let large = |members: &str| format!(r#"{{"jsonrpc":"2.0",{members},"params":["{filler}"]}}"#);
        for (body, id) in [
            (large(r#""id":3,"method":"echo""#), json!(3)),
            (large(r#""method":"echo","id":"a""#), json!("a")),
            (large(r#""method":"note""#), Value::Null),
            (filler.clone(), Value::Null),
            // Where the shown bytes end within the id it is not guessed.
            (large(&format!(r#""method":"{}","id":1234567890"#, "m".repeat(1024 - 40))), Value::Null),
        ] {
            let answer = client.answer_to(&body).await;
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32003)), "{answer}");
            client.assert_alive("a message over the limit").await;
        }
        let request = client.outgoing().request("read", &(), TIMEOUT);
        assert_eq!(client.receive().await["method"], "read");
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":"{filler}"}}"#, request.id())).await;
        assert!(matches!(patiently(request).await, Err(rpc::RequestError::TooLarge)));
    }
}

#[tokio::test]
async fn large_messages_pass_both_ways() {
    for settings in [PeerOptions::header(), PeerOptions::newline()] {
        let mut client = Client::start(settings);
        let size = 6 << 20;
        let answer = client
            .answer_to(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"large","params":[{size}]}}"#))
            .await;
        assert_eq!(answer["result"].as_str().map(str::len), Some(size));
        let text = "é".repeat(size / 4);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"typed","params":{{"chatId":"{text}"}}}}"#);
        assert_eq!(client.answer_to(&body).await["result"], text.as_str());
    }
}

#[tokio::test]
async fn messages_are_handled_in_arrival_order() {
    let mut client = Client::start(PeerOptions::newline());
    let count = 2000;
    let mut input = String::new();
    let mut expected = Vec::new();
    for number in 0..count {
        let prompt = if number % 3 == 0 { "later" } else { "nothing" };
        input += &format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"{prompt}\"}}\n");
        input += &format!("{{\"jsonrpc\":\"2.0\",\"method\":\"stop\",\"params\":{{\"of\":{number}}}}}\n");
        expected.extend([format!("{prompt}#{number}"), format!("stop {{\"of\":{number}}}")]);
    }
    let mut answers = Vec::new();
    for part in input.as_bytes().chunks(50_000) {
        client.send_bytes(part).await;
    }
    for _ in 0..count {
        answers.push(client.receive().await["id"].as_u64().unwrap());
    }
    assert_eq!(client.seen.lock().unwrap().messages, expected);
    answers.sort_unstable();
    assert_eq!(answers, (0..count).collect::<Vec<u64>>(), "each is answered once");
}

#[tokio::test]
async fn an_answer_leaves_before_the_events_it_causes() {
    let mut client = Client::start(PeerOptions::header());
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"answer-then-events"}"#).await;
    assert_eq!(client.receive().await, json!({"jsonrpc": "2.0", "id": 1, "result": "answer"}));
    for number in 0..3 {
        let event = client.receive().await;
        assert_eq!(event, json!({"jsonrpc": "2.0", "method": "event", "params": {"number": number}}));
    }
}

#[tokio::test]
async fn a_panic_in_a_notification_costs_only_it() {
    let mut client = Client::start(PeerOptions::header());
    client.send(r#"{"jsonrpc":"2.0","method":"panic"}"#).await;
    client.assert_alive("a panic").await;
}

#[tokio::test]
async fn the_peer_cancels_a_request() {
    for (cancel, good) in [
        (LSP_CANCEL, r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"x"}}"#),
        (
            CancelMethod { method: "$/cancel_request", parameter: "requestId" },
            r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"_meta":{},"requestId":"x"}}"#,
        ),
    ] {
        let mut client = Client::start(PeerOptions { cancel: Some(cancel), ..PeerOptions::header() });
        client.send(r#"{"jsonrpc":"2.0","id":"x","method":"until-cancelled"}"#).await;
        for useless in [r#"{"id":"y"}"#, r#"{"id":{}}"#, "[]", "null"] {
            client
                .send(&format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{useless}}}"#, cancel.method))
                .await;
        }
        client.assert_alive("cancels of nothing").await;
        client.send(good).await;
        let answer = client.receive().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("x"), &json!(-32800)));
        client.send(good).await;
        client.assert_alive("a second cancel").await;
    }
}

#[tokio::test]
async fn too_many_unanswered_requests_are_refused() {
    let too_many = Fault::new(-32004, "Rate limited");
    let mut client = Client::start(PeerOptions { in_flight_limit: 3, too_many, ..PeerOptions::newline() });
    for number in 0..4 {
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"hold"}}"#)).await;
    }
    let refused = client.receive().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(-32004)));
    let held = std::mem::take(&mut client.seen.lock().unwrap().held);
    held.into_iter().for_each(|responder| responder.succeed("late"));
    for number in 0..3 {
        assert_eq!(client.receive().await["id"], number);
    }
    client.assert_alive("the limit").await;
}

#[tokio::test]
async fn the_end_of_input_is_told_and_answers_still_leave() {
    let mut client = Client::start(PeerOptions::newline());
    client.send_bytes(br#"{"jsonrpc":"2.0","id":1,"method":"later"}"#).await;
    let peer = client.peer.take().unwrap();
    tokio::io::AsyncWriteExt::shutdown(&mut client.output).await.unwrap();
    assert_eq!(patiently(peer.ended()).await, End::Input);
    patiently(peer.answered()).await;
    assert!(patiently(peer.close(Duration::from_secs(5))).await);
    assert_eq!(client.receive().await["result"], "late");
    assert_eq!(client.try_receive().await, None);
}

#[tokio::test]
async fn unanswered_requests_learn_that_the_connection_is_gone() {
    let mut client = Client::start(PeerOptions::newline());
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"hold"}"#).await;
    client.assert_alive("hold").await;
    let responder = client.seen.lock().unwrap().held.pop().unwrap();
    let cancellation = responder.cancellation();
    assert!(!cancellation.is_cancelled());
    drop(client.peer.take());
    patiently(responder.cancelled()).await;
    assert!(cancellation.is_cancelled());
    responder.succeed("nobody reads this");
}
