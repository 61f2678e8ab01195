//! What a caller may do with the engine, by role and folder: each refusal reaches no engine and is in the audit log.

use std::path::PathBuf;
use std::sync::Arc;

use domain::ask::Answer;
use domain::command::{
    Catalog, Command, Completion, ContextQuery, RollbackScope, ServerSpec, ServerTransport, SessionSettings,
    UserPrompt, WorkspaceSpec,
};
use domain::event::{SessionOpened, SessionUsage};
use domain::host::Grants;
use domain::link::Commands;
use domain::store::ListFilter;
use domain::tool::ServerAction;
use domain::{
    Abilities, AskId, CancellationToken, Fact, Failure, FailureKind, Link, Outcome, SessionId, Store,
};
use serde_json::json;
use serve::{Caller, Guard, Policy, Role, Verified};
use testkit::fake_engine::Seen;
use testkit::{FakeEngine, MemoryStore};

/// An engine with a chat in each of two folders, of which callers have the first.
struct World {
    engine: FakeEngine,
    store: MemoryStore,
    guard: Guard,
    folder: tempfile::TempDir,
}

impl World {
    async fn new(policy: Policy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = FakeEngine::start(Catalog::default());
        let store = MemoryStore::default();
        for name in ["ours", "theirs"] {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            let path = path.canonicalize().unwrap();
            add_chat(&engine, &store, name, vec![path]).await;
        }
        let both = ["ours", "theirs"].map(|name| folder.path().join(name).canonicalize().unwrap());
        add_chat(&engine, &store, "both", both.to_vec()).await;
        add_chat(&engine, &store, "nowhere", Vec::new()).await;
        let guard = Guard::new(engine.engine(), Arc::new(store.clone()), policy);
        Self { engine, store, guard, folder }
    }

    fn ours(&self) -> PathBuf {
        self.folder.path().join("ours").canonicalize().unwrap()
    }

    fn caller(&self, role: Role) -> Caller {
        Caller {
            name: role.as_str().to_owned(),
            role,
            workspaces: vec![self.ours()],
            budget: None,
            ended: CancellationToken::new(),
        }
    }

    async fn link(&self, role: Role) -> Link {
        let link = self.guard.engine_for(self.caller(role)).attach(Abilities::default()).await.unwrap();
        enter(&link.commands, vec![self.ours()]).await.unwrap();
        link
    }

    /// What reached the engine and changes something.
    async fn changes(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Ok(next) =
            tokio::time::timeout(std::time::Duration::from_millis(1), self.engine.next()).await
        {
            if !matches!(next, Seen::Load { .. } | Seen::Detach) {
                seen.push(next);
            }
        }
        seen
    }

    async fn log(&self) -> Vec<(String, String)> {
        let entries = self.guard.audit().read(0, 500).await.unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        entries.iter().map(|entry| (text(&entry.body["who"]), text(&entry.body["action"]))).collect()
    }
}

async fn add_chat(engine: &FakeEngine, store: &MemoryStore, name: &str, workspace: Vec<PathBuf>) {
    let id = SessionId::new(name);
    let first = workspace.first().map_or("/w", |path| path.to_str().unwrap()).to_owned();
    store.lease(&id).await.unwrap();
    let opened = SessionOpened {
        workspace,
        settings: SessionSettings::default(),
        parent: None,
        client: String::new(),
    };
    store.append(&id, vec![Fact::SessionOpened(opened)]).await.unwrap();
    engine.store(&id, SessionSettings::default(), &first, Vec::new());
}

async fn enter(commands: &Commands, roots: Vec<PathBuf>) -> Result<Catalog, Failure> {
    let workspace = WorkspaceSpec { roots, options: None };
    commands.call(|reply| Command::Enter { workspace, reply }).await
}

/// Sends a command that must be refused.
macro_rules! refused {
    ($commands:expr, $make:expr) => {{
        let result = $commands.call($make).await;
        result.map(|_| ()).unwrap_err()
    }};
}

