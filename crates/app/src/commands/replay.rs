//! `dragoman replay`: runs the engine again from the journals of chats and reports the first difference.
//!
//! Invariant: nothing but the chats is read, and nothing is written or sent.

use std::process::ExitCode;

use config::Environment;
use domain::store::ListFilter;
use domain::{Failure, SessionId, Store};
use replay::{Difference, Replayed};
use serde_json::{Value, json};
use terminal::text::{clean, clean_line};

use super::{chats, failed, print_bytes};

pub(crate) const HELP: &str =
    "Exit code 0: every chat is identical. Exit code 1: a chat differs, or there is no such chat.

Example:
  dragoman replay 0198c2d4-…
  dragoman replay --all --json | jq '.chats[] | select(.difference)'";

/// What a message shows of one fact.
const SHOWN_CHARACTERS: usize = 2000;

#[derive(clap::Args)]
pub(crate) struct ReplayArguments {
    /// The chats.
    #[arg(required_unless_present = "all", value_name = "CHAT")]
    ids: Vec<String>,
    /// Replay every stored chat.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// For scripts.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &ReplayArguments) -> ExitCode {
    let environment = Environment::from_process();
    let journal = match crate::stores::open(&environment) {
        Ok(journal) => journal,
        Err(failure) => return failed(&failure),
    };
    // One thread: a replay lets each task go on until all of them wait.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&Failure::internal(format!("No runtime: {error}."))),
    };
    let replayed = runtime.block_on(replay(journal.as_ref(), arguments));
    runtime.shutdown_background();
    match replayed {
        Err(failure) => failed(&failure),
        Ok(replayed) => {
            let is_same = replayed.iter().all(|(_, replayed)| replayed.difference.is_none());
            let text = if arguments.json { report_json(&replayed) } else { report(&replayed) };
            let printed = print_bytes(text.as_bytes());
            if is_same { printed } else { ExitCode::FAILURE }
        }
    }
}

async fn replay(
    journal: &dyn Store,
    arguments: &ReplayArguments,
) -> Result<Vec<(String, Replayed)>, Failure> {
    let ids = if arguments.all {
        let chats = journal.list(ListFilter::default()).await?;
        chats.into_iter().map(|chat| chat.id.as_str().to_owned()).collect()
    } else {
        arguments.ids.clone()
    };
    let mut replayed = Vec::new();
    for id in ids {
        let facts = chats::read(journal, &id).await?;
        let outcome = replay::replay(&SessionId::new(id.as_str()), &facts).await;
        replayed.push((id, outcome));
    }
    Ok(replayed)
}

fn report(replayed: &[(String, Replayed)]) -> String {
    let mut text = String::new();
    for (id, Replayed { facts, turns, limits, difference }) in replayed {
        let id = clean_line(id);
        let verdict = if difference.is_none() { "identical" } else { "different" };
        text.push_str(&format!("{id}: {verdict} ({turns} turns, {facts} facts)\n"));
        for limit in limits {
            text.push_str(&format!("  {} was taken as it is. {}\n", limit.turn, limit.reason));
        }
        if let Some(difference) = difference {
            text.push_str(&describe(difference));
        }
    }
    text
}

fn describe(difference: &Difference) -> String {
    let shown = |text: &Option<String>| match text {
        None => "nothing".to_owned(),
        Some(text) => clean(&shorten(text)).into_owned(),
    };
    let place = match difference.number {
        u64::MAX => "  The replay has more than the journal.".to_owned(),
        number => format!("  First difference at fact {number}."),
    };
    format!(
        "{place}\n  recorded: {}\n  replayed: {}\n",
        shown(&difference.recorded),
        shown(&difference.replayed)
    )
}

fn shorten(text: &str) -> String {
    let short: String = text.chars().take(SHOWN_CHARACTERS).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

fn report_json(replayed: &[(String, Replayed)]) -> String {
    let chats: Vec<Value> = replayed
        .iter()
        .map(|(id, Replayed { facts, turns, limits, difference })| {
            let limits = limits.iter().map(|limit| json!({"turn": limit.turn.0, "reason": limit.reason}));
            let difference = difference.as_ref().map(|difference| {
                let number = (difference.number != u64::MAX).then_some(difference.number);
                json!({"fact": number, "recorded": difference.recorded, "replayed": difference.replayed})
            });
            json!({
                "id": id,
                "identical": difference.is_none(),
                "facts": facts,
                "turns": turns,
                "limits": limits.collect::<Vec<_>>(),
                "difference": difference,
            })
        })
        .collect();
    domain::visible_json(&format!("{:#}\n", json!({"chats": chats}))).into_owned()
}
