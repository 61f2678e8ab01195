//! Commands that outlive their calls: at their limit, in the background, in a pseudo-terminal; and outputs that do not fit
//! into a result.

use std::time::{Duration, Instant};

use domain::SessionId;
use domain::job::JobStatus;
use domain::tool::ToolSource;
use serde_json::{Value, json};
use tools::outputs::OutputFolder;
use tools::{Limits, Options};

use crate::kit::{Bench, text};

/// The first job that a result names.
fn job_in(told: &str) -> String {
    let at = told.find("job-").unwrap_or_else(|| panic!("no job in {told}"));
    told[at..].chars().take_while(|character| character.is_alphanumeric() || *character == '-').collect()
}

fn act(action: &str, job: &str) -> Value {
    json!({"action": action, "job_id": job})
}

fn with_outputs() -> Bench {
    let mut options = Options::default();
    let folder = tempfile::tempdir().unwrap().keep();
    options.outputs = OutputFolder::new(folder);
    Bench::with(options)
}

/// The file that a result names.
fn file_in(told: &str) -> String {
    let path = told.split(" bytes are in ").nth(1).unwrap_or_else(|| panic!("no file in {}", &told[..200]));
    path.split(": ").next().unwrap().to_owned()
}

#[tokio::test]
async fn a_command_at_its_limit_becomes_a_job_with_its_output_so_far() {
    let bench = Bench::new();
    let line = "echo begun; sleep 1.2; echo later; exit 3";
    let told = bench.good("shell_command", json!({"command": line, "timeout": "300"})).await;
    assert!(told.starts_with("begun\n[still running after"), "{told}");
    let job = job_in(&told);
    // The result names the calls that go on with it.
    assert!(told.contains(&format!(r#"{{"action": "wait", "job_id": "{job}""#)), "{told}");
    let listed = bench.good("background_job", json!({"action": "list"})).await;
    assert!(listed.contains(&job) && listed.contains("(echo): running"), "{listed}");
    let waited = bench.good("background_job", act("wait", &job)).await;
    assert!(waited.contains("exit 3") && waited.ends_with("later"), "{waited}");
    assert!(!waited.contains("begun"), "what was read is not told again: {waited}");
    assert_eq!(bench.source.jobs()[0].status, JobStatus::Failed);
}

#[tokio::test]
async fn a_job_that_is_ended_ends_with_its_whole_tree() {
    let bench = Bench::new();
    let mark = bench.root.join("alive");
    let line = format!("(sleep 2; touch {}) & sleep 30", mark.display());
    let told = bench.good("shell_command", json!({"command": line, "timeout": 200})).await;
    let job = job_in(&told);
    assert!(bench.good("background_job", act("kill", &job)).await.contains("was ended"));
    assert!(bench.good("background_job", act("kill", &job)).await.contains("had ended"));
    assert!(bench.good("background_job", act("read_output", &job)).await.contains("signal"));
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    assert!(!mark.exists(), "a child outlived its job");
}

#[tokio::test]
async fn a_wait_has_a_deadline_and_can_be_stopped() {
    let bench = Bench::new();
    let told = bench.good("shell_command", json!({"command": "sleep 600", "timeout": 50})).await;
    let job = job_in(&told);
    let since = Instant::now();
    let wait = json!({"action": "wait", "job_id": job, "timeout": 200});
    assert!(bench.good("background_job", wait).await.contains("running"));
    let cancel = bench.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel();
    });
    assert!(bench.good("background_job", act("wait", &job)).await.contains("running"));
    assert!(since.elapsed() < Duration::from_secs(5));
    bench.source.shutdown().await;
    assert!(bench.source.jobs().is_empty());
}

#[tokio::test]
async fn where_too_many_jobs_run_a_command_ends_at_its_limit() {
    let bench = Bench::with(Options {
        limits: Limits { background_jobs: 1, ..Limits::default() },
        ..Options::default()
    });
    let line = |timeout: u64| json!({"command": "echo begun; sleep 60", "timeout": timeout});
    bench.good("shell_command", line(100)).await;
    let told = bench.bad("shell_command", line(100)).await;
    assert!(told.contains("begun") && told.contains("1 jobs run already"), "{told}");
    let background = json!({"command": "sleep 60", "background": "x"});
    assert!(bench.bad("shell_command", background).await.contains("jobs run already"));
    bench.source.shutdown().await;
    // A check that must say whether it succeeded goes on in no case.
    let bench = Bench::new();
    let told = bench
        .bad("shell_command", json!({"command": "sleep 60", "timeout": 100, "ends_at_limit": true}))
        .await;
    assert!(told.contains("ended after 100 ms") && bench.source.jobs().is_empty(), "{told}");
}

#[tokio::test]
async fn jobs_run_in_the_background_and_read_what_is_typed() {
    let bench = Bench::new();
    let line = "echo begun; while read -r word; do echo \"got $word\"; done; echo over";
    let told = bench.good("shell_command", json!({"command": line, "background": "server"})).await;
    let job = job_in(&told);
    assert!(told.contains("begun"), "{told}");
    let write = |input: &str| json!({"action": "write", "job_id": job, "input": input});
    let told = bench.good("background_job", write("one")).await;
    assert!(told.contains("got one") && !told.contains("begun"), "{told}");
    assert!(bench.good("background_job", write("two\n")).await.contains("got two"));
    // Ctrl-D ends the input.
    let told = bench.good("background_job", write("\u{4}")).await;
    assert!(told.contains("exit 0") && told.ends_with("over"), "{told}");
    assert!(bench.bad("background_job", write("three")).await.contains("has ended"));
    // Other chats do not see it.
    let mut other = bench;
    other.scope.session = SessionId::new("other");
    for action in ["read_output", "wait", "kill", "write"] {
        assert!(other.bad("background_job", act(action, &job)).await.contains("no job"));
    }
    other.source.shutdown().await;
}

#[tokio::test]
async fn what_is_typed_into_a_job_that_a_person_approved_is_asked() {
    let mut bench = Bench::new();
    let told = bench.good("shell_command", json!({"command": "bash", "background": "x"})).await;
    let write = json!({"action": "write", "job_id": job_in(&told), "input": "rm -rf ."});
    let review = bench.review("background_job", write.clone()).unwrap();
    assert!(!review.harmless && review.changes && review.summary.contains("rm -rf ."), "{review:?}");
    assert!(bench.review("background_job", act("read_output", "job-1")).unwrap().harmless);
    bench.scope.read_only = true;
    assert!(bench.bad("background_job", write).await.contains("plan"));
    bench.source.shutdown().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_asks_runs_in_a_pseudo_terminal_and_is_answered() {
    let bench = Bench::new();
    let ask = r#"[ -t 0 ] && [ -t 1 ] && stty size; read -r -p "Proceed? [y/n] " a; printf '\033[1mgot %s\033[0m\n' "$a""#;
    let told = bench.good("shell_command", json!({"command": ask, "pty": true})).await;
    assert!(told.starts_with("50 200\nProceed? [y/n]\n[silent, perhaps waiting for input"), "{told}");
    let write = json!({"action": "write", "job_id": job_in(&told), "input": "y"});
    let told = bench.good("background_job", write).await;
    assert!(told.contains("exit 0") && told.ends_with("got y"), "{told:?}");
    // Without a terminal the same program is told that there is no input.
    let told = bench.run("shell_command", json!({"command": ask})).await;
    assert!(text(&told).contains("got"), "{}", text(&told));
    // A program in a terminal that ends by itself is a plain result.
    assert_eq!(bench.good("shell_command", json!({"command": "tput cols", "pty": "true"})).await, "200");
}

/// The terminal of the session is the one that was made for it, and a key of it reaches the program.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_pseudo_terminal_is_the_commands_own() {
    let bench = Bench::new();
    let script = "read -r _ _ _ _ _ _ tty _ < /proc/self/stat; echo $tty $(stat -L -c '%Hr %Lr' /proc/self/fd/0)\n\
                  echo through > /dev/tty; exec sleep 60\n";
    bench.write("terminal.sh", script);
    let told = bench.good("shell_command", json!({"command": "bash terminal.sh", "pty": true})).await;
    let mut numbers = told.split_whitespace().map(|word| word.parse::<u64>().unwrap_or_default());
    let (terminal, major, minor) =
        (numbers.next().unwrap(), numbers.next().unwrap(), numbers.next().unwrap());
    let of_device = (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12);
    assert_eq!((terminal, major), (of_device, 136), "{told}");
    assert!(told.contains("through"), "{told}");
    let interrupt = json!({"action": "write", "job_id": job_in(&told), "input": "\u{3}"});
    let told = bench.good("background_job", interrupt).await;
    assert!(told.contains("signal 2") || told.contains("exit 130"), "{told}");
}

#[tokio::test]
async fn the_middle_of_a_long_output_can_be_read_and_searched() {
    let bench = with_outputs();
    let told = bench.good("shell_command", json!({"command": "echo first; seq 3000000; echo last"})).await;
    assert!(told.starts_with("first\n1\n") && told.ends_with("3000000\nlast"), "{}", &told[..40]);
    assert!(told.len() < 60_000, "{}", told.len());
    let file = file_in(&told);
    let size = std::fs::metadata(&file).unwrap().len();
    assert!(told.contains(&format!("all {size} bytes are in")) && size > 20_000_000, "{size}");
    let review = bench.review("read_file", json!({"path": file})).unwrap();
    assert!(review.harmless && review.outside.is_empty(), "{review:?}");
    let read = json!({"path": file, "line_offset": 1_500_000, "limit": 2});
    let middle = bench.good("read_file", read).await;
    let lines: Vec<&str> =
        middle.lines().take(2).filter_map(|line| line.split_once('\t')).map(|it| it.1).collect();
    assert_eq!(lines, ["1500000", "1500001"], "{middle}");
    let found = bench.good("grep", json!({"pattern": "^1234567$", "path": file})).await;
    assert!(found.contains("1234567"), "{found}");
    // The line from which to read on is the first that is left out.
    let offset: usize =
        told.split("line_offset ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let next = bench.good("read_file", json!({"path": file, "line_offset": offset, "limit": 1})).await;
    let shown = told.split("\n[…").next().unwrap();
    let last_shown: usize = shown.lines().last().unwrap().parse().unwrap();
    let text = next.lines().next().and_then(|line| line.split_once('\t')).map(|it| it.1).unwrap_or_default();
    // The last line that is shown may be cut.
    assert!(
        [last_shown, last_shown + 1].iter().any(|number| text.starts_with(&number.to_string())),
        "{last_shown}: {next}"
    );
}

#[tokio::test]
async fn an_output_file_is_open_to_its_own_chat_and_to_readers_alone() {
    let mut bench = with_outputs();
    let told = bench.good("shell_command", json!({"command": "seq 100000"})).await;
    let file = file_in(&told);
    let folder = std::path::Path::new(&file).parent().unwrap().to_owned();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(std::path::Path::new(&file))), (0o700, 0o600));
        // A link out of the folder leads nowhere.
        std::os::unix::fs::symlink("/etc/passwd", folder.join("call-2.txt")).unwrap();
        let link = folder.join("call-2.txt").display().to_string();
        assert!(bench.bad("read_file", json!({"path": link})).await.contains("outside"));
    }
    // The folder itself, writers and other chats are refused.
    let outside = |told: String| assert!(told.contains("outside the workspace"), "{told}");
    outside(bench.bad("grep", json!({"pattern": "1", "path": folder.display().to_string()})).await);
    outside(bench.bad("write_file", json!({"path": file, "content": "x"})).await);
    // In a tainted chat it counts as what the command may have read.
    bench.write(".env", "TOKEN=1");
    assert!(bench.run("read_file", json!({"path": file})).await.taint.is_empty());
    bench.scope.tainted = true;
    assert!(!bench.run("read_file", json!({"path": file})).await.taint.secrets().is_empty());
    bench.scope.session = SessionId::new("other");
    outside(bench.bad("read_file", json!({"path": file})).await);
    bench.source.forget(&SessionId::new("test")).await;
    assert!(!folder.exists());
}
