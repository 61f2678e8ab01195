//! Changes one member of a JSON file with comments and leaves everything else as it is written.
//!
//! Invariant: the result, read as JSON, is the former value with exactly this member changed; else it is refused.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value};

/// A text with the member at `path` set. Members of an object there that `value` does not name stay; `env` stays too,
/// because the user sets keys in it.
pub(crate) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    let root = parse(text)?;
    let expected = expected_value(&root, path, value)?;
    let mut object = match root.value() {
        None => root.object_value_or_set(),
        Some(_) => root.object_value().ok_or("its root is not an object")?,
    };
    let (last, parents) = path.split_last().ok_or("no member is named")?;
    for name in parents {
        let found = only_member(&object, name)?;
        object = match found {
            None => object.object_value_or_set(name),
            Some(member) => member.object_value().ok_or_else(|| format!("`{name}` is not an object"))?,
        };
    }
    match (only_member(&object, last)?, value) {
        (None, _) => {
            object.append(last, input(value));
        }
        (Some(member), Value::Object(members)) if member.object_value().is_some() => {
            let inner = member.object_value_or_set();
            for (name, value) in members {
                match only_member(&inner, name)? {
                    Some(_) if name == "env" => {}
                    Some(known) if known.to_serde_value().is_some_and(|it| it == *value) => {}
                    Some(known) => known.set_value(input(value)),
                    None => {
                        inner.append(name, input(value));
                    }
                }
            }
        }
        (Some(member), _) => member.set_value(input(value)),
    }
    verified(root.to_string(), &expected)
}

/// The value at `path`, if it is there.
pub(crate) fn get(text: &str, path: &[&str]) -> Result<Option<Value>, String> {
    let value = parse(text)?.to_serde_value().unwrap_or_default();
    let found = path.iter().try_fold(&value, |value, name| value.get(name));
    Ok(found.cloned())
}

/// Whether `set` would change nothing.
pub(crate) fn is_set(text: &str, path: &[&str], value: &Value) -> Result<bool, String> {
    let Some(found) = get(text, path)? else { return Ok(false) };
    Ok(match (value, &found) {
        (Value::Object(members), Value::Object(known)) => {
            members.iter().all(|(name, value)| known.get(name).is_some_and(|it| it == value || name == "env"))
        }
        _ => found == *value,
    })
}

/// A text with the member at `path` as it was in `former`: back to its value, or gone, and so is an object that only
/// existed for it.
pub(crate) fn restore(text: &str, path: &[&str], former: &str) -> Result<String, String> {
    let root = parse(text)?;
    let former = parse(former)?.to_serde_value().unwrap_or_default();
    // The longest part of the path that was there before stays.
    let mut known = &former;
    let mut depth = 0;
    while let Some(inner) = path.get(depth).and_then(|name| known.get(name)) {
        known = inner;
        depth += 1;
    }
    let mut object = root.object_value().ok_or("its root is not an object")?;
    let changed = if depth == path.len() { depth - 1 } else { depth };
    for name in &path[..changed] {
        let member = only_member(&object, name)?.ok_or_else(|| format!("`{name}` is gone"))?;
        object = member.object_value().ok_or_else(|| format!("`{name}` is not an object"))?;
    }
    let Some(name) = path.get(changed) else { return Err("no member is named".to_owned()) };
    let Some(member) = only_member(&object, name)? else { return Ok(text.to_owned()) };
    if depth == path.len() {
        member.set_value(input(known));
        return Ok(root.to_string());
    }
    // Other members that came since keep the object alive.
    let leaf = path[changed + 1..].iter().try_fold(member.clone(), |member, name| {
        let inner = member.object_value()?;
        (inner.properties().len() == 1).then(|| only_member(&inner, name).ok().flatten()).flatten()
    });
    match leaf {
        Some(_) => member.remove(),
        None => remove_leaf(member, &path[changed + 1..])?,
    }
    Ok(root.to_string())
}

fn remove_leaf(member: CstObjectProp, rest: &[&str]) -> Result<(), String> {
    let mut member = member;
    for name in rest {
        let object = member.object_value().ok_or_else(|| format!("`{name}` is gone"))?;
        let Some(inner) = only_member(&object, name)? else { return Ok(()) };
        member = inner;
    }
    member.remove();
    Ok(())
}

fn parse(text: &str) -> Result<CstRootNode, String> {
    // Editors read comments and commas at the end, and nothing looser.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|error| format!("it is not JSON with comments ({error})"))
}

