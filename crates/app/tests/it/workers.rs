//! Workers through the real program, a real PostgreSQL server and real repositories: a task ends once, a lost worker's task
//! is gone on with, and nothing is allowed that the worker's settings do not allow.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Answer, FakeModel, PostgresServer, Request};

use crate::client::{Home, fake_provider, run_command};

/// A worker, a queue and a repository of one file.
pub(crate) struct Farm {
    pub(crate) home: Home,
    pub(crate) server: PostgresServer,
    pub(crate) fake: FakeModel,
    pub(crate) config: Value,
}

impl Farm {
    pub(crate) async fn start(name: &str) -> Option<Self> {
        let server = PostgresServer::start()?;
        let (home, fake) = (Home::new(), FakeModel::start().await);
        let repository = home.path().join("repositories/shop");
        make_repository(&repository);
        let mut config = fake_provider(fake.url(), "openai-chat");
        config["sandbox"] = json!("on");
        config["chat"] = json!({"title": false});
        config["store"] = json!(server.database(name));
        config["worker"] = json!({"repositories": [home.path().join("repositories")], "maxAttempts": 100});
        Some(Self { home, server, fake, config })
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.home.path().join("repositories/shop")
    }

    pub(crate) async fn ok(&self, arguments: &[&str]) -> String {
        let (code, out, err) = run_command(&self.home, &self.config, arguments).await;
        assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
        out
    }