/// Every command of a driver and of an administrator, sent by a caller that may not: what is wrong is the role or the chat.
async fn try_everything(commands: &Commands, chat: &str) -> usize {
    let session = SessionId::new(chat);
    let s = || session.clone();
    let path = PathBuf::from("/etc/passwd");
    let mut refusals = vec![
        refused!(commands, |reply| Command::Fork { session: s(), id: None, until: None, reply }),
        refused!(commands, |reply| Command::Delete { session: s(), reply }),
        refused!(commands, |reply| Command::Rollback {
            session: s(),
            from: None,
            scope: RollbackScope::Both,
            reply
        }),
        refused!(commands, |reply| Command::Configure {
            session: Some(s()),
            change: SessionSettings::default(),
            reply
        }),
        refused!(commands, |reply| Command::Prompt { session: s(), prompt: UserPrompt::default(), reply }),
        refused!(commands, |reply| Command::Steer { session: s(), text: None, reply }),
        refused!(commands, |reply| Command::Answer {
            session: s(),
            ask: AskId(1),
            answer: Answer::Allow { remember: true },
            reply
        }),
        refused!(commands, |reply| Command::ReadFile { session: Some(s()), path: path.clone(), reply }),
        refused!(commands, |reply| Command::Stat { session: Some(s()), path: path.clone(), reply }),
        refused!(commands, |reply| Command::Glob { session: Some(s()), pattern: "*".into(), reply }),
        refused!(commands, |reply| Command::Contexts {
            session: Some(s()),
            query: String::new(),
            kind: ContextQuery::All,
            reply
        }),
        refused!(commands, |reply| Command::SlashCommands {
            session: Some(s()),
            query: String::new(),
            reply
        }),
        refused!(commands, |reply| Command::Jobs { reply }),
        refused!(commands, |reply| Command::StopJob { id: "1".into(), reply }),
        refused!(commands, |reply| Command::JobOutput { id: "1".into(), reply }),
        refused!(commands, |reply| Command::Login { provider: "a".into(), method: None, reply }),
        refused!(commands, |reply| Command::FinishLogin { provider: "a".into(), fields: Vec::new(), reply }),
        refused!(commands, |reply| Command::Logout { provider: "a".into(), reply }),
        refused!(commands, |reply| Command::Providers { reply }),
        refused!(commands, |reply| Command::ServerAction {
            name: "x".into(),
            action: ServerAction::Stop,
            reply
        }),
    ];
    commands.send(Command::Cancel { session: s() }).await.unwrap();
    refusals.push(refused!(commands, |reply| Command::Flag {
        session: s(),
        change: domain::command::FlagChange::Remove { flag: domain::ItemId(1) },
        reply
    }));
    for failure in &refusals {
        assert!(failure.hint.is_some(), "{failure}");
    }
    refusals.len() + 1
}

#[tokio::test]
async fn a_viewer_changes_nothing() {
    let mut world = World::new(Policy::default()).await;
    let link = world.link(Role::View).await;
    let tried = try_everything(&link.commands, "ours").await;
    for failure in [
        refused!(link.commands, |reply| Command::Open {
            id: None,
            workspace: Some(vec![world.ours()]),
            settings: SessionSettings::default(),
            servers: Vec::new(),
            reply
        }),
        refused!(link.commands, |reply| Command::Servers { session: None, reply }),
        refused!(link.commands, |reply| Command::CompleteArgument {
            command: "x".into(),
            arguments: Vec::new(),
            reply
        }),
        refused!(link.commands, |reply| Command::Complete { completion: completion(), deltas: None, reply }),
    ] {
        assert!(failure.message.contains("needs the role drive"), "{failure}");
    }
    let (session, servers) = (SessionId::new("ours"), Vec::new());
    link.commands.call(|reply| Command::Load { session, servers, reply }).await.unwrap();
    assert_eq!(world.changes().await, []);
    let log = world.log().await;
    assert_eq!(log.iter().filter(|entry| **entry == ("view".into(), "refused".into())).count(), tried + 4);
}

fn completion() -> Completion {
    Completion {
        purpose: "rewrite".into(),
        system: String::new(),
        messages: vec!["x".into()],
        output_schema: None,
        middle: None,
        model: None,
        no_local: false,
        gate: Default::default(),
        deadline: std::time::Duration::from_secs(1),
    }
}

