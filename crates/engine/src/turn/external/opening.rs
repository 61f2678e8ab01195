//! What an agent is opened with: for a prompt, and before the first one where a front-end shows what the agent offers.
//!
//! Invariant: both ways give the agent the same wall and the same tools.

use std::sync::Arc;

use domain::agent::{AgentChoice, AgentOffers, AgentOpening};
use domain::model::{Model, ModelInfo};
use domain::tool::ToolSpec;
use domain::tool_call::Origin;
use domain::{Failure, TurnId};

use super::handover::{self, Handover};
use crate::behavior;
use crate::session::Session;
use crate::tool_calls::approval;

/// What the agent of a chat is opened with for a turn, and what it must be told then.
pub(super) fn of_chat(session: &Session, info: &ModelInfo, turn: TurnId) -> (AgentOpening, Handover) {
    let plan = handover::plan(&session.state(), &session.id, &info.id, turn);
    let behavior = session.behavior();
    let of_server = |spec: &ToolSpec| spec.origin == Origin::Mcp;
    let tools = behavior::tools(session, Some(&behavior), info);
    let opening = AgentOpening {
        chat: session.id.clone(),
        roots: session.roots.clone(),
        known: plan.known.clone(),
        forbidden_paths: approval::forbidden_paths_of(session).into(),
        tainted: session.taint().is_tainted(),
        read_only: behavior::forbids_changes(session, &behavior),
        tools: tools.iter().map(|tool| tool.spec().clone()).filter(of_server).collect(),
    };
    (opening, plan)
}

/// Starts the agent of a chat where it does not run. Gives what it offers, after the choice where there is one.
pub(crate) async fn offers(
    session: &Session,
    model: Arc<dyn Model>,
    choice: Option<AgentChoice>,
) -> Result<AgentOffers, Failure> {
    let Some(agent) = model.agent() else {
        return Err(Failure::user("No agent of another vendor answers in this chat.")
            .hint("Choose a model whose name begins with `acp:`."));
    };
    if agent.offers(&session.id).is_none() {
        for source in session.sources() {
            source.first_lists().await;
        }
        let turn = TurnId(session.state().last_turn() + 1);
        let (opening, _) = of_chat(session, &model.info(), turn);
        agent.open(opening).await?;
    }
    if let Some(choice) = choice {
        agent.choose(&session.id, choice).await?;
    }
    agent.offers(&session.id).ok_or_else(|| Failure::provider("The agent has ended."))
}
