//! Texts that rules accept and refuse, byte by byte, and walks along all ways through a schema.

use serde_json::{Value, json};

use domain::tool::ToolEffect;
use domain::tool_call::Origin;

use super::*;

fn tool(name: &str, input_schema: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        server: "eca".to_owned(),
        origin: Origin::Native,
        description: "A tool.".to_owned(),
        input_schema,
        effect: ToolEffect::Reads,
    }
}

fn tools() -> Vec<ToolSpec> {
    let read = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}, "deep": {"type": "boolean"}},
        "required": ["path"],
    });
    let find = json!({
        "type": "object",
        "properties": {"kind": {"enum": ["file", "folder"]}, "names": {"type": "array", "items": {"type": "string"}, "maxItems": 2}},
    });
    vec![tool("read", read), tool("find", find)]
}

fn progress(schema: Option<Value>, tools: &[ToolSpec]) -> Progress {
    Progress::new(Rules::new(tools, schema.as_ref()).unwrap(), false)
}

/// How much of `text` is accepted, and whether the answer may end there.
fn accepted(progress: &Progress, text: &str) -> (usize, bool) {
    let mut progress = progress.clone();
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        if !progress.allows(&[byte]) {
            return (at, progress.may_end());
        }
        assert!(progress.push(&[byte]));
    }
    (text.len(), progress.may_end())
}

#[track_caller]
fn check_whole(progress: &Progress, text: &str) {
    assert_eq!(accepted(progress, text), (text.len(), true), "{text}");
}

/// The text is accepted up to `|` and not a byte further.
#[track_caller]
fn check_cut(progress: &Progress, text: &str) {
    let at = text.find('|').unwrap();
    let whole = format!("{}{}", &text[..at], &text[at + 1..]);
    assert_eq!(accepted(progress, &whole).0, at, "{text}");
}