/// The chats of another folder, of two folders of which one is another, of none, and of no chat at all.
#[tokio::test]
async fn nobody_reaches_a_chat_outside_of_his_folders() {
    let mut world = World::new(Policy::default()).await;
    for role in [Role::View, Role::Drive, Role::Admin] {
        let link = world.link(role).await;
        for chat in ["theirs", "both", "nowhere", "unknown", "../ours", ""] {
            let (session, servers) = (SessionId::new(chat), Vec::new());
            let load = refused!(link.commands, |reply| Command::Load { session, servers, reply });
            let session = SessionId::new(chat);
            let read = refused!(link.commands, |reply| Command::Read { session, after: 0, limit: 9, reply });
            let session = SessionId::new(chat);
            let close = refused!(link.commands, |reply| Command::Close { session, reply });
            for failure in [load, read, close] {
                assert_eq!(failure.message, "There is no such chat in your folders.");
            }
            if role == Role::Drive {
                try_everything(&link.commands, chat).await;
            }
        }
        let filters = [None, Some(vec![world.folder.path().join("theirs")]), Some(vec!["/".into()])];
        for workspace in filters {
            let filter = ListFilter { workspace, ..ListFilter::default() };
            let listed = link.commands.call(|reply| Command::List { filter, reply }).await.unwrap();
            assert!(listed.iter().all(|chat| chat.workspace == [world.ours()]), "{listed:?}");
        }
    }
    assert_eq!(world.changes().await, []);
}

#[tokio::test]
async fn no_other_folder_is_opened() {
    let mut world = World::new(Policy::default()).await;
    let root = world.folder.path().to_owned();
    let link = world.link(Role::Admin).await;
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.join("theirs"), root.join("ours/link")).unwrap();
    std::fs::create_dir(root.join("ours/inner")).unwrap();
    let folders: Vec<Vec<PathBuf>> = vec![
        vec![],
        vec!["/".into()],
        vec!["".into()],
        vec![".".into()],
        vec!["ours".into()],
        vec![root.clone()],
        vec![root.join("theirs")],
        vec![root.join("ours/../theirs")],
        vec![root.join("ours/link")],
        vec![root.join("ours/inner")],
        vec![root.join("none")],
        vec![root.join("ours"), root.join("theirs")],
        vec![root.join("ours\0")],
        vec!["/proc/self/cwd".into()],
    ];
    for roots in &folders {
        let entered = enter(&link.commands, roots.clone()).await;
        assert!(entered.is_err(), "{roots:?}");
        let opened = link
            .commands
            .call(|reply| Command::Open {
                id: None,
                workspace: Some(roots.clone()),
                settings: SessionSettings::default(),
                servers: Vec::new(),
                reply,
            })
            .await;
        assert!(opened.is_err(), "{roots:?}");
    }
    // An id of a chat elsewhere opens nothing.
    for id in ["theirs", "both", "nowhere"] {
        let opened = refused!(link.commands, |reply| Command::Open {
            id: Some(SessionId::new(id)),
            workspace: Some(vec![root.join("ours")]),
            settings: SessionSettings::default(),
            servers: Vec::new(),
            reply
        });
        assert!(opened.message.contains("no such chat"), "{opened}");
    }
    assert_eq!(world.changes().await, []);
    enter(&link.commands, vec![root.join("theirs/../ours")]).await.unwrap();
}

