//! Terminals that an agent opened: commands that the engine runs for it, with the end of their output.
//!
//! Invariants: of an output only the last bytes are kept; a terminal that is released or dropped stops its command.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::CancellationToken;
use domain::agent::{AgentCommand, CommandEnd, OutputSink};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::wire::CreateTerminalParams;

/// Bytes of output that are kept where the agent does not say, and at most.
const USUAL_OUTPUT: usize = 256 << 10;
const MOST_OUTPUT: usize = 4 << 20;

/// The terminals of one agent process.
#[derive(Clone, Default)]
pub(crate) struct Terminals(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    last: u64,
    open: HashMap<String, Arc<Terminal>>,
}

pub(crate) struct Terminal {
    output: Mutex<Output>,
    end: watch::Sender<Option<CommandEnd>>,
    cancel: CancellationToken,
}

struct Output {
    text: String,
    limit: usize,
    is_cut: bool,
}

impl Output {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() > self.limit {
            let surplus = self.text.ceil_char_boundary(self.text.len() - self.limit);
            self.text.drain(..surplus);
            self.is_cut = true;
        }
    }
}

impl Terminals {
    /// Opens a terminal. Gives its id and the command for the engine; `None`: there are too many.
    pub(crate) fn create(
        &self,
        params: &CreateTerminalParams,
        most: usize,
    ) -> Option<(String, AgentCommand)> {
        let mut table = self.lock();
        if table.open.len() >= most {
            return None;
        }
        table.last += 1;
        let id = format!("terminal-{}", table.last);
        let limit = params.output_byte_limit.and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(USUAL_OUTPUT).clamp(1, MOST_OUTPUT);
        let terminal = Arc::new(Terminal {
            output: Mutex::new(Output { text: String::new(), limit, is_cut: false }),
            end: watch::Sender::new(None),
            cancel: CancellationToken::new(),
        });
        table.open.insert(id.clone(), terminal.clone());
        Some((id, command(params, &terminal)))
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Terminal>> {
        self.lock().open.get(id).cloned()
    }

    pub(crate) fn text(&self, id: &str) -> Option<String> {
        self.find(id).map(|terminal| terminal.lock().text.clone())
    }

    /// Stops the command and forgets the terminal.
    pub(crate) fn release(&self, id: &str) -> bool {
        let terminal = self.lock().open.remove(id);
        terminal.inspect(|terminal| terminal.cancel.cancel()).is_some()
    }

    pub(crate) fn release_all(&self) {
        for (_, terminal) in self.lock().open.drain() {
            terminal.cancel.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    pub(crate) fn kill(&self) {
        self.cancel.cancel();
    }

    /// The answer to `terminal/output`.
    pub(crate) fn shown(&self) -> Value {
        let output = self.lock();
        json!({"output": output.text, "truncated": output.is_cut, "exitStatus": self.end.borrow().map(status)})
    }

    /// The answer to `terminal/wait_for_exit`.
    pub(crate) async fn wait(&self) -> Value {
        let mut end = self.end.subscribe();
        // It fails only if the sender is gone, and `self` holds it.
        let end = end.wait_for(Option::is_some).await.ok().and_then(|end| *end);
        status(end.unwrap_or(CommandEnd { exit_code: None }))
    }

    fn lock(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn status(end: CommandEnd) -> Value {
    let signal = end.exit_code.is_none().then_some("SIGTERM");
    json!({"exitCode": end.exit_code, "signal": signal})
}

fn command(params: &CreateTerminalParams, terminal: &Arc<Terminal>) -> AgentCommand {
    let (reply, answer) = oneshot::channel::<Result<CommandEnd, String>>();
    let ended = terminal.clone();
    tokio::spawn(async move {
        let end = match answer.await {
            Ok(Ok(end)) => end,
            Ok(Err(reason)) => {
                ended.lock().push(&reason);
                CommandEnd { exit_code: Some(126) }
            }
            Err(_) => CommandEnd { exit_code: None },
        };
        ended.end.send_replace(Some(end));
    });
    let sink = terminal.clone();
    AgentCommand {
        line: line(params),
        directory: params.cwd.as_ref().map(Into::into),
        output: OutputSink(Arc::new(move |text: &str| sink.lock().push(text))),
        cancel: terminal.cancel.clone(),
        reply,
    }
}

/// The command as a line for the shell.
fn line(params: &CreateTerminalParams) -> String {
    let variables = params.env.iter().filter(|variable| is_name(&variable.name));
    let mut words: Vec<String> =
        variables.map(|variable| format!("{}={}", variable.name, quoted(&variable.value))).collect();
    if params.args.is_empty() {
        // Agents put a whole line here.
        words.push(params.command.clone());
    } else {
        words.push(quoted(&params.command));
        words.extend(params.args.iter().map(|word| quoted(word)));
    }
    words.join(" ")
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Variable;

    fn params(command: &str, args: &[&str]) -> CreateTerminalParams {
        CreateTerminalParams {
            command: command.to_owned(),
            args: args.iter().map(|&word| word.to_owned()).collect(),
            ..CreateTerminalParams::default()
        }
    }

    #[test]
    fn words_reach_the_shell_as_they_are() {
        assert_eq!(line(&params("ls -la | wc", &[])), "ls -la | wc");
        assert_eq!(line(&params("echo", &["it's", "$HOME", "a-b"])), r"echo 'it'\''s' '$HOME' a-b");
        let variable = |name: &str| Variable { name: name.to_owned(), value: "a b".to_owned() };
        let mut with = params("make", &["all"]);
        with.env = vec![variable("CC"), variable("X;rm"), variable("1X")];
        assert_eq!(line(&with), "CC='a b' make all");
    }

    #[tokio::test]
    async fn only_the_end_of_an_output_is_kept_and_the_number_is_bounded() {
        let terminals = Terminals::default();
        let small = CreateTerminalParams { output_byte_limit: Some(5), ..params("x", &[]) };
        let (id, command) = terminals.create(&small, 1).unwrap();
        assert!(terminals.create(&small, 1).is_none());
        (command.output.0)("one ü two");
        assert_eq!(terminals.text(&id).as_deref(), Some(" two"));
        let _ = command.reply.send(Ok(CommandEnd { exit_code: Some(3) }));
        let terminal = terminals.find(&id).unwrap();
        assert_eq!(terminal.wait().await["exitCode"], 3);
        assert_eq!(terminal.shown()["truncated"], true);
        assert!(terminals.release(&id) && !terminals.release(&id) && command.cancel.is_cancelled());
    }
}
