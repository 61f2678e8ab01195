//! The description that `dragoman serve` gives of its own API becomes an interface that a person can use.

use apiui::plan::{Options, plan};
use apiui::print::print_whole;
use std::path::Path;

#[test]
fn the_api_of_a_server_has_a_list_of_chats_and_their_details() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/serve/src/openapi.json");
    let reading = crate::shared::read_file(&path).unwrap_or_else(|unusable| panic!("{unusable}"));
    assert_eq!(reading.spec.endpoints.len(), 16);
    let plan = plan(&reading.spec, &Options::default());
    let chats = plan.resources.iter().find(|resource| {
        let list = resource.list.as_ref();
        list.is_some_and(|list| plan.operations[list.operation].path == "/chats")
    });
    let chats = chats.expect("a list of chats");
    let list = chats.list.as_ref().unwrap();
    assert_eq!(list.items, ["chats"], "the items are in the member of that name");
    assert!(list.columns.iter().any(|column| column.field == "title"), "{:?}", list.columns);
    let detail = chats.detail.expect("a detail view");
    assert_eq!(plan.operations[detail].path, "/chats/{key}");
    let key = chats.keys.iter().find(|key| key.parameter == "key").expect("a key of an item");
    assert_eq!((key.field.as_str(), key.guessed), ("key", false));
    assert!(chats.creates.is_some(), "a form for new chats");
    crate::check_controls("serve", &reading.spec, &print_whole(&plan));
}