#[tokio::test]
async fn trust_servers_environment_and_settings_of_a_client_are_refused() {
    let policy = Policy {
        servers: vec!["allowed".into()],
        environment: vec!["LANG".into()],
        settings: vec!["chatBehavior".into()],
        team_budget: None,
    };
    let mut world = World::new(policy).await;
    let link = world.link(Role::Admin).await;
    let commands = &link.commands;
    let trust = || SessionSettings { trust: Some(true), ..SessionSettings::default() };
    let session = || SessionId::new("ours");
    let prompt = UserPrompt { text: "x".into(), change: trust(), ..UserPrompt::default() };
    refused!(commands, |reply| Command::Prompt { session: session(), prompt, reply });
    refused!(commands, |reply| Command::Configure { session: Some(session()), change: trust(), reply });
    refused!(commands, |reply| Command::Configure { session: None, change: trust(), reply });
    refused!(commands, |reply| Command::Open {
        id: None,
        workspace: None,
        settings: trust(),
        servers: Vec::new(),
        reply
    });
    for text in ["/login x", "  /login", "/login\tx"] {
        let prompt = UserPrompt { text: text.into(), ..UserPrompt::default() };
        refused!(commands, |reply| Command::Prompt { session: session(), prompt, reply });
    }
    let contexts = vec![domain::command::Context::Web { url: "http://127.0.0.1:1/".into() }];
    let prompt = UserPrompt { text: "x".into(), contexts, ..UserPrompt::default() };
    refused!(commands, |reply| Command::Prompt { session: session(), prompt, reply });
    let stdio = |name: &str, env: &str| ServerSpec {
        name: name.into(),
        transport: ServerTransport::Stdio {
            command: "sh".into(),
            args: Vec::new(),
            env: if env.is_empty() { Vec::new() } else { vec![(env.into(), "1".into())] },
        },
    };
    let http = ServerSpec {
        name: "x".into(),
        transport: ServerTransport::Http { url: "http://127.0.0.1".into(), headers: Vec::new() },
    };
    for server in [stdio("x", ""), http, stdio("allowed", "LD_PRELOAD"), stdio("Allowed", "")] {
        let servers = vec![stdio("allowed", ""), server];
        refused!(commands, |reply| Command::Load { session: session(), servers: servers.clone(), reply });
        refused!(commands, |reply| Command::Open {
            id: None,
            workspace: None,
            settings: SessionSettings::default(),
            servers,
            reply
        });
    }
    for options in [
        json!({"hooks": {"x": {}, "y": 1}}),
        json!({"trust": true}),
        json!({"chatAgent": {"prompt": "x"}}),
        json!([1]),
        json!("x"),
    ] {
        let workspace = WorkspaceSpec { roots: vec![world.ours()], options: Some(options) };
        refused!(commands, |reply| Command::Enter { workspace, reply });
    }
    for action in [
        ServerAction::Login,
        ServerAction::Logout,
        ServerAction::Enable,
        ServerAction::Disable,
        ServerAction::Remove,
        ServerAction::Add { entry: json!({"command": "sh"}), folder: None },
        ServerAction::Update { changes: json!({"command": "sh"}) },
    ] {
        refused!(commands, |reply| Command::ServerAction { name: "x".into(), action, reply });
    }
    assert_eq!(world.changes().await, []);
    // What says nothing is ignored, and an agent may be chosen in every spelling.
    for options in [
        json!({"chatAgent": null}),
        json!({"hooks": null, "chat": {"defaultModel": null}}),
        json!({"chatAgent": "plan"}),
        json!({"defaultAgent": "plan", "providers": {}}),
    ] {
        let workspace = WorkspaceSpec { roots: vec![world.ours()], options: Some(options) };
        commands.call(|reply| Command::Enter { workspace, reply }).await.unwrap();
    }
    let options = Some(json!({"chatBehavior": "plan"}));
    let workspace = WorkspaceSpec { roots: vec![world.ours()], options };
    commands.call(|reply| Command::Enter { workspace, reply }).await.unwrap();
    let servers = vec![stdio("allowed", "LANG")];
    commands.call(|reply| Command::Load { session: session(), servers, reply }).await.unwrap();
    // A client that sends "no trust" as always changes nothing by it.
    let change =
        SessionSettings { trust: Some(false), title: Some("t".into()), ..SessionSettings::default() };
    commands.call(|reply| Command::Configure { session: Some(session()), change, reply }).await.unwrap();
    assert!(world.changes().await.iter().any(|seen| matches!(
        seen,
        Seen::Configure { change, .. } if change.trust.is_none() && change.title.is_some()
    )));
}

#[tokio::test]
async fn grants_and_abilities_of_a_client_do_not_count() {
    let world = World::new(Policy::default()).await;
    let claimed = Abilities {
        client: "x".repeat(5_000),
        approvals: true,
        questions: true,
        forms: true,
        write_text: true,
        read_text: true,
        terminal: true,
        grants: Grants::ALL,
        ..Abilities::default()
    };
    for (role, may_answer) in [(Role::View, false), (Role::Drive, true)] {
        let link = world.guard.engine_for(world.caller(role)).attach(claimed.clone()).await.unwrap();
        enter(&link.commands, vec![world.ours()]).await.unwrap();
        let seen = world.engine.abilities();
        assert_eq!((seen.approvals, seen.questions, seen.forms), (may_answer, may_answer, may_answer));
        assert_eq!(seen.grants, Grants::NONE);
        assert!(!seen.write_text && !seen.read_text && !seen.terminal && seen.client.len() < 100);
    }
}

