//! A connection whose chats an agent of another vendor answers: the client sees the agent's own modes, models, options and
//! commands, unchanged, and ours beside them.
//!
//! Pure, but for the question to the engine. Invariant: what the agent describes is passed on as it came; our options have ids of
//! their own, and of two commands with one name the agent's is shown, except for undo and redo.

use domain::agent::{AgentChoice, AgentOffers};
use domain::link::Commands;
use domain::{Command, Failure, SessionId};
use serde_json::{Value, json};

/// What begins the ids of our options.
const OWN: &str = "dragoman-";
/// Commands of ours that no agent replaces.
const KEPT_COMMANDS: [&str; 2] = ["undo", "redo"];

/// Our option that an id of this connection means; `None`: it is one of the agent's.
pub(crate) fn own_option(id: &str) -> Option<&str> {
    id.strip_prefix(OWN)
}

/// Asks the engine what the agent of a chat offers, after the choice where there is one.
pub(crate) async fn ask(
    commands: Commands,
    session: SessionId,
    choice: Option<AgentChoice>,
) -> Result<AgentOffers, Failure> {
    commands.call(|reply| Command::Agent { session, choice, reply }).await
}

/// The response to opening a session, with what the agent offers.
pub(crate) fn merge_response(response: &mut Value, offers: &AgentOffers) {
    let own = response["configOptions"].take();
    response["configOptions"] = options(offers, own);
    for (member, offered) in [("modes", &offers.modes), ("models", &offers.models)] {
        if offered.is_object() {
            response[member] = offered.clone();
        }
    }
}

/// The agent's options, and ours under their own ids. Our choice of a model is none here: the agent has its own.
pub(crate) fn options(offers: &AgentOffers, own: Value) -> Value {
    let mut options = offers.options.as_array().cloned().unwrap_or_default();
    for mut option in own.as_array().cloned().unwrap_or_default() {
        let (id, name) = (option["id"].as_str().unwrap_or_default(), option["name"].as_str());
        if matches!(id, "model" | "variant") {
            continue;
        }
        let name = format!("Dragoman: {}", name.unwrap_or(id));
        (option["id"], option["name"]) = (json!(format!("{OWN}{id}")), json!(name));
        // A client may show the options of one category alone.
        option.as_object_mut().map(|members| members.remove("category"));
        options.push(option);
    }
    Value::Array(options)
}

/// An update as the client of such a connection gets it; `None`: it gets none.
pub(crate) fn rewrite(mut update: Value, offers: &AgentOffers) -> Option<Value> {
    match update["sessionUpdate"].as_str() {
        Some("config_option_update") => {
            let own = update["configOptions"].take();
            update["configOptions"] = options(offers, own);
        }
        // Our mode is an option here.
        Some("current_mode_update") if offers.modes.is_object() => return None,
        Some("available_commands_update") => {
            let own = update["availableCommands"].take();
            update["availableCommands"] = all_commands(offers, &own);
        }
        _ => {}
    }
    Some(update)
}

fn all_commands(offers: &AgentOffers, own: &Value) -> Value {
    let is_kept = |command: &&Value| KEPT_COMMANDS.iter().any(|kept| command["name"] == **kept);
    let of_agent = offers.commands.as_array().into_iter().flatten();
    let mut commands: Vec<Value> = of_agent.filter(|command| !is_kept(command)).cloned().collect();
    let is_taken = |command: &&Value| {
        let name = command["name"].as_str().unwrap_or_default();
        !is_kept(command) && offers.slash_commands.iter().any(|(taken, _)| taken == name)
    };
    commands.extend(own.as_array().into_iter().flatten().filter(|command| !is_taken(command)).cloned());
    Value::Array(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers() -> AgentOffers {
        AgentOffers {
            modes: json!({"currentModeId": "code", "availableModes": [{"id": "code", "name": "Code", "x": 1}]}),
            models: json!({"currentModelId": "opus", "availableModels": []}),
            options: json!([{"id": "effort", "type": "select", "name": "Effort", "own": [1]}]),
            commands: json!([{"name": "compact", "description": "theirs", "y": 2}, {"name": "undo", "description": "theirs"}]),
            slash_commands: ["compact", "undo"].map(|name| (name.to_owned(), "theirs".to_owned())).to_vec(),
        }
    }

    #[test]
    fn what_the_agent_offers_is_unchanged_and_ours_stand_beside_it() {
        let offers = offers();
        let own = json!([{"id": "mode", "name": "Mode", "category": "mode"}, {"id": "model", "name": "Model"}, {"id": "trust", "name": "Never ask"}]);
        let mut response =
            json!({"sessionId": "s", "modes": {"currentModeId": "agent"}, "configOptions": own});
        merge_response(&mut response, &offers);
        assert_eq!(response["modes"], offers.modes);
        assert_eq!(response["models"], offers.models);
        let options = response["configOptions"].as_array().unwrap();
        assert_eq!(options[0], offers.options[0]);
        let ids: Vec<&str> = options.iter().filter_map(|option| option["id"].as_str()).collect();
        assert_eq!(ids, ["effort", "dragoman-mode", "dragoman-trust"]);
        assert_eq!(own_option("dragoman-trust"), Some("trust"));
        assert_eq!(own_option("effort"), None);
        let commands = json!([{"name": "undo", "description": "ours"}, {"name": "compact", "description": "ours"}, {"name": "goal", "description": "ours"}]);
        let update = json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
        let shown = rewrite(update, &offers).unwrap();
        assert_eq!(
            shown["availableCommands"],
            json!([offers.commands[0], {"name": "undo", "description": "ours"}, {"name": "goal", "description": "ours"}])
        );
        assert_eq!(rewrite(json!({"sessionUpdate": "current_mode_update"}), &offers), None);
        let text = json!({"sessionUpdate": "agent_message_chunk", "content": 1});
        assert_eq!(rewrite(text.clone(), &offers), Some(text));
    }
}
