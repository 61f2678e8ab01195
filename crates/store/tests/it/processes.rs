//! Several real processes on one file, killed at any moment.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use domain::store::Lease;
use domain::{Fact, Store};
use store::Journal;

use crate::{Dice, id, journal, memory_folder, read_all, scale, sqlite};
use testkit::sample::{agent_message, opened, text_of, user_message};

const DIRECTORY: &str = "DRAGOMAN_STORE_TEST_CHILD";
const DEADLINE: Duration = Duration::from_secs(120);

/// Not a test of its own: what the other processes do, one command per line.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let journal = journal(Path::new(&directory)).named("child");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<_> = line.split(' ').collect();
        let answer = runtime.block_on(obey(&journal, &words));
        let mut output = std::io::stdout().lock();
        writeln!(output, "@{answer}").unwrap();
        output.flush().unwrap();
    }
}

async fn obey(journal: &Journal, words: &[&str]) -> String {
    match words {
        ["prompt", name, token] => match prompt(journal, name, token).await {
            Ok(answer) => answer,
            Err(failure) => format!("failed {token} {failure}"),
        },
        ["fill", name, token] => {
            let text = "x".repeat(4000);
            for count in 0.. {
                if let Err(failure) = journal.append(&id(name), vec![user_message(count, &text)]).await {
                    return format!("full {token} {count} {failure}");
                }
            }
            unreachable!()
        }
        ["write", name, size] => {
            journal.lease(&id(name)).await.unwrap();
            let text = "x".repeat(size.parse().unwrap());
            journal.append(&id(name), vec![user_message(9, &text)]).await.unwrap();
            "written".to_owned()
        }
        ["release", name] => {
            journal.release(&id(name)).await.unwrap();
            "released".to_owned()
        }
        // A grandchild that outlives us.
        ["start"] => {
            let mut command = Command::new("sleep");
            command.arg("30").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            format!("started {}", command.spawn().unwrap().id())
        }
        _ => panic!("{words:?}"),
    }
}

async fn prompt(journal: &Journal, name: &str, token: &str) -> Result<String, domain::Failure> {
    if let Lease::HeldBy { holder, .. } = journal.lease(&id(name)).await? {
        return Ok(format!("held {token} {holder}"));
    }
    if journal.newest(&id(name)).await?.is_none() {
        journal.append(&id(name), vec![opened(name, &[])]).await?;
    }
    let told = journal.append(&id(name), vec![user_message(1, token), agent_message(2, token)]).await?;
    Ok(format!("done {token} {} {}", told[0].number, told[1].number))
}

struct Process {
    child: std::process::Child,
    answers: mpsc::Receiver<String>,
}

impl Process {
    fn start(directory: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "processes::child", "--nocapture", "--test-threads=1"]);
        Self::with(command, directory)
    }

    fn with(mut command: Command, directory: &Path) -> Self {
        command
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            // Words of the test harness may precede the first answer.
            for line in output.lines().map_while(Result::ok) {
                if let Some((_, answer)) = line.split_once('@') {
                    let _ = sender.send(answer.to_owned());
                }
            }
        });
        Self { child, answers }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn answer(&self) -> String {
        self.answers.recv_timeout(DEADLINE).expect("no answer")
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.answer()
    }

    /// Ends it as a command ends: nothing more is asked.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    /// SIGKILL; what it still said before it died.
    fn kill(&mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.answers.iter().collect()
    }

    fn holder(&self) -> String {
        format!("child (process {})", self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the processes promised.
#[derive(Default)]
struct Promises {
    sent: HashSet<String>,
    /// Token → number of its first fact.
    kept: HashMap<String, u64>,
    refusals: usize,
}

impl Promises {
    /// True: the prompt was done. False: another process holds the chat.
    fn hear(&mut self, answer: &str, rival: Option<&str>) -> bool {
        let words: Vec<_> = answer.splitn(3, ' ').collect();
        match words[..] {
            ["done", token, numbers] => {
                let (first, last) = numbers.split_once(' ').unwrap();
                let first: u64 = first.parse().unwrap();
                assert_eq!(last.parse::<u64>().unwrap(), first + 1);
                self.kept.insert(token.to_owned(), first);
                true
            }
            ["held", _, holder] => {
                assert_eq!(Some(holder), rival, "refused in the name of a process that is not alive");
                self.refusals += 1;
                false
            }
            _ => panic!("{answer}"),
        }
    }
}

/// Two processes on one file.
struct Pair<'a> {
    directory: &'a Path,
    processes: [Process; 2],
    promises: Promises,
    kills: usize,
}

impl Pair<'_> {
    /// Both prompt at once: `one` what is given, the other a chat of its own.
    fn prompt(&mut self, one: usize, command: &str, dice: &mut Dice) {
        let other = 1 - one;
        let beside = format!("beside-{}", self.promises.sent.len());
        self.processes[other].send(&format!("prompt own-{other} {beside}"));
        self.promises.sent.insert(beside);
        self.processes[one].send(command);
        let rival = self.processes[other].holder();
        if dice.below(12) == 0 {
            std::thread::sleep(Duration::from_micros(dice.below(4000)));
            for answer in self.kill(one) {
                self.promises.hear(&answer, Some(&rival));
            }
            assert!(self.promises.hear(&self.processes[other].answer(), None));
            return;
        }
        assert!(self.promises.hear(&self.processes[other].answer(), None));
        if self.promises.hear(&self.processes[one].answer(), Some(&rival)) {
            return;
        }
        // The chat is free as soon as the other one lets go of it, or is dead.
        if dice.below(6) == 0 {
            assert!(self.kill(other).is_empty());
        } else {
            assert_eq!(self.processes[other].ask("release shared"), "released");
        }
        assert!(self.promises.hear(&self.processes[one].ask(command), None));
    }

    fn kill(&mut self, one: usize) -> Vec<String> {
        self.kills += 1;
        let said = self.processes[one].kill();
        self.processes[one] = Process::start(self.directory);
        said
    }
}

