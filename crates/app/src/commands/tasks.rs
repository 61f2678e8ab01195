//! `dragoman submit`, `dragoman tasks` and `dragoman worker`: the queue of tasks in the PostgreSQL database.

use std::io::Read;
use std::process::ExitCode;

use clap::ValueEnum;
use config::Environment;
use domain::{Failure, Store};
use serde_json::{Value, json};
use store_postgres::{NewTask, Task, TaskQueue, TaskState};
use terminal::text::{clean_line, shorten};
use worker::policy::Limits;
use worker::{WorkerOptions, repository};

use super::chats;
use super::task_arguments::{StateName, SubmitArguments, TasksTask, WorkerArguments};
use crate::cli::Level;
use crate::{lifetime, logging, stores};

/// The largest text of a task.
const MAX_PROMPT_BYTES: usize = 1 << 20;

pub(crate) fn submit(arguments: &SubmitArguments) -> ExitCode {
    let environment = Environment::from_process();
    lifetime::run(async {
        check_user(&environment)?;
        let queue = open(&environment)?;
        let limits = Limits {
            max_cost: arguments.max_cost.map(|cost| positive(cost, "--max-cost")).transpose()?,
            max_steps: arguments.max_steps.map(u64::from),
            timeout_seconds: arguments.timeout.map(|seconds| positive(seconds, "--timeout")).transpose()?,
            approve: (!arguments.approve.is_empty()).then(|| {
                let names = arguments.approve.iter().filter_map(ValueEnum::to_possible_value);
                names.map(|name| name.get_name().to_owned()).collect()
            }),
            deny: arguments.deny.clone(),
            submodules: arguments.submodules,
            lfs: arguments.lfs,
        };
        let repo = repository::submitted(&arguments.repo)?;
        repository::check_reference(&arguments.reference)?;
        let task = NewTask {
            prompt: prompt(&arguments.prompt)?,
            repo,
            reference: arguments.reference.clone(),
            limits: serde_json::to_string(&limits).unwrap_or_default(),
        };
        let id = queue.submit(&task).await?;
        let text = if arguments.json {
            json!({"id": id.as_str(), "state": "waiting"}).to_string()
        } else {
            id.to_string()
        };
        print(&format!("{text}\n"))
    })
}

fn positive(number: f64, flag: &str) -> Result<f64, Failure> {
    if number.is_finite() && number > 0.0 {
        return Ok(number);
    }
    Err(Failure::user(format!("{flag} takes a number above 0.")))
}

fn prompt(words: &[String]) -> Result<String, Failure> {
    let mut text = words.join(" ");
    if text == "-" {
        text.clear();
        let read = std::io::stdin().lock().take(MAX_PROMPT_BYTES as u64 + 1).read_to_string(&mut text);
        read.map_err(|error| Failure::user(format!("Stdin cannot be read: {error}.")))?;
    }
    if text.trim().is_empty() || text.len() > MAX_PROMPT_BYTES {
        return Err(Failure::user("A task needs a text of at most 1 MiB."));
    }
    Ok(text)
}

pub(crate) fn tasks(task: TasksTask) -> ExitCode {
    let environment = Environment::from_process();
    lifetime::run(async {
        let queue = open(&environment)?;
        match task {
            TasksTask::List { state, limit, json } => list(&queue, state, limit, json).await,
            TasksTask::Show { id, patch: true, .. } => print_patch(&queue, &id).await,
            TasksTask::Show { id, json, .. } => {
                let task = find(&queue, &id).await?;
                print(&if json { format!("{:#}\n", shown_json(&task)) } else { shown(&task) })
            }
            TasksTask::Cancel { id, json } => {
                check_user(&environment)?;
                cancel(&queue, &id, json).await
            }
            TasksTask::Delete { ids, json } => {
                check_user(&environment)?;
                delete(&environment, &queue, &ids, json).await
            }
            TasksTask::Logs { id, json } => {
                let task = find(&queue, &id).await?;
                let (store, chat) = (database(&environment)?, worker::chat_of(&task.id));
                if store.newest(&chat).await?.is_none() {
                    return Err(Failure::user("No worker has begun this task yet."));
                }
                chats::show(store.as_ref(), chat.as_str(), json).await
            }
        }
    })
}

pub(crate) fn worker(arguments: &WorkerArguments, level: Option<Level>) -> ExitCode {
    let environment = Environment::from_process();
    logging::start_for_command(&environment, level);
    lifetime::run(async {
        check_user(&environment)?;
        let (queue, store) = (open(&environment)?, database(&environment)?);
        let options = WorkerOptions {
            drain: arguments.drain,
            json: arguments.json,
            timeout: arguments.timeout,
            // A reader that is gone does not stop the work.
            print_line: |line| {
                let _ = super::finish(crate::output::print_line(line));
            },
        };
        worker::work(&environment, queue, store, &options).await
    })
}

fn open(environment: &Environment) -> Result<TaskQueue, Failure> {
    stores::open_queue(environment)?.ok_or_else(no_database)
}

fn database(environment: &Environment) -> Result<std::sync::Arc<dyn Store>, Failure> {
    stores::open_database(environment)?.ok_or_else(no_database)
}

fn no_database() -> Failure {
    Failure::config("Tasks are in a PostgreSQL database, and none is set.").hint(
        "Set `store` in your own config.json, or DRAGOMAN_STORE, to postgres://…; see `dragoman docs scale`.",
    )
}

async fn find(queue: &TaskQueue, id: &str) -> Result<Task, Failure> {
    queue.get(id).await?.ok_or_else(|| {
        Failure::user(format!("There is no task {}.", clean_line(id)))
            .hint("List the tasks with `dragoman tasks list`.")
    })
}

