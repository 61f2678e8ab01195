//! The shape of every message, as the document writes it. Also of the tests of the program.

use serde_json::Value;

pub(crate) fn check_message(message: &Value, _called: Option<&str>) {
    let mut members: Vec<&str> = message.as_object().expect("an object").keys().map(String::as_str).collect();
    members.sort_unstable();
    assert!(message["id"].is_u64(), "{message}");
    match members.as_slice() {
        ["id", "method", "params"] => assert!(message["method"].is_string(), "{message}"),
        ["id", "result"] => {}
        ["error", "id"] => {
            let error = &message["error"];
            assert!(error["code"].is_i64() && error["message"].is_string(), "{message}");
        }
        _ => panic!("not a message of the protocol: {message}"),
    }
}
