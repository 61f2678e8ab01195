//! What an agent offers its user in its sessions: modes, models, options and commands, as the agent describes them.
//!
//! Invariants: the values are kept as they came; their number and size are bounded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::agent::AgentOffers;
use serde_json::Value;

use crate::wire::SessionResult;

/// Sessions of one process of which something is kept.
const MOST_SESSIONS: usize = 16;
/// Bytes of one value.
const MOST_BYTES: usize = 1 << 20;
const MOST_COMMANDS: usize = 1_000;

/// Called when the offers of a session have changed without being asked for.
pub(crate) type OffersObserver = Arc<dyn Fn() + Send + Sync>;

/// The offers of one process, by the agent's names of its sessions.
#[derive(Clone, Default)]
pub(crate) struct OfferBook(Arc<Mutex<BTreeMap<String, AgentOffers>>>);

impl OfferBook {
    pub(crate) fn get(&self, session: &str) -> AgentOffers {
        self.lock().get(session).cloned().unwrap_or_default()
    }

    /// A session was opened. Its commands may have come before.
    pub(crate) fn open(&self, session: &str, result: &SessionResult) {
        self.change(session, |offers| {
            set(&mut offers.modes, &result.modes);
            set(&mut offers.models, &result.models);
            set(&mut offers.options, &result.config_options);
        });
    }

    /// Takes in an update of a session; whether it was one about offers.
    pub(crate) fn update(&self, session: &str, update: &Value) -> bool {
        match update["sessionUpdate"].as_str() {
            Some("available_commands_update") => {
                self.change(session, |offers| set_commands(offers, &update["availableCommands"]))
            }
            Some("current_mode_update") => self.choose_mode(session, &update["currentModeId"]),
            Some("config_option_update") => {
                self.change(session, |offers| set(&mut offers.options, &update["configOptions"]))
            }
            _ => false,
        }
    }

    pub(crate) fn choose_mode(&self, session: &str, id: &Value) -> bool {
        self.change(session, |offers| set_member(&mut offers.modes, "currentModeId", id))
    }

    pub(crate) fn choose_model(&self, session: &str, id: &Value) -> bool {
        self.change(session, |offers| set_member(&mut offers.models, "currentModelId", id))
    }

    pub(crate) fn set_options(&self, session: &str, options: &Value) -> bool {
        self.change(session, |offers| set(&mut offers.options, options))
    }

    /// Whether there was room for the session.
    fn change(&self, session: &str, change: impl FnOnce(&mut AgentOffers)) -> bool {
        let mut book = self.lock();
        if !book.contains_key(session) && book.len() >= MOST_SESSIONS {
            return false;
        }
        change(book.entry(session.to_owned()).or_default());
        true
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, AgentOffers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_small(value: &Value) -> bool {
    value.to_string().len() <= MOST_BYTES
}

fn set(place: &mut Value, value: &Value) {
    if !value.is_null() && is_small(value) {
        *place = value.clone();
    }
}

fn set_member(place: &mut Value, member: &str, value: &Value) {
    if let Some(members) = place.as_object_mut()
        && value.is_string()
        && is_small(value)
    {
        members.insert(member.to_owned(), value.clone());
    }
}

fn set_commands(offers: &mut AgentOffers, commands: &Value) {
    let Some(list) = commands.as_array().filter(|list| list.len() <= MOST_COMMANDS) else { return };
    if is_small(commands) {
        offers.commands = commands.clone();
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let named = list.iter().filter_map(|command| {
            Some((text(&command["name"])?, text(&command["description"]).unwrap_or_default()))
        });
        offers.slash_commands = named.collect();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn offers_are_kept_as_they_came_and_bounded() {
        let book = OfferBook::default();
        let commands = json!([{"name": "compact", "description": "d", "_meta": {"own": 1}}]);
        let update = json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
        assert!(book.update("s", &update), "commands may come before the answer");
        let modes =
            json!({"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask", "x": [1]}]});
        let result = SessionResult { modes: modes.clone(), ..SessionResult::default() };
        book.open("s", &result);
        assert!(book.update("s", &json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"})));
        let offers = book.get("s");
        assert_eq!(offers.commands, commands);
        assert_eq!(offers.slash_commands, [("compact".to_owned(), "d".to_owned())]);
        assert_eq!(offers.modes["currentModeId"], "code");
        assert_eq!(offers.modes["availableModes"], modes["availableModes"]);
        assert!(!book.update("s", &json!({"sessionUpdate": "plan"})));
        let huge =
            json!({"sessionUpdate": "config_option_update", "configOptions": ["x".repeat(MOST_BYTES)]});
        book.update("s", &huge);
        assert!(book.get("s").options.is_null());
        for number in 0..100 {
            book.update(&number.to_string(), &update);
        }
        assert!(book.lock().len() <= MOST_SESSIONS);
    }
}
