//! The chats that programs hold, as the pages of `dragoman serve` list them.

use std::sync::Arc;

use domain::{Failure, Store};
use serve::{RunningChat, RunningState};
use tokio::sync::Mutex;

use super::ps::{self, Activity, SeenChats};

/// Pages ask for it every few seconds: each look reads what is new.
pub(super) async fn running(
    store: Arc<dyn Store>,
    seen: Arc<Mutex<SeenChats>>,
) -> Result<Vec<RunningChat>, Failure> {
    let chats = ps::running_since(store.as_ref(), &mut *seen.lock().await).await?;
    let running = chats.into_iter().map(|chat| RunningChat {
        state: match chat.activity {
            Activity::Idle => RunningState::Idle,
            Activity::Answering => RunningState::Answering,
            Activity::Waiting(what) => RunningState::Waiting(what),
        },
        id: chat.id,
        holder: chat.holder,
        cost: chat.cost,
    });
    Ok(running.collect())
}