/// Two processes prompt one chat and one chat each, and are killed now and then in the middle of it.
#[test]
fn two_processes_lose_nothing_and_give_no_number_twice() {
    // A killed process loses nothing that it wrote, synced or not.
    let directory = memory_folder();
    let directory = directory.path();
    let prompts = 100 * scale();
    let mut dice = Dice(0x5eed);
    let processes = [Process::start(directory), Process::start(directory)];
    let mut pair = Pair { directory, processes, promises: Promises::default(), kills: 0 };
    for round in 0..prompts {
        let one = dice.below(2) as usize;
        let chat = if dice.below(3) > 0 { "shared".to_owned() } else { format!("own-{one}") };
        pair.promises.sent.insert(format!("t{round}"));
        pair.prompt(one, &format!("prompt {chat} t{round}"), &mut dice);
    }
    let Pair { processes, promises, kills, .. } = pair;
    drop(processes);
    let refusals = promises.refusals;
    assert!(kills > prompts / 50 && refusals > prompts / 10, "{kills} kills, {refusals} refusals");
    let kept = promises.kept.len();
    check_promises(directory, promises);
    println!("figure: {kills} kills of a process while it wrote, {kept} acknowledged prompts, 0 lost");
}

/// What a program sees that copies the database file alone.
fn chats_in_a_copy(directory: &Path) -> usize {
    let copy = memory_folder();
    std::fs::copy(directory.join("chats.sqlite"), copy.path().join("chats.sqlite")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(journal(copy.path()).list(domain::store::ListFilter::default())).unwrap().len()
}

/// Commands that write little and end or are killed: the log does not grow from one to the next, and who ends leaves all chats in
/// the file.
#[test]
fn short_processes_leave_a_short_log_and_all_chats_in_the_file() {
    let directory = memory_folder();
    let directory = directory.path();
    let log = || std::fs::metadata(directory.join("chats.sqlite-wal")).map_or(0, |file| file.len());
    let (mut dice, mut longest, mut kills) = (Dice(0x10c5), 0, 0);
    for round in 0..50 {
        let mut process = Process::start(directory);
        assert!(process.ask(&format!("prompt chat-{round} t{round}")).starts_with("done"));
        assert_eq!(process.ask(&format!("write chat-{round} 400000")), "written");
        longest = longest.max(log());
        // At first nobody lives to its end.
        if round < 25 || dice.below(3) == 0 {
            process.kill();
            kills += 1;
        } else {
            process.end();
            assert_eq!(chats_in_a_copy(directory), round + 1);
            assert_eq!(log(), 0, "nobody has the file open");
        }
    }
    assert!((1 << 20..6 << 20).contains(&longest), "the log was {longest} bytes long");
    println!(
        "figure: 50 short processes, {kills} of them killed: the log was never longer than {longest} bytes"
    );
}

/// Another process has the file open all the time, so the log stays; its content is in the file all the same.
#[test]
fn a_process_that_ends_beside_others_leaves_its_chats_in_the_file() {
    let directory = memory_folder();
    let mut idle = Process::start(directory.path());
    assert!(idle.ask("prompt idle first").starts_with("done"));
    for round in 1..6 {
        let mut process = Process::start(directory.path());
        assert!(process.ask(&format!("prompt chat-{round} t{round}")).starts_with("done"));
        process.end();
        assert_eq!(chats_in_a_copy(directory.path()), round + 1);
    }
    drop(idle);
}

fn check_promises(directory: &Path, promises: Promises) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let journal = journal(directory);
    let mut found = HashMap::new();
    for name in ["shared", "own-0", "own-1"] {
        let stored = runtime.block_on(read_all(&journal, &id(name)));
        assert!(matches!(stored[0].fact, Fact::SessionOpened(_)));
        assert!(stored.iter().zip(1..).all(|(one, number)| one.number == number), "{name} has a gap");
        assert!(stored.windows(2).all(|pair| pair[0].at <= pair[1].at), "{name} goes back in time");
        for pair in stored[1..].chunks(2) {
            let token = text_of(&pair[0].fact);
            assert_eq!(token, text_of(&pair[1].fact), "half a prompt in {name}");
            assert!(promises.sent.contains(token), "nobody prompted {token}");
            assert_eq!(found.insert(token.to_owned(), pair[0].number), None, "{token} is there twice");
        }
    }
    for (token, number) in &promises.kept {
        assert_eq!(found.get(token), Some(number), "{token} was acknowledged");
    }
    let health: String = sqlite(directory).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(health, "ok");
}