#[test]
fn an_answer_is_json_of_its_schema() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": ["integer", "null"]},
            "kind": {"anyOf": [{"const": "a\"b"}, {"$ref": "#/$defs/list"}]},
        },
        "required": ["name", "age"],
        "$defs": {"list": {"type": "array", "items": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/list"}]}, "minItems": 1}},
    });
    let progress = progress(Some(schema), &[]);
    assert!(progress.is_restricted() && !progress.may_end());
    check_whole(&progress, r#"{"name": "ü\n\u00e4", "age": -12}"#);
    check_whole(&progress, "{\n  \"age\": null,\n  \"name\": \"\",\n  \"kind\": \"a\\\"b\"\n}");
    check_whole(&progress, r#"{"age":0,"kind":[1.5e-3,[[-2],3]],"name":"x"}"#);
    check_cut(&progress, "|Sure: {");
    check_cut(&progress, r#"{"name": "x"|}"#);
    check_cut(&progress, r#"{"name": "x", "|name": "y"}"#);
    check_cut(&progress, r#"{"name": "x", "age": 1|.5}"#);
    check_cut(&progress, r#"{"name": "x", "age": 0|1}"#);
    check_cut(&progress, r#"{"name": |null}"#);
    check_cut(&progress, r#"{"other|": 1}"#.replace("other|", "|other").as_str());
    check_cut(&progress, r#"{"name": "\|x"}"#);
    check_cut(&progress, r#"{"name": "\ud|8"}"#);
    check_cut(&progress, "{\"name\": \"|\n\"}");
    check_cut(&progress, r#"{"name": "x", "age": 1, "kind": [|]}"#);
    check_cut(
        &progress,
        r#"{"name": "x", "age": 1, "kind": "b", |}"#.replace("\"b\", |", "\"|b\", ").as_str(),
    );
    check_cut(&progress, r#"{"name": "x", "age": 1}| and more"#.replace("}| ", "} |").as_str());
}

#[test]
fn open_and_broken_schemas_allow_what_they_do_not_forbid() {
    let open =
        progress(Some(json!({"properties": {"a": {"type": "integer"}}, "additionalProperties": true})), &[]);
    check_whole(&open, r#"{"b": [true, {"x": null}], "ab": 1, "a": 2}"#);
    check_cut(&open, r#"{"a": 1, "a|": 2}"#);
    check_cut(&open, r#"{"a": |"1"}"#);
    for schema in
        [json!(true), json!({}), json!({"type": "alien"}), json!({"$ref": "#/none"}), json!({"$ref": "#"})]
    {
        let any = progress(Some(schema), &[]);
        check_whole(&any, r#"{"a": [1, "x", {}, []], "b": false}"#);
        check_whole(&any, "12");
        check_cut(&any, "|x");
    }
    let merged = json!({
        "allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"$ref": "#/$defs/b"}],
        "$defs": {"b": {"properties": {"b": {"type": "null"}}, "required": ["b"]}},
    });
    let merged = progress(Some(merged), &[]);
    check_whole(&merged, r#"{"b": null, "a": "x"}"#);
    check_cut(&merged, r#"{"a": "x"|}"#);
}

#[test]
fn a_call_fits_the_schema_of_its_tool() {
    let progress = progress(None, &tools());
    assert!(!progress.is_restricted() && progress.may_end());
    check_whole(&progress, "Any text, {\"name\": \"other\"} too, and <tool_calls>.");
    check_whole(
        &progress,
        "I look.\n<tool_call>\n{\"name\": \"eca__read\", \"arguments\": {\"path\": \"a.rs\", \"limit\": 3}}\n</tool_call>\n\
         <tool_call>{\"name\": \"eca__find\"}</tool_call> Done, {} and all.",
    );
    let call = |rest: &str| format!("<tool_call>\n{rest}");
    check_cut(&progress, &call("|I want"));
    check_cut(&progress, &call(r#"{"|arguments": {}}"#));
    check_cut(&progress, &call(r#"{"name": "eca__|write""#));
    check_cut(&progress, &call(r#"{"name": "eca__read"|}"#));
    check_cut(&progress, &call(r#"{"name": "eca__read", "arguments": {|}"#));
    check_cut(&progress, &call(r#"{"name": "eca__read", "arguments": {"|file": "a"}"#));
    check_cut(&progress, &call(r#"{"name": "eca__read", "arguments": {"path": |3"#));
    check_cut(&progress, &call(r#"{"name": "eca__read", "arguments": {"path": "a", "deep": |"yes""#));
    check_cut(&progress, &call(r#"{"name": "eca__find", "arguments": {"kind": "f|ast""#));
    check_cut(&progress, &call(r#"{"name": "eca__find", "arguments": {"names": ["a", "b"|, "c"]"#));
    // Inside of a call the answer may not end; after its object it may.
    assert!(!accepted(&progress, "<tool_call>").1);
    assert!(accepted(&progress, "<tool_call>{\"name\": \"eca__find\"}").1);
}

#[test]
fn a_call_without_marks_is_known_by_its_tool() {
    let progress = progress(None, &tools());
    for start in ["", "First:\n```json\n", "So:\n\n  "] {
        let text = format!(
            "{start}{{\n  \"name\": \"eca__read\",\n  \"parameters\": {{\"path\": \"a\"}}\n}}\n``` end"
        );
        check_whole(&progress, &text);
        check_cut(&progress, &format!("{start}{{\"name\": \"eca__read\", \"arg|s\": 1}}"));
    }
    check_whole(&progress, r#"{"name": "Ann", "age": 3}"#);
    check_whole(&progress, r#"In a line {"name": "eca__read", "x": 3}"#);
    let thinking = Progress::new(Rules::new(&tools(), None).unwrap(), true);
    check_whole(&thinking, "maybe <tool_call> x </think> yes");
    check_cut(&thinking, "hm</think><tool_call>|x");
}

#[test]
fn with_a_schema_a_call_may_come_first() {
    let progress = progress(Some(json!({"type": "integer"})), &tools());
    check_whole(&progress, "42");
    check_whole(&progress, "<tool_call>\n{\"name\": \"eca__find\"}\n</tool_call>");
    check_whole(
        &progress,
        "<tool_call>{\"name\": \"eca__find\"}</tool_call>\n<tool_call>{\"name\": \"eca__find\"}</tool_call>\n",
    );
    check_cut(&progress, "<tool_call>{\"name\": \"eca__find\"}</tool_call>\n|4");
    check_cut(&progress, "4|<");
}

#[test]
fn a_schema_that_doubles_itself_costs_no_time() {
    let endless = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    assert_eq!(accepted(&progress(Some(endless), &[]), "1").0, 0, "no value is of this schema");
    // Bound by more than its alternatives, it is cut at some depth, and any object is allowed there.
    let bound = json!({"type": "object", "anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
    assert_eq!(accepted(&progress(Some(bound), &[]), "{").0, 1);
    let twice = json!({"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "array", "items": {"$ref": "#"}}, {"type": "null"}]});
    check_whole(&progress(Some(twice), &[]), &format!("{}null{}", "[".repeat(40), "]".repeat(40)));
}

/// Whatever bytes are chosen among the allowed ones, the end is a value of the schema.
#[test]
fn every_way_through_a_schema_ends_in_a_valid_value() {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"}, "count": {"type": "integer"}, "is": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": ["number", "null"]}, "minItems": 1, "maxItems": 3},
            "kind": {"enum": ["one", "two", 3]}, "deep": {"$ref": "#"},
        },
        "required": ["text", "kind"],
    });
    let start = progress(Some(schema), &[]);
    let mut seed = 7u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..60 {
        let (mut progress, mut text) = (start.clone(), Vec::new());
        while !progress.may_end() {
            // Signs that close something come first after a while, so that each text ends.
            let closing = b"\"}],:0123456789".as_slice();
            let all: Vec<u8> = (0x20..0x7f).chain([b'\n', 0xc3, 0xa4, 0xf0, 0x9f]).collect();
            let list = if text.len() > 200 { closing.to_vec() } else { all.clone() };
            let possible = |list: &[u8]| {
                list.iter().copied().filter(|&byte| progress.allows(&[byte])).collect::<Vec<_>>()
            };
            let mut bytes = possible(&list);
            if bytes.is_empty() {
                bytes = possible(&(0..=255).collect::<Vec<u8>>());
            }
            assert!(!bytes.is_empty(), "no way on after {}", String::from_utf8_lossy(&text));
            let byte = bytes[random(bytes.len())];
            assert!(progress.push(&[byte]));
            text.push(byte);
            assert!(text.len() < 20_000);
        }
        let value: Value = serde_json::from_slice(&text)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
        check_value(&value);
    }
}

fn check_value(value: &Value) {
    let object = value.as_object().unwrap();
    assert!(
        object["text"].is_string() && [json!("one"), json!("two"), json!(3)].contains(&object["kind"]),
        "{value}"
    );
    assert!(
        object.get("count").is_none_or(|count| count.is_number() && !count.to_string().contains('.')),
        "{value}"
    );
    assert!(object.get("is").is_none_or(Value::is_boolean), "{value}");
    if let Some(list) = object.get("list") {
        let list = list.as_array().unwrap();
        assert!(
            (1..=3).contains(&list.len()) && list.iter().all(|item| item.is_number() || item.is_null()),
            "{value}"
        );
    }
    assert!(object.keys().all(|key| ["text", "count", "is", "list", "kind", "deep"].contains(&key.as_str())));
    object.get("deep").into_iter().for_each(check_value);
}
