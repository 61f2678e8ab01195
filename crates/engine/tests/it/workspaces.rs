//! How long a workspace and its servers live.

use std::path::PathBuf;
use std::time::Duration;

use domain::command::{ServerSpec, ServerTransport, SessionInfo, SessionSettings, UserPrompt, WorkspaceSpec};
use domain::event::{EventBody, Outcome};
use domain::{Command, Failure};
use testkit::{ModelStep, ScriptedAnswer};

use crate::bench::Bench;
use crate::client::{Client, person};

async fn open_in(
    client: &Client,
    folder: &std::path::Path,
    servers: Vec<ServerSpec>,
) -> Result<SessionInfo, Failure> {
    let workspace: Option<Vec<PathBuf>> = Some(vec![folder.to_owned()]);
    let settings = SessionSettings::default();
    client.call(|_, reply| Command::Open { id: None, workspace, settings, servers, reply }).await
}

async fn close(client: &Client, session: &SessionInfo) {
    let session = session.id.clone();
    client.call(|_, reply| Command::Close { session, reply }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_workspace_ends_with_its_last_chat() {
    let bench = Bench::new();
    let client = bench.attach(person()).await;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let first = open_in(&client, folders[0].path(), Vec::new()).await.unwrap();
    let same = open_in(&client, folders[0].path(), Vec::new()).await.unwrap();
    // The front-end works in the second folder from now on.
    let second = open_in(&client, folders[1].path(), Vec::new()).await.unwrap();
    assert_eq!(bench.workspaces.ended(), [false, false], "two chats of one folder share it");
    close(&client, &first).await;
    assert_eq!(bench.workspaces.ended(), [false, false]);
    close(&client, &same).await;
    assert_eq!(bench.workspaces.ended(), [true, false]);
    close(&client, &second).await;
    assert_eq!(bench.workspaces.ended(), [true, false], "the front-end is still in it");
    client.send(Command::Detach).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.workspaces.ended(), [true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_workspace_that_ended_is_resolved_anew() {
    let bench = Bench::new();
    let client = bench.attach(person()).await;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for round in 0..3 {
        for folder in &folders {
            let spec = WorkspaceSpec { roots: vec![folder.path().to_owned()], options: None };
            let catalog = client.call(|_, reply| Command::Enter { workspace: spec, reply }).await.unwrap();
            assert_eq!(catalog.default_model.as_deref(), Some("test/one"));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let ended = bench.workspaces.ended();
        assert_eq!(ended.len(), 2 * (round + 1));
        assert_eq!(ended.iter().filter(|ended| !**ended).count(), 1, "only the present one lives: {ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_chat_and_its_forks_keep_their_folder() {
    let bench = Bench::new();
    let client = bench.attach(person()).await;
    let folder = tempfile::tempdir().unwrap();
    let own = vec![folder.path().canonicalize().unwrap()];
    let chat = open_in(&client, folder.path(), Vec::new()).await.unwrap();
    let session = chat.id.clone();
    let prompt = UserPrompt { text: "hello".into(), ..UserPrompt::default() };
    client.call(|_, reply| Command::Prompt { session, prompt, reply }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let session = chat.id.clone();
    let fork = client.call(|_, reply| Command::Fork { session, until: None, id: None, reply }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for id in [chat.id, fork.id] {
        let other = bench.other_process();
        let joined = other.join(&id).await;
        assert_eq!(other.live.state(&joined.session).unwrap().workspace(), own);
    }
}

/// A front-end loads, prompts or forks a chat of a folder that it has not entered: the settings, rules and servers of the chat's own
/// folder count, not those of the front-end's.
#[tokio::test(start_paused = true)]
async fn a_chat_works_with_the_settings_of_its_own_folder() {
    let bench = Bench::new();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let roots = folders.each_ref().map(|folder| vec![folder.path().to_owned()]);
    let first = bench.attach(person()).await;
    let chat = open_in(&first, folders[1].path(), Vec::new()).await.unwrap();
    close(&first, &chat).await;
    first.send(Command::Detach).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.workspaces.ended(), [true]);
    let client = bench.attach(person()).await;
    let workspace = WorkspaceSpec { roots: roots[0].clone(), options: None };
    client.call(|_, reply| Command::Enter { workspace, reply }).await.unwrap();
    let (session, servers) = (chat.id.clone(), Vec::new());
    let loaded = client.call(|_, reply| Command::Load { session, servers, reply }).await.unwrap();
    assert_eq!(loaded.workspace, roots[1]);
    assert_eq!(bench.workspaces.resolved(), [roots[1].clone(), roots[0].clone(), roots[1].clone()]);
    let session = chat.id.clone();
    let forked =
        client.call(|_, reply| Command::Fork { session, until: None, id: None, reply }).await.unwrap();
    assert_eq!(forked.workspace, roots[1]);
    assert_eq!(bench.workspaces.resolved().len(), 3, "the fork shares the workspace of its folder");
    close(&client, &chat).await;
    close(&client, &forked).await;
    assert_eq!(bench.workspaces.ended(), [true, false, true], "the front-end is where it was");
}

/// Settings are read beside the router: other front-ends do not wait for a slow disk, and the commands of this one keep their
/// order.
#[tokio::test]
async fn a_slow_folder_delays_its_own_front_end_alone() {
    let bench = Bench::new();
    let mut other = bench.client().await;
    let slow = bench.attach(person()).await;
    let (open_gate, gate) = std::sync::mpsc::channel();
    *bench.workspaces.gate.lock().unwrap() = Some(gate);
    let folder = tempfile::tempdir().unwrap();
    let workspace = WorkspaceSpec { roots: vec![folder.path().to_owned()], options: None };
    let change = SessionSettings { model: Some("test/two".into()), ..SessionSettings::default() };
    let opened = SessionSettings::default();
    let (entered, changed, opened, ()) = tokio::join!(
        slow.call(|_, reply| Command::Enter { workspace, reply }),
        slow.call(|_, reply| Command::Configure { session: None, change, reply }),
        slow.call(|_, reply| Command::Open {
            id: None,
            workspace: None,
            settings: opened,
            servers: Vec::new(),
            reply
        }),
        async {
            other.run("go").await;
            open_gate.send(()).unwrap();
        }
    );
    assert!(entered.is_ok() && changed.is_ok());
    let opened = opened.unwrap();
    assert_eq!(opened.workspace, [folder.path().to_owned()], "the folder that was entered before");
    assert_eq!(opened.settings.model.as_deref(), Some("test/two"), "the default that was set before");
}

/// A stop does not wait with the commands that wait for a folder, and nothing begins after a shutdown.
#[tokio::test]
async fn a_stop_and_a_shutdown_are_heard_while_a_folder_is_read() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    bench.answers([ScriptedAnswer::default().then(ModelStep::Hang)]);
    client.prompt("go").await.unwrap();
    let (open_gate, gate) = std::sync::mpsc::channel();
    *bench.workspaces.gate.lock().unwrap() = Some(gate);
    let folder = tempfile::tempdir().unwrap();
    let workspace = WorkspaceSpec { roots: vec![folder.path().to_owned()], options: None };
    let (commands, session) = (client.commands.clone(), client.session.clone());
    let entering = tokio::spawn({
        let commands = commands.clone();
        async move { commands.call(|reply| Command::Enter { workspace, reply }).await }
    });
    while bench.workspaces.gate.lock().unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    commands.send(Command::Cancel { session }).await.unwrap();
    assert_eq!(client.turn_end().await, Outcome::Stopped);
    commands.call(|reply| Command::Shutdown { reply }).await.unwrap();
    assert!(entering.await.unwrap().is_err(), "what waited is refused");
    // Nobody waits there any longer.
    let _ = open_gate.send(());
    let workspace = WorkspaceSpec { roots: vec![folder.path().join("other")], options: None };
    let late = commands.call(|reply| Command::Enter { workspace, reply }).await;
    assert!(late.is_err(), "nothing begins after a shutdown");
}

#[tokio::test(start_paused = true)]
async fn servers_of_a_chat_end_with_it() {
    let bench = Bench::new();
    let client = bench.attach(person()).await;
    let folder = tempfile::tempdir().unwrap();
    let transport = ServerTransport::Http { url: "http://127.0.0.1:1".into(), headers: Vec::new() };
    let servers = vec![ServerSpec { name: "own".into(), transport }];
    let chat = open_in(&client, folder.path(), servers).await.unwrap();
    assert_eq!(bench.workspaces.ended(), [false, false]);
    close(&client, &chat).await;
    assert_eq!(bench.workspaces.ended(), [false, true]);
    let nowhere = open_in(&client, std::path::Path::new("/not/there"), Vec::new()).await;
    assert!(nowhere.unwrap_err().message.contains("/not/there"));
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_reaches_every_front_end() {
    let bench = Bench::new();
    let mut clients = [bench.client().await, bench.client().await];
    bench.publish_change();
    for client in &mut clients {
        client.until(|body| matches!(body, EventBody::Catalog(_)).then_some(())).await;
    }
}

/// Settings that changed while a chat is open are mentioned at the next prompt, once for each change.
#[tokio::test(start_paused = true)]
async fn changed_settings_are_mentioned_once() {
    let bench = Bench::new();
    let mut client = bench.client().await;
    let session = client.session.clone();
    let told = |bench: &Bench| {
        let facts = bench.store.facts(&session).into_iter();
        let notices = facts.filter_map(|recorded| match recorded.fact {
            domain::Fact::Notice { notice } => Some(notice.text),
            _ => None,
        });
        notices.filter(|text| text.contains("changed")).collect::<Vec<_>>()
    };
    for (changed, expected) in [
        (None, vec![]),
        (Some("a changed"), vec!["a changed"]),
        (Some("a changed"), vec!["a changed"]),
        (Some("a and b changed"), vec!["a changed", "a and b changed"]),
        (None, vec!["a changed", "a and b changed"]),
    ] {
        *bench.workspaces.changed_settings.lock().unwrap() = changed.map(str::to_owned);
        client.run("go").await;
        bench.check_state(&session).await;
        assert_eq!(told(&bench), expected, "{changed:?}");
    }
}
