//! What the tools cost a model before it says a word.

use domain::tool::ToolSource;
use serde_json::json;
use tools::{BuiltInTools, Options};

#[test]
fn all_descriptions_fit_the_first_request() {
    let source = BuiltInTools::new(Options::default());
    let mut total = 0;
    for tool in source.tools() {
        let spec = tool.spec();
        let text = json!({
            "name": spec.offered_name(),
            "description": spec.description,
            "input_schema": spec.input_schema,
        })
        .to_string();
        println!("{:5} {text}", text.len());
        assert_eq!(spec.input_schema["type"], "object", "{text}");
        if spec.name == "edit_file" {
            assert_eq!(spec.input_schema["required"], json!(["path", "original_content", "new_content"]));
        }
        for noise in ["$schema", "title", "$ref", "null", "uint"] {
            assert!(!text.contains(noise), "{noise} in {text}");
        }
        total += text.len();
    }
    println!("{total} bytes");
    assert!(total <= 6_000, "{total} bytes");
}

#[test]
fn disabled_tools_are_not_offered() {
    let mut options = Options::default();
    options.disabled.insert("write_file".to_owned());
    let source = BuiltInTools::new(options);
    let servers = source.servers();
    assert_eq!(servers[0].name, "ECA");
    assert!(servers[0].tools.iter().all(|spec| spec.name != "write_file" && spec.server == "eca"));
    assert_eq!(servers[0].tools.len(), source.tools().len());
}

/// What looks at the files after a change hides nothing of the tool that changes them.
#[test]
fn a_patch_counts_as_the_edits_that_it_can_do() {
    let source = BuiltInTools::new(Options::default());
    let tools = source.tools();
    let patch = tools.iter().find(|tool| tool.spec().name == "apply_patch").unwrap();
    assert_eq!(patch.counts_as(), ["edit_file", "write_file", "move_file"]);
    assert!(patch.text_format().is_some());
}
