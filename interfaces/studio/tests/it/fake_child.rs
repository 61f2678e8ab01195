//! A child that answers by a script: each line it reads is handed to a function, which says what to do.

use std::sync::{Arc, Mutex};

use domain::BoxFuture;
use serde_json::{Value, json};
use studio::cli::{CliProcess, Launch, Launched};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::{Duration, Instant};

/// What the child does with a message.
pub(crate) enum Do {
    Answer(Value),
    /// Before the answer, or in its place.
    Say(Vec<Value>),
    Error(i64),
    Nothing,
    /// Answers after a while.
    Later(Duration, Value),
    Die,
    /// Writes to stderr and answers.
    Complain(&'static str, Value),
}

type Script = dyn FnMut(usize, &Value) -> Do + Send;

/// Launches children that share one script; the first argument of the script is the number of the child.
pub(crate) struct FakeCli {
    script: Arc<Mutex<Box<Script>>>,
    pub(crate) seen: Arc<Mutex<Vec<(usize, Duration, Value)>>>,
    children: Mutex<usize>,
    /// How many launches fail before one succeeds.
    broken: Mutex<usize>,
    start: Instant,
    pipe: usize,
}

impl FakeCli {
    pub(crate) fn new(script: impl FnMut(usize, &Value) -> Do + Send + 'static) -> Arc<Self> {
        Self::with_pipe(1 << 20, 0, script)
    }

    pub(crate) fn with_pipe(
        pipe: usize,
        broken: usize,
        script: impl FnMut(usize, &Value) -> Do + Send + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            script: Arc::new(Mutex::new(Box::new(script))),
            seen: Arc::default(),
            children: Mutex::new(0),
            broken: Mutex::new(broken),
            start: Instant::now(),
            pipe,
        })
    }

    /// Messages of one method: the child, the second at which it came, its id.
    pub(crate) fn calls(&self, method: &str) -> Vec<(usize, u64, u64)> {
        let seen = self.seen.lock().unwrap();
        let of_method = seen.iter().filter(|(_, _, message)| message["method"] == method);
        of_method
            .map(|(child, at, message)| (*child, at.as_secs(), message["id"].as_u64().unwrap_or(0)))
            .collect()
    }

    pub(crate) fn ids(&self) -> Vec<u64> {
        self.seen.lock().unwrap().iter().filter_map(|(_, _, message)| message["id"].as_u64()).collect()
    }
}

struct Nothing;

impl CliProcess for Nothing {
    fn kill(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl Launch for FakeCli {
    fn launch(&self) -> BoxFuture<'_, Result<Launched, String>> {
        Box::pin(async move {
            {
                let mut broken = self.broken.lock().unwrap();
                if *broken > 0 {
                    *broken -= 1;
                    return Err("There is no such program.".to_owned());
                }
            }
            let child = {
                let mut children = self.children.lock().unwrap();
                *children += 1;
                *children
            };
            let (input, theirs_in) = tokio::io::duplex(self.pipe);
            let (theirs_out, output) = tokio::io::duplex(1 << 20);
            let (theirs_errors, errors) = tokio::io::duplex(1 << 16);
            let (script, seen, start) = (self.script.clone(), self.seen.clone(), self.start);
            tokio::spawn(async move {
                let mut lines = BufReader::new(theirs_in).lines();
                let (mut out, mut errors) = (theirs_out, theirs_errors);
                let mut write = async |value: Value| {
                    let line = format!("{value}\n");
                    let _ = out.write_all(line.as_bytes()).await;
                };
                while let Ok(Some(line)) = lines.next_line().await {
                    let message: Value = serde_json::from_str(&line).unwrap();
                    seen.lock().unwrap().push((child, start.elapsed(), message.clone()));
                    let id = message["id"].clone();
                    let act = (script.lock().unwrap())(child, &message);
                    match act {
                        Do::Nothing => {}
                        Do::Die => return,
                        Do::Answer(result) => {
                            write(json!({"jsonrpc": "2.0", "id": id, "result": result})).await
                        }
                        Do::Later(pause, result) => {
                            tokio::time::sleep(pause).await;
                            write(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
                        }
                        Do::Error(code) => {
                            let error = json!({"code": code, "message": "It failed."});
                            write(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
                        }
                        Do::Complain(text, result) => {
                            let _ = errors.write_all(format!("{text}\n").as_bytes()).await;
                            write(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
                        }
                        Do::Say(messages) => {
                            for message in messages {
                                write(message).await;
                            }
                        }
                    }
                }
            });
            Ok(Launched {
                pid: Some(100 + child as u32),
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(errors),
                process: Box::new(Nothing),
            })
        })
    }
}