/// Ids and names that a client chooses are in lists of everybody and in the log: long ones and those of agents are refused.
#[tokio::test]
async fn ids_and_names_of_a_client_are_short() {
    let mut world = World::new(Policy::default()).await;
    let link = world.link(Role::Admin).await;
    let commands = &link.commands;
    let open = |id: Option<&str>, settings: SessionSettings| {
        let id = id.map(SessionId::new);
        commands.call(|reply| Command::Open { id, workspace: None, settings, servers: Vec::new(), reply })
    };
    let long = "x".repeat(5_000_000);
    for id in [long.as_str(), "", "a\nb", "a\u{1b}[2J", "a\0", "subagent-ours-1"] {
        open(Some(id), SessionSettings::default()).await.unwrap_err();
        let fork = |reply| Command::Fork {
            session: SessionId::new("ours"),
            until: None,
            id: Some(SessionId::new(id)),
            reply,
        };
        refused!(commands, fork);
    }
    let text = || Some(long.clone());
    for settings in [
        SessionSettings { title: text(), ..SessionSettings::default() },
        SessionSettings { model: text(), ..SessionSettings::default() },
        SessionSettings { behavior: text(), ..SessionSettings::default() },
        SessionSettings { variant: text(), ..SessionSettings::default() },
    ] {
        let session = || SessionId::new("ours");
        open(None, settings.clone()).await.unwrap_err();
        let change = settings.clone();
        refused!(commands, |reply| Command::Configure { session: Some(session()), change, reply });
        let prompt = UserPrompt { text: "x".into(), change: settings, ..UserPrompt::default() };
        refused!(commands, |reply| Command::Prompt { session: session(), prompt, reply });
    }
    assert_eq!(world.changes().await, []);
    let log = world.guard.audit().read(0, 500).await.unwrap();
    assert!(log.iter().all(|entry| entry.body.to_string().len() < 2_000));
    open(Some("chat-1"), SessionSettings { title: Some("t".into()), ..SessionSettings::default() })
        .await
        .unwrap();
}

/// What a client attaches is limited by the guard: resources of MCP servers to those that are listed.
#[tokio::test]
async fn resources_that_are_attached_must_be_listed() {
    let mut world = World::new(Policy::default()).await;
    let link = world.link(Role::Drive).await;
    let prompt = UserPrompt { text: "x".into(), ..UserPrompt::default() };
    let session = SessionId::new("ours");
    link.commands.call(|reply| Command::Prompt { session, prompt, reply }).await.unwrap();
    loop {
        if let Seen::Prompt { prompt, .. } = world.engine.next().await {
            assert!(prompt.limits.listed_resources);
            break;
        }
    }
}

#[tokio::test]
async fn a_driver_prompts_pays_and_is_stopped_by_his_budget() {
    let mut world = World::new(Policy { team_budget: Some(10.0), ..Policy::default() }).await;
    let caller = Caller { budget: Some(1.0), ..world.caller(Role::Drive) };
    let link = world.guard.engine_for(caller).attach(Abilities::default()).await.unwrap();
    enter(&link.commands, vec![world.ours()]).await.unwrap();
    let session = || SessionId::new("ours");
    let prompt = || UserPrompt { text: "Go".into(), ..UserPrompt::default() };
    link.commands
        .call(|reply| Command::Prompt { session: session(), prompt: prompt(), reply })
        .await
        .unwrap();
    let (turn, seen) = loop {
        if let Seen::Prompt { turn, prompt, .. } = world.engine.next().await {
            break (turn, prompt);
        }
    };
    assert_eq!(seen.limits.max_cost, Some(1.0), "the turn may use what is left");
    let usage = SessionUsage { session_cost: Some(1.25), ..SessionUsage::default() };
    world.engine.fact(&session(), Fact::TurnStarted { turn, model: "a/b".into() });
    world.engine.fact(&session(), Fact::UsageChanged { usage });
    world.engine.end(&session(), turn, Outcome::Done);
    while world.guard.ledger().spent("drive").await.unwrap() < 1.25 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let failure =
        refused!(link.commands, |reply| Command::Prompt { session: session(), prompt: prompt(), reply });
    assert_eq!(failure.kind, FailureKind::Quota);
    assert_eq!(failure.message, "drive has used $1.25 of $1.00.");
    // Another server over the same store knows it; and another account still has its own budget.
    let again = Guard::new(world.engine.engine(), Arc::new(world.store.clone()), Policy::default());
    assert_eq!(again.ledger().spent("drive").await.unwrap(), 1.25);
    let log = world.log().await;
    for action in ["prompt", "turn", "refused"] {
        assert!(log.contains(&("drive".into(), action.into())), "{action}: {log:?}");
    }
}

