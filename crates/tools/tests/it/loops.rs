//! Command sequences as agents run them: installs, long tests, servers, questions, huge outputs. Stand-ins of the real
//! programs run in small time: the limit is half a second in place of two minutes.
//!
//! Prints the rows of the set "loops" of docs/quality.md.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use domain::tool::ToolSource;
use serde_json::{Value, json};
use tools::outputs::OutputFolder;
use tools::{Limits, Options};

use crate::kit::{Bench, text};

/// The stand-in of two minutes.
const LIMIT: Duration = Duration::from_millis(500);
/// No step may take longer.
const LONGEST_STEP: Duration = Duration::from_secs(15);

/// What an agent does, and what it must learn from the result to go on.
enum Step {
    Run(&'static str, &'static str),
    /// In a pseudo-terminal.
    Interact(&'static str, &'static str),
    Background(&'static str, &'static str),
    Wait(&'static str),
    /// Waits for the end of the command, where it is a job.
    Finish,
    Read(&'static str),
    Type(&'static str, &'static str),
    End(&'static str),
    /// Searches the file that the last result names.
    Search(&'static str, &'static str),
}

use Step::{Background, End, Finish, Interact, Read, Run, Search, Type, Wait};

struct Sequence {
    kind: &'static str,
    name: &'static str,
    /// The stand-in program, as `./program` in the workspace.
    program: &'static str,
    steps: &'static [Step],
}

const SEQUENCES: &[Sequence] = &[
    Sequence {
        kind: "install",
        name: "silent for longer than the limit",
        program: "sleep 1.5; echo added 214 packages; mkdir -p modules; touch modules/done",
        steps: &[Run("./program", "job-"), Wait("added 214 packages"), Run("ls modules", "done")],
    },
    Sequence {
        kind: "install",
        name: "with a progress bar unless it is told not to",
        program: r#"[ "$PIP_PROGRESS_BAR" = off ] || { seq 200000; sleep 60; }; echo Successfully installed"#,
        steps: &[Run("./program", "Successfully installed")],
    },
    Sequence {
        kind: "install",
        name: "asks for its configuration unless it is told not to",
        program: r#"[ "$DEBIAN_FRONTEND" = noninteractive ] || read -r x < /dev/tty; echo Setting up tzdata"#,
        steps: &[Run("./program", "Setting up tzdata")],
    },
    Sequence {
        kind: "install",
        name: "fails after the limit",
        program: "echo resolving; sleep 1; echo 'error: no matching version' >&2; exit 1",
        steps: &[Run("./program", "resolving"), Wait("no matching version"), Read("exit 1")],
    },
    Sequence {
        kind: "tests",
        name: "print as they go, past the limit",
        program: "for i in 1 2 3 4 5 6 7 8; do echo test $i ok; sleep 0.2; done; echo '7 passed, 1 failed'; exit 1",
        steps: &[Run("./program", "test 1 ok"), Wait("7 passed, 1 failed"), Read("exit 1")],
    },
    Sequence {
        kind: "tests",
        name: "several waits until the end",
        program: "for i in 1 2 3 4; do sleep 0.5; echo part $i; done; echo all passed",
        steps: &[Run("./program", "job-"), Wait(""), Wait(""), Wait(""), Wait(""), Read("exit 0")],
    },
    Sequence {
        kind: "tests",
        name: "watch for changes and never end",
        program: "echo 12 passed; echo waiting for changes; while :; do sleep 1; done",
        steps: &[Run("./program", "12 passed"), End("was ended")],
    },
    Sequence {
        kind: "server",
        name: "started in the background, asked, ended",
        program: "echo Listening on 8080; echo pong > answer; while :; do sleep 0.1; done",
        steps: &[
            Background("./program", "Listening on 8080"),
            Run("cat answer", "pong"),
            Read("running"),
            End("was ended"),
        ],
    },
    Sequence {
        kind: "server",
        name: "started in the foreground by mistake",
        program: "echo Listening on 8080; echo pong > answer; exec tail -f /dev/null",
        steps: &[Run("./program", "Listening on 8080"), Run("cat answer", "pong"), End("was ended")],
    },
    Sequence {
        kind: "server",
        name: "a daemon that keeps the output open",
        program: "sleep 600 & echo started",
        steps: &[Run("./program", "started")],
    },
    Sequence {
        kind: "server",
        name: "that ignores requests to end",
        program: "trap '' TERM; echo up; while :; do sleep 0.1; done",
        steps: &[Background("./program", "up"), End("was ended")],
    },
    Sequence {
        kind: "question",
        name: "yes or no, twice",
        program: r#"read -r -p "Overwrite? [y/N] " a; read -r -p "Sure? " b; echo "answers $a $b""#,
        steps: &[Interact("./program", "Overwrite?"), Type("y", "Sure?"), Type("yes", "answers y yes")],
    },
    Sequence {
        kind: "question",
        name: "one key without Enter",
        program: r#"echo "Press a key"; read -rsn1 key; echo "pressed $key""#,
        steps: &[Interact("./program", "Press a key"), Type("k", "pressed k")],
    },
    Sequence {
        kind: "question",
        name: "asked where nobody can answer",
        program: r#"echo -n "Proceed? "; read -r a || { echo "no input, giving up"; exit 2; }"#,
        steps: &[Run("./program", "giving up")],
    },
    Sequence {
        kind: "question",
        name: "an interpreter, line by line",
        program: "exec bash --norc --noprofile",
        steps: &[
            Interact("./program", "job-"),
            Type("echo $((6*7))", "42"),
            Type("pwd >/dev/null; exit", "exit 0"),
        ],
    },
    Sequence {
        kind: "question",
        name: "a pager and an editor that would wait",
        program: r#"echo one commit | ${GIT_PAGER:-sleep 600}; ${GIT_EDITOR:-sleep 600} message; echo committed"#,
        steps: &[Run("./program", "committed")],
    },
    Sequence {
        kind: "output",
        name: "20 MB with one line that matters",
        program: "seq 1400000; echo 'error[E0308]: mismatched types'; seq 1400000",
        steps: &[Run("./program", "bytes are in"), Finish, Search("mismatched", "error[E0308]")],
    },
    Sequence {
        kind: "output",
        name: "too much of it, and past the limit",
        program: "seq 300000; echo 'warning: unused'; seq 300000; sleep 1.5; echo finished",
        steps: &[Run("./program", "bytes are in"), Wait("finished"), Search("unused", "warning: unused")],
    },
    Sequence {
        kind: "output",
        name: "for ever, as fast as it can",
        program: "yes 'the same line again and again'",
        steps: &[Run("./program", "the same line"), End("was ended")],
    },
    Sequence {
        kind: "output",
        name: "one line without an end, and no text",
        program: r"head -c 3000000 /dev/zero | tr '\0' x; printf '\377\376\n'",
        steps: &[Run("./program", "bytes are in")],
    },
];

#[derive(Default)]
struct Tally {
    sequences: usize,
    commands: usize,
    /// Commands that were still running at their limit.
    past_limit: usize,
    lost: Vec<String>,
    hung: Vec<String>,
    lacking: Vec<String>,
    longest: Duration,
}

/// One run of a sequence.
struct Player {
    bench: Bench,
    job: String,
    /// The file that a result named.
    file: String,
    last: String,
    tally: Tally,
}

impl Player {
    fn new(program: &str) -> Self {
        let outputs = OutputFolder::new(tempfile::tempdir().unwrap().keep());
        let limits =
            Limits { shell_time: LIMIT, max_shell_time: Duration::from_secs(10), ..Limits::default() };
        let bench = Bench::with(Options { limits, outputs, ..Options::default() });
        let path = bench.write("program", format!("#!/bin/bash\n{program}\n"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { bench, job: String::new(), file: String::new(), last: String::new(), tally: Tally::default() }
    }

    async fn play(&mut self, sequence: &Sequence) {
        self.tally.sequences = 1;
        for (number, step) in sequence.steps.iter().enumerate() {
            let label = format!("{}: {}, step {}", sequence.kind, sequence.name, number + 1);
            let began = Instant::now();
            let Ok(needs) = tokio::time::timeout(LONGEST_STEP, self.take(step)).await else {
                self.tally.hung.push(label);
                return;
            };
            self.tally.longest = self.tally.longest.max(began.elapsed());
            if !self.last.contains(needs) {
                let end = self.last.floor_char_boundary(300);
                self.tally.lacking.push(format!("{label} lacks {needs}: {}", &self.last[..end]));
            }
            if self.last.contains("[ended after") {
                self.tally.lost.push(label);
            }
        }
    }

    /// Does one step; gives back what its result must hold.
    async fn take(&mut self, step: &Step) -> &'static str {
        let job = self.job.clone();
        let act = |action: &str| json!({"action": action, "job_id": job});
        let (needs, tool, input): (&'static str, &str, Value) = match step {
            Run(line, needs) => (needs, "shell_command", json!({"command": line})),
            Interact(line, needs) => (needs, "shell_command", json!({"command": line, "pty": true})),
            Background(line, needs) => (needs, "shell_command", json!({"command": line, "background": "it"})),
            // As long as the real waits are in real time.
            Wait(needs) => {
                (needs, "background_job", json!({"action": "wait", "job_id": job, "timeout": 2_000}))
            }
            Finish if job.is_empty() => return "",
            Finish => {
                ("exit 0", "background_job", json!({"action": "wait", "job_id": job, "timeout": 10_000}))
            }
            Read(needs) => (needs, "background_job", act("read_output")),
            End(needs) => (needs, "background_job", act("kill")),
            Type(typed, needs) => {
                (needs, "background_job", json!({"action": "write", "job_id": job, "input": typed}))
            }
            Search(pattern, needs) => (needs, "grep", json!({"pattern": pattern, "path": self.file})),
        };
        let result = self.bench.run(tool, input).await;
        self.last = text(&result);
        if tool == "shell_command" {
            self.tally.commands += 1;
            self.tally.past_limit += usize::from(self.last.contains("goes on as job-"));
        }
        if let Some(rest) = self.last.split(" bytes are in ").nth(1) {
            self.file = rest.split(": ").next().unwrap_or_default().to_owned();
        }
        if let Some(at) = self.last.rfind("job-").filter(|_| tool == "shell_command") {
            let is_name = |character: &char| character.is_alphanumeric() || *character == '-';
            self.job = self.last[at..].chars().take_while(is_name).collect();
        }
        needs
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_sequence_is_lost_or_hangs_and_the_model_gets_what_it_needs() {
    let played = SEQUENCES.iter().map(|sequence| async move {
        let mut player = Player::new(sequence.program);
        player.play(sequence).await;
        player.bench.source.shutdown().await;
        (sequence.kind, player.tally)
    });
    let mut kinds: BTreeMap<&str, Tally> = BTreeMap::new();
    for running in played.map(tokio::spawn).collect::<Vec<_>>() {
        let (kind, tally) = running.await.unwrap();
        let all = kinds.entry(kind).or_default();
        all.sequences += tally.sequences;
        all.commands += tally.commands;
        all.past_limit += tally.past_limit;
        all.lost.extend(tally.lost);
        all.hung.extend(tally.hung);
        all.lacking.extend(tally.lacking);
        all.longest = all.longest.max(tally.longest);
    }
    for (kind, tally) in &kinds {
        let problems: Vec<&String> = tally.lost.iter().chain(&tally.hung).chain(&tally.lacking).collect();
        assert!(problems.is_empty(), "{kind}: {problems:#?}");
    }
    let past_limit: usize = kinds.values().map(|tally| tally.past_limit).sum();
    assert!(past_limit >= 8, "the sequences do not reach their limits");
    for (kind, tally) in &kinds {
        let Tally { sequences, commands, past_limit, lost, hung, lacking, .. } = tally;
        let (lost, hung, lacking) = (lost.len(), hung.len(), lacking.len());
        println!(
            "quality: loops | {kind} | {sequences} | {commands} | {past_limit} | {lost} | {hung} | {lacking} |"
        );
    }
}