#[tokio::test]
async fn a_lease_dies_with_its_process_and_no_child_keeps_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path());
    assert!(process.ask("prompt a first").starts_with("done first"));
    let grandchild = process.ask("start");
    let grandchild = grandchild.strip_prefix("started ").unwrap();

    let journal = journal(directory.path());
    assert_eq!(
        journal.lease(&id("a")).await.unwrap(),
        Lease::HeldBy { holder: process.holder(), address: None }
    );
    // Following it is not refused.
    assert_eq!(read_all(&journal, &id("a")).await.len(), 3);
    process.kill();
    assert!(
        Command::new("kill").args(["-0", grandchild]).status().unwrap().success(),
        "the grandchild is gone"
    );
    let lease = journal.lease(&id("a")).await.unwrap();
    Command::new("kill").arg(grandchild).status().unwrap();
    assert_eq!(lease, Lease::Held);
    let told = journal.append(&id("a"), vec![user_message(3, "mine now")]).await.unwrap();
    assert_eq!(told[0].number, 4);
}

/// The system refuses to let files grow, as a full disk does.
#[cfg(unix)]
#[tokio::test]
async fn a_disk_that_takes_no_more_is_reported_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let exec =
        "trap '' XFSZ; ulimit -f 1200; exec \"$0\" --exact processes::child --nocapture --test-threads=1";
    command.arg("-c").arg(exec).arg(std::env::current_exe().unwrap());
    let mut process = Process::with(command, directory.path());
    assert_eq!(process.ask("prompt a t"), "done t 2 3");
    let answer = process.ask("fill a t");
    let words: Vec<_> = answer.splitn(4, ' ').collect();
    let written: usize = words[2].parse().unwrap();
    assert!(written > 10 && words[3].contains("chats.sqlite") && words[3].contains("space"), "{answer}");
    drop(process);

    // With room again everything acknowledged is there, and it goes on without a gap.
    let journal = journal(directory.path());
    assert_eq!(read_all(&journal, &id("a")).await.len(), written + 3);
    journal.lease(&id("a")).await.unwrap();
    let told = journal.append(&id("a"), vec![user_message(3, "more")]).await.unwrap();
    assert_eq!(told[0].number, written as u64 + 4);
}

/// Another program holds the database for longer than a write may wait.
#[tokio::test]
async fn a_database_that_stays_locked_is_reported_and_works_afterwards() {
    let directory = memory_folder();
    let journal = journal(directory.path());
    testkit::sample::chat(&journal, "a").await;
    let other = sqlite(directory.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let failure = journal.append(&id("a"), vec![user_message(1, "blocked")]).await.unwrap_err();
    assert!(failure.message.contains("locked the chat database"), "{failure}");
    assert!(failure.retry_after.is_some());
    // Readers do not wait for a writer.
    assert_eq!(read_all(&journal, &id("a")).await.len(), 1);
    other.execute_batch("ROLLBACK").unwrap();
    let told = journal.append(&id("a"), vec![user_message(1, "free")]).await.unwrap();
    assert_eq!(told[0].number, 2);
}