    pub(crate) async fn submit(&self, prompt: &str, more: &[&str]) -> String {
        let repository = self.repository();
        let repo = repository.to_str().expect("text");
        let arguments = [&["submit", prompt, "--repo", repo, "--ref", "main", "--json"], more].concat();
        let submitted: Value = serde_json::from_str(&self.ok(&arguments).await).expect("JSON");
        submitted["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn show(&self, id: &str) -> Value {
        serde_json::from_str(&self.ok(&["tasks", "show", id, "--json"]).await).expect("JSON")
    }

    /// The request that follows a call does not wait for the disk.
    async fn wait_for_result(&self, id: &str) {
        let since = Instant::now();
        while !self.ok(&["tasks", "logs", id, "--json"]).await.contains("\"state\": \"done\"") {
            assert!(since.elapsed() < Duration::from_secs(30), "the call has no result");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) fn worker(&self, arguments: &[&str]) -> tokio::process::Child {
        let mut command: tokio::process::Command =
            self.home.command(&[&["worker"], arguments].concat()).into();
        command.env("DRAGOMAN_CONFIG", self.config.to_string()).kill_on_drop(true);
        command.stdin(Stdio::null()).spawn().expect("it starts")
    }

    pub(crate) async fn drain(&self) {
        let ended = tokio::time::timeout(Duration::from_secs(100), self.worker(&["--drain"]).wait()).await;
        assert!(ended.expect("the queue becomes empty").expect("a status").success());
    }
}

pub(crate) fn make_repository(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    git(folder, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(folder.join("README.md"), "# Shop\n").expect("a file");
    git(folder, &["add", "."]);
    git(folder, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first"]);
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(arguments).current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

pub(crate) fn shell(command: &str) -> Answer {
    Answer::tool_call("call", "eca__shell_command", json!({"command": command}))
}

/// A command whose result is not a part of its text.
const WRITE: &str = "echo line >> work.txt && printf 'wri''tten'";

/// One command, then an answer: whatever the history says is done is not asked for again.
pub(crate) fn work_once(request: &Request) -> Answer {
    let is_done = request.body.to_string().contains("written");
    if is_done { Answer::text("It is done.") } else { shell(WRITE) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_leaves_a_branch_a_patch_and_its_chat() {
    let Some(farm) = Farm::start("branch").await else { return };
    // Hooks of the repository do not run.
    let hook = farm.repository().join(".git/hooks/post-checkout");
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", farm.home.path().join("hooked").display()))
        .expect("a hook");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    farm.fake.respond_with(work_once);
    let id = farm.submit("/init @README.md Write a line", &[]).await;
    assert_eq!(farm.show(&id).await["state"], "waiting");
    let mut command: tokio::process::Command = farm.home.command(&["worker", "--drain"]).into();
    command.env("DRAGOMAN_CONFIG", farm.config.to_string()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(100), command.output()).await;
    let output = output.expect("the queue becomes empty").expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with(&format!("done {id} ")) && said.lines().count() == 1, "{said}");

    let task = farm.show(&id).await;
    assert_eq!((&task["state"], &task["attempts"]), (&json!("done"), &json!(1)), "{task:#}");
    assert_eq!(task["outcome"]["text"], "It is done.");
    let branch = task["outcome"]["branch"].as_str().expect("a branch");
    assert_eq!(git(&farm.repository(), &["show", &format!("{branch}:work.txt")]), "line");
    assert_eq!(git(&farm.repository(), &["log", "-1", "--format=%an", branch]), "Dragoman worker");
    assert_eq!(git(&farm.repository(), &["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    assert_eq!(git(&farm.repository(), &["status", "--porcelain"]), "", "the user's own checkout changed");
    let patch = farm.ok(&["tasks", "show", &id, "--patch"]).await;
    assert!(patch.contains("+line") && patch.starts_with("diff --git"), "{patch}");
    assert!(!farm.home.path().join("hooked").exists(), "a hook of the repository ran");
    // The prompt is text alone: no command, no file.
    let first = farm.fake.requests()[0].last_user_text();
    assert!(first.contains("/init @README.md Write a line") && !first.contains("# Shop"), "{first}");

    let logs = farm.ok(&["tasks", "logs", &id]).await;
    assert!(logs.contains("Write a line") && logs.contains("It is done."), "{logs}");
    assert!(farm.ok(&["tasks", "list"]).await.contains(&id));
    assert!(farm.ok(&["tasks", "list", "--state", "running"]).await.contains("no tasks"));
    let (code, _, err) = run_command(&farm.home, &farm.config, &["tasks", "cancel", &id]).await;
    assert!(code == Some(1) && err.contains("ended already"), "{err}");
}

/// The worker dies after a call has finished: the next one goes on from the journal, and the call is not run again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_workers_task_goes_on_from_its_journal() {
    let Some(farm) = Farm::start("takeover").await else { return };
    farm.fake.answer(shell(WRITE));
    farm.fake.answer(Answer::new().say("I think").silence());
    let id = farm.submit("Write a line", &[]).await;
    let mut first = farm.worker(&[]);
    farm.fake.wait_for_requests(2).await;
    farm.wait_for_result(&id).await;
    first.kill().await.expect("kill -9");
    farm.fake.answer(Answer::text("Gone on."));
    farm.drain().await;

    let task = farm.show(&id).await;
    assert_eq!((&task["state"], &task["attempts"]), (&json!("done"), &json!(2)), "{task:#}");
    assert_eq!(task["outcome"]["text"], "Gone on.");
    let branch = task["outcome"]["branch"].as_str().expect("a branch");
    assert_eq!(
        git(&farm.repository(), &["show", &format!("{branch}:work.txt")]),
        "line",
        "the call ran twice"
    );
    let last = farm.fake.last_request();
    assert!(last.last_user_text().contains("do not repeat them"), "{}", last.last_user_text());
    assert!(last.body.to_string().contains("written"), "the result is not in the history");
    assert_eq!(farm.fake.requests().len(), 3);
}

/// A worker on another machine has no files of the lost one: it restores what the queue has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_is_restored_where_the_files_are_gone() {
    let Some(farm) = Farm::start("restored").await else { return };
    farm.fake.answer(shell("printf 'line\\0\\n' >> work.txt"));
    farm.fake.answer(Answer::new().say("I think").silence());
    let id = farm.submit("Write a line", &[]).await;
    let mut first = farm.worker(&[]);
    farm.fake.wait_for_requests(2).await;
    let saved = Instant::now();
    while farm.show(&id).await["patchBytes"] == 0 {
        assert!(saved.elapsed() < Duration::from_secs(60), "the work is not saved");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    first.kill().await.expect("kill -9");
    let checkouts = farm.home.path().join(".local/share/dragoman-tasks");
    std::fs::remove_dir_all(&checkouts).expect("the checkouts of the lost worker");
    git(&farm.repository(), &["worktree", "prune"]);
    farm.fake.answer(Answer::text("Gone on."));
    farm.drain().await;
    let task = farm.show(&id).await;
    assert_eq!(task["state"], "done", "{task:#}");
    let branch = task["outcome"]["branch"].as_str().expect("a branch");
    assert_eq!(git(&farm.repository(), &["show", &format!("{branch}:work.txt")]), "line\0");
    assert!(farm.fake.last_request().last_user_text().contains("were restored"));
}

/// A task that runs is stopped, one that waits never begins; a task beyond the worker's settings is not taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_cancelled_and_refused() {
    let Some(mut farm) = Farm::start("cancelled").await else { return };
    farm.fake.answer(Answer::new().say("I think").silence());
    let running = farm.submit("Think", &[]).await;
    let waiting = farm.submit("Wait", &[]).await;
    assert!(farm.ok(&["tasks", "cancel", &waiting]).await.contains("cancelled"));
    let mut worker = farm.worker(&[]);
    farm.fake.wait_for_requests(1).await;
    assert!(farm.ok(&["tasks", "cancel", &running]).await.contains("stops it"));
    let since = Instant::now();
    while farm.show(&running).await["state"] != "cancelled" {
        assert!(since.elapsed() < Duration::from_secs(30), "the task is not stopped");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(farm.fake.requests().len(), 1, "the task that waited began");
    worker.start_kill().expect("kill");
    worker.wait().await.expect("a status");

    // A call that nobody approved is refused, a deny rule of the task holds, and the limits of the worker do.
    farm.config["worker"]["maxSteps"] = json!(3);
    farm.fake.respond_with(|_| shell("echo never > never.txt"));
    let denied = farm.submit("Try", &["--deny", "shell_command", "--max-steps", "1000"]).await;
    farm.drain().await;
    let task = farm.show(&denied).await;
    assert_eq!(
        (&task["state"], &task["outcome"]["outcome"]),
        (&json!("failed"), &json!("maxSteps")),
        "{task:#}"
    );
    assert_eq!(task["outcome"]["branch"], Value::Null, "the denied call ran");

    // Another folder is no repository of this worker.
    let other = farm.home.path().join("other");
    make_repository(&other);
    let task = farm.ok(&["submit", "x", "--repo", other.to_str().expect("text")]).await;
    let mut command: tokio::process::Command = farm.home.command(&["worker", "--drain", "--json"]).into();
    command.env("DRAGOMAN_CONFIG", farm.config.to_string()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
    let output = output.expect("it does not wait for the task").expect("it starts");
    let line: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((&line["task"], &line["outcome"]), (&json!(task.trim()), &json!("left")), "{line}");
    assert!(line["message"].as_str().is_some_and(|why| why.contains("worker.repositories")), "{line}");
    assert_eq!(farm.show(task.trim()).await["state"], "waiting");

    for bad in ["ext::sh -c true", "http://example.com/x", "file:///etc", "https://me:secret@example.com/x"] {
        let (code, _, err) = run_command(&farm.home, &farm.config, &["submit", "x", "--repo", bad]).await;
        assert!(code == Some(1) && err.contains("neither a folder nor"), "{bad}: {err}");
    }
    // A model hands out no tasks.
    for arguments in [&["submit", "x", "--repo", "."][..], &["tasks", "cancel", &running], &["worker"]] {
        let mut command = farm.home.command(arguments);
        command.env("DRAGOMAN_CONFIG", farm.config.to_string()).env("DRAGOMAN_CHILD", "1");
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("inside a tool call"), "{arguments:?}: {said}");
    }
    for (key, value, expected) in [
        ("repositories", json!([]), "would take no task"),
        ("approve", json!(["everything"]), "unknown word `everything`"),
    ] {
        let mut config = farm.config.clone();
        config["worker"][key] = value;
        let (code, _, err) = run_command(&farm.home, &config, &["worker"]).await;
        assert!(code == Some(1) && err.contains(expected), "{err}");
    }
    farm.config["sandbox"] = json!("off");
    let (code, _, err) = run_command(&farm.home, &farm.config, &["worker"]).await;
    assert!(code == Some(1) && err.contains("in the sandbox"), "{err}");
}

/// A clone over ssh; its branch is pushed only where the worker's settings name the address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_is_pushed_only_where_the_settings_say_so() {
    let Some(mut farm) = Farm::start("pushed").await else { return };
    // A program in the place of ssh, which runs what git asks for on this machine.
    let programs = farm.home.path().join("programs");
    std::fs::create_dir_all(&programs).expect("a folder");
    std::fs::write(programs.join("ssh"), "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n")
        .expect("a program");
    std::fs::set_permissions(programs.join("ssh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a mode");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let address = format!("ssh://git@git.example.com{}", farm.repository().display());
    farm.config["worker"]["repositories"] = json!(["ssh://git@git.example.com"]);
    farm.fake.respond_with(work_once);
    let drain = async |farm: &Farm| {
        let mut command: tokio::process::Command = farm.home.command(&["worker", "--drain"]).into();
        command.env("DRAGOMAN_CONFIG", farm.config.to_string()).env("PATH", &path);
        let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
        let output = output.expect("it ends").expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let submit = async |farm: &Farm| {
        farm.ok(&["submit", "Write", "--repo", &address, "--ref", "main"]).await.trim().to_owned()
    };
    let id = submit(&farm).await;
    drain(&farm).await;
    let task = farm.show(&id).await;
    assert_eq!((&task["state"], &task["outcome"]["pushed"]), (&json!("done"), &Value::Null), "{task:#}");
    assert!(task["patchBytes"].as_u64().is_some_and(|size| size > 0), "{task:#}");
    assert_eq!(git(&farm.repository(), &["branch", "--list", "dragoman/*"]), "");

    farm.config["worker"]["push"] = json!([address]);
    let id = submit(&farm).await;
    drain(&farm).await;
    let task = farm.show(&id).await;
    assert_eq!((&task["state"], &task["outcome"]["pushed"]), (&json!("done"), &json!(address)), "{task:#}");
    assert_eq!(git(&farm.repository(), &["show", &format!("dragoman/{id}:work.txt")]), "line");
    let left =
        std::fs::read_dir(farm.home.path().join(".local/share/dragoman-tasks")).expect("a folder").count();
    assert_eq!(left, 0, "a clone is left behind");
}

/// Random kills of workers and of the database: each task ends once, and its call has run once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_task_ends_once_whatever_is_killed() {
    let scale: usize = std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    let (tasks, workers) = match scale {
        0..10 => (20, 3),
        10..100 => (100, 8),
        _ => (1_000, 8),
    };
    let Some(mut farm) = Farm::start("kills").await else { return };
    farm.fake.respond_with(work_once);
    for number in 0..20 {
        farm.submit(&format!("Write line {number}"), &[]).await;
    }
    // Further tasks are copies of the first one: each start of the program takes a while.
    farm.server.query(
        "kills",
        &format!(
            "INSERT INTO dragoman.tasks (id, prompt, repo, reference, limits)
             SELECT gen_random_uuid()::text, prompt, repo, reference, limits
             FROM (SELECT * FROM dragoman.tasks LIMIT 1) AS first, generate_series(21, {tasks})"
        ),
    );
    // The database counts how often a task ends.
    farm.server.query(
        "kills",
        "CREATE TABLE ends (id text);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN IF new.state IN (''done'', ''failed'', ''cancelled'') THEN INSERT INTO public.ends VALUES (new.id);
             END IF; RETURN new; END';
         CREATE TRIGGER note AFTER UPDATE OF state ON dragoman.tasks FOR EACH ROW EXECUTE FUNCTION note()",
    );
    let began = Instant::now();
    let mut running: Vec<_> = (0..workers).map(|_| farm.worker(&[])).collect();
    let (mut killed, mut stopped) = (0, 0);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let left = "SELECT count(*) FROM dragoman.tasks WHERE state IN ('waiting', 'running')";
    loop {
        tokio::time::sleep(Duration::from_millis(300 + random.below(700))).await;
        // Many tasks have time enough to meet a fault each.
        if random.below(if tasks > 100 { 20 } else { 6 }) == 0 {
            tokio::task::block_in_place(|| {
                farm.server.kill();
                farm.server.resume();
            });
            stopped += 1;
        }
        if tokio::task::block_in_place(|| farm.server.query("kills", left)) == "0" {
            break;
        }
        let at = random.below(workers as u64) as usize;
        // Some time for the tasks themselves.
        if random.below(2) == 0 {
            running[at].kill().await.expect("kill -9");
            running[at] = farm.worker(&[]);
            killed += 1;
        }
        assert!(began.elapsed() < Duration::from_secs(110 + 10 * tasks as u64), "the tasks do not end");
    }
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(farm.server.query("kills", "SELECT count(*) FROM public.ends"), tasks.to_string());
    assert_eq!(farm.server.query("kills", "SELECT count(DISTINCT id) FROM public.ends"), tasks.to_string());
    let done = "SELECT count(*) FROM dragoman.tasks WHERE state = 'done'";
    let failed = "SELECT string_agg(outcome, ' ') FROM dragoman.tasks WHERE state <> 'done'";
    assert_eq!(farm.server.query("kills", done), tasks.to_string(), "{}", farm.server.query("kills", failed));
    // What one worker had alone, with one line, ran once.
    let mut again = 0;
    let shared = farm.server.query("kills", "SELECT id FROM dragoman.tasks WHERE attempts > 1");
    let all = farm.server.query("kills", "SELECT id FROM dragoman.tasks");
    for id in all.lines() {
        let written = git(&farm.repository(), &["show", &format!("dragoman/{id}:work.txt")]);
        if !shared.contains(id) && written == "line" {
            continue;
        }
        // A call that was cut off in the middle has no result; the model may ask for it again.
        let logs: Value =
            serde_json::from_str(&farm.ok(&["tasks", "logs", id, "--json"]).await).expect("JSON");
        let items = logs["items"].as_array().cloned().unwrap_or_default();
        let is_finished = |item: &&Value| item["kind"]["state"] == "done";
        let finished = items.iter().filter(is_finished).count();
        assert!(finished <= 1, "a finished call of {id} ran again: {logs:#}");
        again += written.lines().count() - 1;
    }
    println!(
        "figure: {tasks} tasks over {workers} workers, {killed} workers and {stopped} times the database killed: each ended \
         once; {} tasks had more than one worker, {again} calls that were cut off ran again, 0 finished ones; {seconds:.0} s",
        shared.lines().count()
    );
}

/// The examples in `deploy/` are what their programs take, and their settings are known and valid.
#[tokio::test]
async fn the_examples_of_deployments_are_valid() {
    let deploy = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy"));
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["dragoman-worker@.service", "compose.yaml", "kubernetes.yaml", "config.json"] {
        std::fs::copy(deploy.join(name), folder.path().join(name)).expect("an example");
    }
    for (name, text) in [
        ("worker.env", "ANTHROPIC_API_KEY=x"),
        ("database.txt", "x"),
        ("kustomization.yaml", "resources: [kubernetes.yaml]"),
    ] {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let read = "import json, yaml; documents = list(yaml.safe_load_all(open('kubernetes.yaml')))
assert yaml.safe_load(open('compose.yaml'))['services']['worker']['command'] == ['worker']
assert documents[1]['kind'] == 'Deployment'
open('config-kubernetes.json', 'w').write(documents[0]['data']['config.json'])";
    // The schemas of the published API, of the Python package kubernetes-validate.
    let schema = "import yaml, kubernetes_validate as known
for document in yaml.safe_load_all(open('kubernetes.yaml')):
    known.validate(document, known.latest_version(), strict=True)";
    // Each with a first line that says whether the program is there.
    let checks: [(&[&str], &[&str]); 6] = [
        (&["systemd-analyze", "--version"], &["systemd-analyze", "verify", "./dragoman-worker@.service"]),
        (&["docker", "compose", "version"], &["docker", "compose", "config", "--quiet"]),
        (&["docker-compose", "version"], &["docker-compose", "config", "--quiet"]),
        (&["python3", "-c", "import kubernetes_validate"], &["python3", "-c", schema]),
        (&["kubectl", "version", "--client"], &["kubectl", "kustomize", "."]),
        (&["python3", "-c", "import yaml"], &["python3", "-c", read]),
    ];
    for (probe, check) in checks {
        let run = |line: &[&str]| {
            let mut command = std::process::Command::new(line[0]);
            command.args(&line[1..]).current_dir(folder.path()).env("DATABASE_PASSWORD", "x");
            command.stdin(Stdio::null()).output()
        };
        if !run(probe).is_ok_and(|output| output.status.success()) {
            testkit::skip(format!("{} is not installed", probe.join(" ")));
            continue;
        }
        let output = run(check).expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.trim().is_empty(), "{check:?}: {said}");
    }
    for name in ["config.json", "config-kubernetes.json"] {
        let Ok(text) = std::fs::read_to_string(folder.path().join(name)) else { continue };
        let home = Home::new();
        home.write(".config/dragoman/config.json", &text);
        let mut command = home.command(&["config", "check"]);
        let output = command.env("ANTHROPIC_API_KEY", "x").output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name}: {said}");
        // A project's file sets none of it.
        home.write("work/.dragoman/config.json", r#"{"worker": {"repositories": ["/"]}}"#);
        let output =
            home.command(&["config", "check"]).env("ANTHROPIC_API_KEY", "x").output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("worker") && said.contains("cannot be set by a project"), "{said}");
    }
}

/// A small generator, so that a failing run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