/// The member of a name. Two of one name are ambiguous: programs differ in which one they read.
fn only_member(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, String> {
    let mut found =
        object.properties().into_iter().filter(|member| member.decoded_name().is_some_and(|it| it == name));
    let first = found.next();
    if found.next().is_some() {
        return Err(format!("`{name}` is there twice"));
    }
    Ok(first)
}

fn expected_value(root: &CstRootNode, path: &[&str], value: &Value) -> Result<Value, String> {
    let mut expected = root.to_serde_value().unwrap_or_else(|| Value::Object(Map::new()));
    let mut place = &mut expected;
    for name in path {
        let members =
            place.as_object_mut().ok_or_else(|| format!("the place of `{name}` is not an object"))?;
        place = members.entry(*name).or_insert_with(|| Value::Object(Map::new()));
    }
    match (place.as_object_mut(), value) {
        (Some(members), Value::Object(changed)) => {
            for (name, value) in changed {
                if !(name == "env" && members.contains_key(name)) {
                    members.insert(name.clone(), value.clone());
                }
            }
        }
        _ => *place = value.clone(),
    }
    Ok(expected)
}

fn verified(text: String, expected: &Value) -> Result<String, String> {
    match parse(&text)?.to_serde_value().as_ref() == Some(expected) {
        true => Ok(text),
        false => Err("the change would alter other members".to_owned()),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATH: &[&str] = &["agent_servers", "Dragoman"];

    fn entry() -> Value {
        json!({"command": "/opt/dragoman", "args": ["acp"], "env": {}})
    }

    #[test]
    fn a_member_is_added_and_the_rest_stays_as_written() {
        for (before, kept) in [
            ("", &[][..]),
            ("// only a comment\n", &["// only a comment"][..]),
            ("{}", &[]),
            ("{\n  // a theme\n  \"theme\": \"One\", // trailing\n}\n", &["// a theme", "// trailing"]),
            ("{\"a\":1}", &["\"a\":1"]),
            (
                "{\r\n\t\"a\": [1, 2],\r\n\t/* block */\r\n\t\"agent_servers\": {\r\n\t\t\"Other\": {}\r\n\t}\r\n}\r\n",
                &["/* block */", "\t\t\"Other\": {}"],
            ),
            ("{\"agent_servers\": {} /* none yet */}", &["/* none yet */"]),
        ] {
            let after = set(before, PATH, &entry()).unwrap_or_else(|error| panic!("{before:?}: {error}"));
            assert_eq!(get(&after, PATH), Ok(Some(entry())), "{after}");
            for text in kept {
                assert!(after.contains(text), "{text:?} is gone:\n{after}");
            }
            if before.contains("\r\n") {
                assert!(!after.replace("\r\n", "").contains('\n'), "mixed line ends: {after:?}");
            }
            assert!(is_set(&after, PATH, &entry()).expect("reads"));
            let undone = restore(&after, PATH, before).expect("undone");
            let (undone, before) = (parse(&undone).expect("reads"), parse(before).expect("reads"));
            let value = |root: CstRootNode| root.to_serde_value().unwrap_or_else(|| json!({}));
            assert_eq!(value(undone), value(before));
        }
    }

    #[test]
    fn a_member_that_is_there_keeps_the_rest_of_its_members() {
        let before = "{\"agent_servers\": {\"Dragoman\": {\n  \"command\": \"old\", // mine\n  \"env\": {\"KEY\": \"1\"}, \"favorite\": true}}}";
        let after = set(before, PATH, &entry()).expect("set");
        let value = get(&after, PATH).expect("reads").expect("there");
        assert_eq!(
            value,
            json!({"command": "/opt/dragoman", "env": {"KEY": "1"}, "favorite": true, "args": ["acp"]})
        );
        assert!(after.contains("// mine"), "{after}");
        let undone = restore(&after, PATH, before).expect("undone");
        assert_eq!(get(&undone, PATH).expect("reads"), get(before, PATH).expect("reads"));
    }

    #[test]
    fn undo_leaves_what_came_since() {
        let after = set("{}", PATH, &entry()).expect("set");
        let later = set(&after, &["agent_servers", "Other"], &json!({"command": "x"})).expect("set");
        let undone = restore(&later, PATH, "{}").expect("undone");
        assert_eq!(get(&undone, &["agent_servers"]), Ok(Some(json!({"Other": {"command": "x"}}))));
        // The user removed it already.
        assert_eq!(restore("{\"a\": 1}", PATH, "{}"), Ok("{\"a\": 1}".to_owned()));
    }

    #[test]
    fn a_text_that_is_not_clear_is_refused() {
        for (text, reason) in [
            ("[]", "not an object"),
            ("{\"agent_servers\": 3}", "not an object"),
            ("{\"agent_servers\": {}, \"agent_servers\": {}}", "twice"),
            ("{\"agent_servers\": {\"Dragoman\": {}, \"Dragoman\": {}}}", "twice"),
            ("{\"a\": ", "not JSON"),
            ("{'a': 1}", "not JSON"),
        ] {
            let refused = set(text, PATH, &entry()).expect_err(text);
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }
}
