//! The sandbox around agents of other vendors: none of the attempts of `dragoman doctor sandbox` gets out of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Environment, Inputs};
use domain::SessionId;
use domain::agent::AgentOpening;
use external_agents::{ExternalAgents, Surroundings};
use process::Lane;
use process::sandbox::suite::World;

/// A world with the sandbox that a known agent with a state folder gets in it. `None`: there is no whole sandbox here.
async fn lane(world: World) -> Option<Lane> {
    let helper = PathBuf::from(env!("CARGO_BIN_EXE_dragoman"));
    let path = std::env::var("PATH").unwrap_or_default();
    let facts = world.facts(helper, path.clone());
    let settings = r#"{"sandboxMemoryMegabytes": 192, "acpAgents": {"codex": {"command": "sh"}}}"#.to_owned();
    let variables = [("PATH".to_owned(), path), ("DRAGOMAN_CONFIG".to_owned(), settings)];
    let environment = Environment::new(world.home(), variables);
    let resolved = config::resolve(&environment, &Inputs::default());
    let surroundings = Surroundings {
        environment: Arc::new(environment),
        facts: Arc::new(move |_| facts.clone()),
        grants: Some(Vec::new()),
        on_offers: None,
        bridge: None,
    };
    let agents = ExternalAgents::new(&resolved, surroundings);
    let entry = agents.entries().iter().find(|entry| entry.name == "codex").expect("a known agent");
    let opening = AgentOpening {
        chat: SessionId::new("chat"),
        roots: Arc::from([world.workspace()]),
        known: None,
        forbidden_paths: Arc::from([]),
        tainted: false,
        read_only: false,
        tools: Arc::from([]),
    };
    let wall = agents.launcher(entry).wall(&opening, None).await.ok().filter(|wall| wall.is_whole)?;
    Some(Lane { world: Arc::new(world), sandbox: Some(wall.sandbox), allowance: Some(wall.allowance) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_attempt_gets_out_of_the_sandbox_of_an_agent() {
    let tool = Path::new(env!("CARGO_BIN_EXE_dragoman"));
    let first = World::make(Path::new(env!("CARGO_TARGET_TMPDIR")), tool).expect("a world");
    let mut worlds = vec![first];
    for _ in 1..6 {
        worlds.push(worlds[0].make_sibling().expect("a world"));
    }
    let mut lanes = Vec::new();
    for world in worlds {
        let Some(lane) = lane(world).await else {
            return testkit::skip("this system has no complete sandbox");
        };
        lanes.push(lane);
    }
    let outcomes = process::run_escapes(lanes, |_| ()).await.expect("attempts");
    let escaped: Vec<_> = outcomes.iter().filter(|outcome| !outcome.blocked).collect();
    assert!(escaped.is_empty(), "{} of {} got out: {escaped:#?}", escaped.len(), outcomes.len());
}