async fn list(queue: &TaskQueue, state: Option<StateName>, limit: usize, json: bool) -> Result<(), Failure> {
    let state = state.map(|state| match state {
        StateName::Waiting => TaskState::Waiting,
        StateName::Running => TaskState::Running,
        StateName::Done => TaskState::Done,
        StateName::Failed => TaskState::Failed,
        StateName::Cancelled => TaskState::Cancelled,
    });
    let tasks = queue.list(state, limit).await?;
    if json {
        let tasks: Vec<Value> = tasks.iter().map(shown_json).collect();
        return print(&format!("{:#}\n", json!({"tasks": tasks})));
    }
    let line = |task: &Task| {
        let prompt = shorten(&clean_line(&task.prompt), 60);
        format!("{}  {}  {:<9}  {prompt}\n", task.id, chats::day(task.submitted_at), task.state.name())
    };
    let lines: String = tasks.iter().map(line).collect();
    print(if lines.is_empty() { "There are no tasks.\n" } else { &lines })
}

async fn print_patch(queue: &TaskQueue, id: &str) -> Result<(), Failure> {
    let task = find(queue, id).await?;
    let Some(patch) = queue.patch(&task.id).await?.filter(|patch| !patch.is_empty()) else {
        return Err(Failure::user("The task has no changes."));
    };
    crate::output::print(&patch)
}

async fn cancel(queue: &TaskQueue, id: &str, json: bool) -> Result<(), Failure> {
    find(queue, id).await?;
    if !queue.cancel(id).await? {
        return Err(Failure::user("The task has ended already."));
    }
    let state = find(queue, id).await?.state;
    let text = match (json, state) {
        (true, state) => json!({"id": id, "state": state.name(), "cancelled": true}).to_string(),
        (false, TaskState::Running) => "The worker of the task stops it within some seconds.".to_owned(),
        (false, state) => format!("The task is {}.", state.name()),
    };
    print(&format!("{text}\n"))
}

async fn delete(
    environment: &Environment,
    queue: &TaskQueue,
    ids: &[String],
    json: bool,
) -> Result<(), Failure> {
    let store = database(environment)?;
    for id in ids {
        find(queue, id).await?;
        if !worker::delete_task(queue, store.as_ref(), id).await? {
            return Err(Failure::user(format!("The task {} has not ended.", clean_line(id)))
                .hint("Stop it first with `dragoman tasks cancel`."));
        }
    }
    let text = match json {
        true => json!({"deleted": ids}).to_string(),
        false => format!("Deleted: {}.", ids.join(", ")),
    };
    print(&format!("{text}\n"))
}

fn shown_json(task: &Task) -> Value {
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    json!({
        "id": task.id.as_str(),
        "state": task.state.name(),
        "prompt": task.prompt,
        "repo": task.repo,
        "ref": task.reference,
        "limits": parse(&task.limits),
        "submittedAt": task.submitted_at,
        "startedAt": task.started_at,
        "endedAt": task.ended_at,
        "attempts": task.attempts,
        "worker": task.worker,
        "cancelled": task.is_cancelled,
        "base": task.base,
        "chat": worker::chat_of(&task.id).as_str(),
        "outcome": task.outcome.as_deref().map(parse),
        "patchBytes": task.patch_size,
    })
}

fn shown(task: &Task) -> String {
    let outcome: Value =
        task.outcome.as_deref().map_or(Value::Null, |text| serde_json::from_str(text).unwrap_or(Value::Null));
    let text = |name: &str| outcome[name].as_str().map(clean_line);
    let time = |at: Option<u64>| at.map(chats::day);
    let cost = outcome["cost"].as_f64().map(|cost| format!("${cost:.4}"));
    let patch = (task.patch_size > 0).then(|| format!("{} bytes (--patch prints it)", task.patch_size));
    let rows = [
        ("task", Some(task.id.to_string())),
        ("state", Some(task.state.name().to_owned())),
        ("prompt", Some(shorten(&clean_line(&task.prompt), 200))),
        ("repository", Some(format!("{} at {}", clean_line(&task.repo), clean_line(&task.reference)))),
        ("submitted", Some(chats::day(task.submitted_at))),
        ("started", time(task.started_at)),
        ("ended", time(task.ended_at)),
        ("worker", task.worker.clone().map(|worker| format!("{worker}, attempt {}", task.attempts))),
        ("chat", task.started_at.map(|_| worker::chat_of(&task.id).to_string())),
        ("message", text("message")),
        ("branch", text("branch")),
        ("pushed to", text("pushed")),
        ("patch", patch),
        ("cost", cost),
    ];
    let mut shown = String::new();
    for (name, value) in rows {
        if let Some(value) = value {
            shown.push_str(&format!("{name:<12}{value}\n"));
        }
    }
    if let Some(answer) = outcome["text"].as_str().filter(|answer| !answer.is_empty()) {
        shown.push_str(&format!("\n{}\n", terminal::text::clean(answer).trim_end()));
    }
    shown
}

fn print(text: &str) -> Result<(), Failure> {
    crate::output::print(domain::visible_text(text).as_bytes())
}

/// A model must not hand itself more work, budget or machines than its user knows of.
fn check_user(_environment: &Environment) -> Result<(), Failure> {
    match crate::attaching::refusal_inside_tool_call("hands out tasks") {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use crate::approve::Approve;

    #[test]
    fn workers_know_the_words_of_approve() {
        let values = Approve::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let words: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        assert_eq!(words, worker::policy::APPROVE_WORDS);
    }
}
