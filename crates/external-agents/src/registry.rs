//! Entries of the ACP registry (`agent.json`) → entries of our settings. Pure.

use domain::Failure;
use serde_json::{Value, json};

/// The entry of the settings for an agent of the ACP registry.
pub fn registry_entry(agent: &Value) -> Result<Value, Failure> {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|it| Some(it.as_str()?.to_owned())).collect()
    };
    let distribution = &agent["distribution"];
    for (runner, first) in [("npx", Some("-y")), ("uvx", None)] {
        let way = &distribution[runner];
        if let Some(package) = way["package"].as_str() {
            let words = first.into_iter().map(ToOwned::to_owned).chain([package.to_owned()]);
            let args: Vec<String> = words.chain(texts(&way["args"])).collect();
            let mut entry = json!({"command": runner, "args": args});
            if way["env"].is_object() {
                entry["env"] = way["env"].clone();
            }
            return Ok(entry);
        }
    }
    if distribution["binary"].is_object() {
        return Err(Failure::user("This agent comes as an archive, which Dragoman does not download.")
            .hint("Install it, then: dragoman acp-agents add NAME -- PROGRAM ARGUMENTS"));
    }
    Err(Failure::user("This file is not an agent.json of the ACP registry: it has no `distribution`."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_registry_are_read() {
        let npx = json!({"id": "a", "distribution": {"npx": {"package": "@a/b@1.2.3", "args": ["--acp"], "env": {"A": "b"}}}});
        let expected = json!({"command": "npx", "args": ["-y", "@a/b@1.2.3", "--acp"], "env": {"A": "b"}});
        assert_eq!(registry_entry(&npx).ok(), Some(expected));
        let uvx = json!({"distribution": {"uvx": {"package": "x"}}});
        assert_eq!(registry_entry(&uvx).ok(), Some(json!({"command": "uvx", "args": ["x"]})));
        for broken in
            [json!({}), json!({"distribution": {"binary": {"linux-x86_64": {"cmd": "./x"}}}}), json!([1])]
        {
            assert!(registry_entry(&broken).is_err(), "{broken}");
        }
    }
}