/// Calls of one account run beside each other while the most that they can cost fits, and one at a time near the end: the budget
/// is exceeded by one call at most. The same for the budget of all accounts.
#[tokio::test]
async fn parallel_calls_exceed_a_budget_by_one_of_them_at_most() {
    for (budget, team_budget) in [(Some(1.0), None), (None, Some(1.0))] {
        let mut world = World::new(Policy { team_budget, ..Policy::default() }).await;
        let mut gates = Vec::new();
        for name in ["one", "two"] {
            let name = if budget.is_some() { "one" } else { name };
            let caller = Caller { name: name.into(), budget, ..world.caller(Role::Drive) };
            let link = world.guard.engine_for(caller).attach(Abilities::default()).await.unwrap();
            enter(&link.commands, vec![world.ours()]).await.unwrap();
            let session = SessionId::new("ours");
            let prompt = UserPrompt { text: "Go".into(), ..UserPrompt::default() };
            link.commands.call(|reply| Command::Prompt { session, prompt, reply }).await.unwrap();
            let prompt = loop {
                if let Seen::Prompt { prompt, .. } = world.engine.next().await {
                    break prompt;
                }
            };
            gates.push(prompt.limits.gate);
        }
        assert!(gates[0].reserve(None).await.err().unwrap().message.contains("price"));
        let first = gates[0].reserve(Some(0.4)).await.unwrap();
        let second = gates[1].reserve(Some(0.4)).await.unwrap();
        let waiting = gates[0].clone();
        let third = tokio::spawn(async move { waiting.reserve(Some(0.4)).await });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(!third.is_finished(), "it does not fit beside the two");
        first.settle(Some(0.3));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(!third.is_finished(), "0.3 are spent, and 0.4 may still be");
        second.settle(Some(0.4));
        let third = tokio::time::timeout(crate::WAIT, third).await.unwrap().unwrap().unwrap();
        third.settle(Some(0.5));
        let failure = gates[1].reserve(Some(0.0)).await.err().unwrap();
        assert_eq!(failure.kind, FailureKind::Quota);
        assert!(failure.message.contains("has used $1.20 of $1.00"), "{failure}");
        let spent = async {
            let sum = async |name| world.guard.ledger().spent(name).await.unwrap();
            sum("one").await + if budget.is_some() { 0.0 } else { sum("two").await }
        };
        assert!((spent.await - 1.2).abs() < 1e-9, "each call is charged once");
    }
}

#[tokio::test]
async fn a_revoked_caller_loses_its_stream_and_its_commands() {
    let world = World::new(Policy::default()).await;
    let caller = world.caller(Role::Drive);
    let ended = caller.ended.clone();
    let mut link = world.guard.engine_for(caller).attach(Abilities::default()).await.unwrap();
    enter(&link.commands, vec![world.ours()]).await.unwrap();
    ended.cancel();
    let closed = async { while !matches!(link.events.recv().await, domain::queue::Received::Closed) {} };
    tokio::time::timeout(crate::WAIT, closed).await.expect("the events end");
    let session = SessionId::new("ours");
    assert!(link.commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await.is_err());
}

