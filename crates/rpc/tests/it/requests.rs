//! Notifications and requests that this side sends: exact bytes, answers of every shape, deadlines, cancellation.

use crate::support::*;
use rpc::{CancelMethod, End, NotSent, Peer, PeerOptions, RequestError, Transport};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

#[tokio::test]
async fn notifications_are_exact() {
    let pretty = RawValue::from_string("{\n  \"a\":\r\n \"b\\n\"\n}".to_owned()).unwrap();
    type Send = fn(&rpc::Outgoing, &RawValue) -> Result<(), NotSent>;
    let cases: [(Send, &str, &str); 4] = [
        (|out, _| out.notify("x/é", &json!({"a": [1]})), r#""method":"x/é","params":{"a":[1]}"#, ""),
        (|out, _| out.notify("x", &()), r#""method":"x""#, r#","params":null"#),
        (|out, raw| out.notify_raw("x", raw), "\"method\":\"x\",\"params\":{   \"a\":   \"b\\n\" }", ""),
        (|out, raw| out.notify("x", &[raw]), "\"method\":\"x\",\"params\":[{   \"a\":   \"b\\n\" }]", ""),
    ];
    for (send, members, without_version) in cases {
        for (settings, expected) in [
            (PeerOptions::newline(), format!("{{\"jsonrpc\":\"2.0\",{members}}}\n")),
            (threads(), format!("{{{members}{without_version}}}\n")),
        ] {
            let mut client = Client::start(settings);
            send(&client.outgoing(), &pretty).unwrap();
            assert_eq!(client.receive_bytes(expected.len()).await, expected);
        }
    }
    for length in [1, 9, 10, 99, 100, 12_345] {
        let mut client = Client::start(PeerOptions::header());
        client.outgoing().notify("x", &["y".repeat(length)]).unwrap();
        let body = json!({"jsonrpc": "2.0", "method": "x", "params": ["y".repeat(length)]}).to_string();
        let expected = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(client.receive_bytes(expected.len()).await, expected);
    }
}

#[tokio::test]
async fn requests_are_answered_in_any_order_and_shape() {
    let mut client = Client::start(PeerOptions::header());
    let outgoing = client.outgoing();
    let answers: &[(&str, Result<Value, i64>)] = &[
        (r#""result":{"a":1}"#, Ok(json!({"a": 1}))),
        (r#""result":null"#, Ok(Value::Null)),
        (r#""result":"ECA :: Unknown server request""#, Ok(json!("ECA :: Unknown server request"))),
        (r#""result":3,"error":null"#, Ok(json!(3))),
        (r#""error":{"code":-32601,"message":"no","data":{"x":1}}"#, Err(-32601)),
        (r#""error":{"code":-32601,"message":"no"},"result":null"#, Err(-32601)),
        (r#""error":{"message":"no code"}"#, Err(-32603)),
        (r#""error":"only text""#, Err(-32603)),
        (r#""unknown":1"#, Ok(Value::Null)),
    ];
    let requests: Vec<_> =
        answers.iter().map(|_| outgoing.request("ask", &json!({"q": 1}), TIMEOUT)).collect();
    for request in &requests {
        let expected = json!({"jsonrpc": "2.0", "id": request.id(), "method": "ask", "params": {"q": 1}});
        assert_eq!(client.receive().await, expected);
    }
    for (request, (members, _)) in requests.iter().zip(answers).rev() {
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":{},{members}}}"#, request.id())).await;
    }
    for (request, (members, expected)) in requests.into_iter().zip(answers) {
        match (patiently(request.decode::<Value>()).await, expected) {
            (Ok(result), Ok(expected)) => assert_eq!(&result, expected, "{members}"),
            (Err(RequestError::Fault(fault)), Err(code)) => assert_eq!(fault.code, *code, "{members}"),
            (got, _) => panic!("{members}: {got:?}"),
        }
    }
}

#[tokio::test]
async fn answers_nobody_asked_for_are_ignored() {
    let mut client = Client::start(PeerOptions::newline());
    for stray in [
        r#"{"jsonrpc":"2.0","id":99,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":"text","result":1}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","result":1}"#,
        r#"{"jsonrpc":"2.0","id":{},"error":1}"#,
    ] {
        client.send(stray).await;
        client.assert_alive(stray).await;
    }
    let request = client.outgoing().request("ask", &(), TIMEOUT);
    assert_eq!(client.receive().await, json!({"jsonrpc": "2.0", "id": 1, "method": "ask"}));
    client.send(r#"{"id":"1","result":"sloppy: no version, id as a string"}"#).await;
    assert!(patiently(request).await.is_ok());
}

#[tokio::test]
async fn a_deadline_and_a_drop_cancel_at_the_peer() {
    let cancel = CancelMethod { method: "$/cancelRequest", parameter: "id" };
    for configured in [Some(cancel), None] {
        let mut client = Client::start(PeerOptions { cancel: configured, ..PeerOptions::header() });
        let request = client.outgoing().request("slow", &(), Duration::from_millis(30));
        assert_eq!(client.receive().await["id"], 1);
        assert!(matches!(patiently(request).await, Err(RequestError::Deadline)));
        drop(client.outgoing().request("unwanted", &(), TIMEOUT));
        let answered = client.outgoing().request("answered", &(), TIMEOUT);
        client.send(r#"{"jsonrpc":"2.0","id":3,"result":1}"#).await;
        patiently(answered).await.unwrap();
        client.outgoing().notify("last", &()).unwrap();
        let mut expected = vec![
            json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "unwanted"}),
            json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 2}}),
            json!({"jsonrpc": "2.0", "id": 3, "method": "answered"}),
            json!({"jsonrpc": "2.0", "method": "last"}),
        ];
        expected.retain(|message| configured.is_some() || message["method"] != "$/cancelRequest");
        for message in expected {
            assert_eq!(client.receive().await, message);
        }
        client.send(r#"{"jsonrpc":"2.0","id":1,"result":"too late"}"#).await;
        client.assert_alive("a late answer").await;
    }
}

#[tokio::test]
async fn the_end_of_the_connection_settles_requests() {
    let mut client = Client::start(PeerOptions::newline());
    let outgoing = client.outgoing();
    let request = outgoing.request("ask", &(), TIMEOUT);
    tokio::io::AsyncWriteExt::shutdown(&mut client.output).await.unwrap();
    assert!(matches!(patiently(request).await, Err(RequestError::Closed)));
    assert!(matches!(patiently(outgoing.request("ask", &(), TIMEOUT)).await, Err(RequestError::Closed)));
    outgoing.notify("still", &()).unwrap();
    assert_eq!(client.receive().await["method"], "ask");
    assert_eq!(client.receive().await["method"], "still");
    drop(client);
    assert!(matches!(outgoing.notify("gone", &()), Err(NotSent::Closed)));
    assert!(matches!(patiently(outgoing.ready()).await, Err(NotSent::Closed)));
}

#[tokio::test]
async fn params_that_are_no_json_are_told_to_the_caller() {
    let client = Client::start(PeerOptions::newline());
    let bad = BTreeMap::from([((1, 2), 3)]);
    assert!(matches!(client.outgoing().notify("x", &bad), Err(NotSent::Unserializable(_))));
    let request = client.outgoing().request("x", &bad, TIMEOUT);
    assert!(matches!(patiently(request).await, Err(RequestError::Unserializable(_))));
}

#[tokio::test]
async fn two_peers_call_each_other() {
    for settings in [PeerOptions::header(), PeerOptions::newline(), threads()] {
        let (left, right) = tokio::io::duplex(1000);
        let start = |stream, settings| {
            let (input, output) = tokio::io::split(stream);
            let transport = Transport::stream(input, output);
            Peer::start(settings, transport, |out| Scripted {
                outgoing: out.clone(),
                seen: Shared::default(),
            })
            .unwrap()
        };
        let (left, right) = (start(left, settings.clone()), start(right, settings));
        let ask = |peer: &Peer, text: &str| {
            peer.outgoing().request("echo", &[text], TIMEOUT).decode::<[String; 1]>()
        };
        let pairs: Vec<_> =
            (0..200).map(|n| (ask(&left, &format!("l{n}")), ask(&right, &format!("r{n}")))).collect();
        for (number, (from_left, from_right)) in pairs.into_iter().enumerate() {
            assert_eq!(patiently(from_left).await.unwrap(), [format!("l{number}")]);
            assert_eq!(patiently(from_right).await.unwrap(), [format!("r{number}")]);
        }
        assert!(patiently(left.close(TIMEOUT)).await);
        assert_eq!(patiently(right.ended()).await, End::Input);
    }
}
