//! Resources by their own tool, templates, completion of arguments, and what may be kept.

use super::*;

fn uris(resources: Vec<domain::tool::Resource>) -> Vec<String> {
    resources.into_iter().map(|resource| resource.uri).collect()
}

#[tokio::test]
async fn the_model_lists_and_reads_resources_by_a_tool_of_their_server() {
    let bench = Bench::new();
    let servers = bench.supervisor(&[("s", "good"), ("own", "reader")]);
    reaches(&servers, "s", ServerStatus::Running).await;
    reaches(&servers, "own", ServerStatus::Running).await;
    let listed = call(&servers, "s__read_mcp_resource", json!({})).await;
    let listed = said(&listed.parts);
    for part in
        ["note://0", r#""kind":"template","uri":"note://{id}""#, "day://{year}/{month}", "5 of 5 entries"]
    {
        assert!(listed.contains(part), "{part} in {listed}");
    }
    let found = said(&call(&servers, "s__read_mcp_resource", json!({"query": "MONTH"})).await.parts);
    assert!(found.contains("1 of 1 entries") && !found.contains("note://"), "{found}");
    let read = call(&servers, "s__read_mcp_resource", json!({"uri": "note://77"})).await;
    assert!(!read.error && said(&read.parts).contains("the text of note://77"), "{read:?}");

    // Reading is asked about like every call; a list is there already.
    let reader = tool(&servers, "s__read_mcp_resource");
    let review = |input: Value| reader.review(&input, &scope()).unwrap();
    assert_eq!((review(json!({})).harmless, review(json!({"uri": "note://1"})).harmless), (true, false));
    assert_eq!(review(json!({"uri": "note://1"})).summary, "Reading note://1 of the MCP server s");

    // A tool of the server comes before ours.
    let own = tool(&servers, "own__read_mcp_resource");
    assert_eq!(own.spec().description, "A tool with the name of the client's own");
    let same =
        servers.tools().iter().filter(|tool| tool.spec().offered_name() == "own__read_mcp_resource").count();
    assert_eq!(same, 1);
}

#[tokio::test]
async fn a_typed_address_and_the_arguments_of_prompts_are_completed() {
    for mode in ["good", "modern"] {
        let bench = Bench::new();
        let servers = bench.supervisor(&[("s", mode)]);
        reaches(&servers, "s", ServerStatus::Running).await;
        for (typed, expected) in [
            ("note://4", vec!["note://4", "note://40", "note://41"]),
            ("note://99", vec!["note://99"]),
            ("any n", vec!["note://40", "note://41", "note://50"]),
            ("day://20", vec![]),
            ("day://2026/m", vec!["day://2026/m", "day://2026/may%20of%202026"]),
            ("something else", vec![]),
        ] {
            assert_eq!(uris(servers.templated_resources(typed).await), expected, "{mode} {typed}");
        }
        let arguments = |values: &[&str]| values.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(servers.complete_prompt("s:greet", &arguments(&["A"])).await, ["Ada", "Alan Turing"]);
        assert!(servers.complete_prompt("s:greet", &arguments(&["A", "b"])).await.is_empty());
        assert!(servers.complete_prompt("s:unknown", &arguments(&["A"])).await.is_empty());
    }
}

#[tokio::test]
async fn a_resource_is_kept_as_long_as_its_server_says_and_for_this_connection_only() {
    use domain::tool::ServerAction;
    let bench = Bench::new();
    let servers = bench.supervisor(&[("s", "modern")]);
    reaches(&servers, "s", ServerStatus::Running).await;
    for _ in 0..3 {
        assert!(said(&servers.resource("s", "kept://1").await.unwrap()).contains("kept"));
    }
    assert_eq!(bench.told("s", "read"), ["kept://1"]);
    // A resource without a hint is read each time.
    servers.resource("s", "note://1").await.unwrap();
    servers.resource("s", "note://1").await.unwrap();
    let reads = |uri: &str| {
        let received = bench.told("s", "received");
        received.iter().filter(|it| it["method"] == "resources/read" && it["params"]["uri"] == uri).count()
    };
    assert_eq!(reads("note://1"), 2);
    servers.act("s", ServerAction::Stop).await.unwrap();
    servers.act("s", ServerAction::Start).await.unwrap();
    reaches(&servers, "s", ServerStatus::Running).await;
    servers.resource("s", "kept://1").await.unwrap();
    assert_eq!(reads("kept://1"), 2);
}