#[tokio::test]
async fn a_changed_log_does_not_verify() {
    let world = World::new(Policy::default()).await;
    let audit = world.guard.audit();
    assert_eq!(audit.verify().await.unwrap(), Verified::Whole { count: 0, head: String::new() });
    let other = serve::Audit::new(Arc::new(world.store.clone()));
    let write = |audit: serve::Audit, who: &'static str| async move {
        for _ in 0..20 {
            let act = serve::Act { who, action: "answer", chat: Some("c"), detail: Some("ask-1 allowed") };
            audit.write(act).await.unwrap();
        }
    };
    // Two processes write at once.
    tokio::join!(write(audit.clone(), "one"), write(other, "two"));
    let Verified::Whole { count, head } = audit.verify().await.unwrap() else { panic!("broken") };
    assert_eq!((count, head.len()), (40, 64));
    // A copy of the log with one entry changed, left out, or put elsewhere.
    let entries = world.store.records(domain::store::AUDIT, "", 100).await.unwrap();
    let changed = |at: usize, change: &dyn Fn(&str) -> Option<String>| {
        let changed = entries.iter().enumerate().filter_map(|(place, (key, value))| {
            let value = if place == at { change(value)? } else { value.clone() };
            Some((key.clone(), value))
        });
        changed.collect::<Vec<_>>().into_iter()
    };
    for at in [0, 7, 39] {
        let forged = |value: &str| Some(value.replace("allowed", "denied"));
        assert_eq!(verify(changed(at, &forged)).await, Verified::Broken { number: at as u64 + 1 });
    }
    let cut = verify(changed(7, &|_| None)).await;
    assert_eq!(cut, Verified::Broken { number: 8 });
}

/// Many people send prompts at once: their entries share the waits for the disk, and each is there when its write returns.
#[tokio::test]
async fn entries_that_come_together_are_written_together() {
    let store = MemoryStore::default();
    let audit = serve::Audit::new(Arc::new(store.clone()));
    let written = (0..200).map(|number| {
        let (audit, store) = (audit.clone(), store.clone());
        tokio::spawn(async move {
            let who = format!("user-{number}");
            audit.write(serve::Act { who: &who, action: "prompt", ..serve::Act::default() }).await.unwrap();
            let entries = store.records(domain::store::AUDIT, "", 500).await.unwrap();
            assert!(entries.iter().any(|(_, value)| value.contains(&format!("\"{who}\""))), "{who}");
        })
    });
    for written in written.collect::<Vec<_>>() {
        written.await.unwrap();
    }
    let Verified::Whole { count, .. } = audit.verify().await.unwrap() else { panic!("broken") };
    assert_eq!(count, 200);
    assert!(store.count_of_groups() < 50, "{} groups", store.count_of_groups());
    // A caller that goes away takes nothing along.
    let left = {
        let audit = audit.clone();
        tokio::spawn(async move { audit.write(serve::Act::default()).await })
    };
    left.abort();
    audit.write(serve::Act::default()).await.unwrap();
    assert!(matches!(audit.verify().await.unwrap(), Verified::Whole { count: 201 | 202, .. }));
}

async fn verify(entries: impl Iterator<Item = (String, String)>) -> Verified {
    let store = MemoryStore::default();
    for (key, value) in entries {
        assert!(store.insert(domain::store::AUDIT, &key, value).await.unwrap());
    }
    serve::Audit::new(Arc::new(store)).verify().await.unwrap()
}

/// Editors open a chat and prompt in it without waiting; a chat that could not be opened is nobody's.
#[tokio::test]
async fn a_chat_that_is_being_opened_can_be_prompted() {
    let world = World::new(Policy::default()).await;
    let link = world.link(Role::Drive).await;
    let open = |id: &str| {
        let (reply, opened) = domain::command::reply();
        let id = Some(SessionId::new(id));
        let settings = SessionSettings::default();
        (Command::Open { id, workspace: None, settings, servers: Vec::new(), reply }, opened)
    };
    let prompt = |id: &str| {
        let (reply, accepted) = domain::command::reply();
        let prompt = UserPrompt { text: "x".into(), ..UserPrompt::default() };
        (Command::Prompt { session: SessionId::new(id), prompt, reply }, accepted)
    };
    let ((first, opened), (second, accepted)) = (open("new"), prompt("new"));
    link.commands.send(first).await.unwrap();
    link.commands.send(second).await.unwrap();
    opened.await.unwrap();
    accepted.await.unwrap();
    world.engine.refuse(Failure::user("No."));
    let (failing, opened) = open("failing");
    link.commands.send(failing).await.unwrap();
    assert!(opened.await.is_err());
    let (after, accepted) = prompt("failing");
    link.commands.send(after).await.unwrap();
    assert!(accepted.await.unwrap_err().message.contains("no such chat"));
}
