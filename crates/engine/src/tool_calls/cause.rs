//! The words for why a call is asked about that no rule is about. Pure; decides nothing.

use domain::tool::ToolEffect;
use domain::tool_call::Origin;

use super::approval::Case;

const ASKED_BY_DEFAULT: &str = "Asked by toolCall.approval.byDefault.";

/// Why a call that no rule is about is asked about, as a sentence for people.
pub(super) fn cause_of(case: &Case<'_>) -> String {
    if case.review.harmless {
        return ASKED_BY_DEFAULT.to_owned();
    }
    if let Some(cause) = &case.review.cause {
        return cause.clone();
    }
    let (spec, review) = (case.spec, case.review);
    let named: Vec<&str> = review.paths.iter().map(|(_, [shown, _])| shown.as_str()).collect();
    match spec.effect {
        ToolEffect::WritesFiles if !named.is_empty() => format!("It changes files: {}.", named.join(", ")),
        ToolEffect::WritesFiles => "It changes files.".to_owned(),
        ToolEffect::UsesNetwork => format!("It needs the network: {}.", review.summary),
        ToolEffect::RunsCommands if review.subcommands.is_empty() => "It runs a command.".to_owned(),
        ToolEffect::RunsCommands => format!("It runs {}.", review.subcommands.join(", ")),
        ToolEffect::Other if spec.origin == Origin::Mcp => {
            format!("It is a tool of the MCP server {}, which can do anything.", spec.server)
        }
        ToolEffect::Reads | ToolEffect::Previews | ToolEffect::Other => {
            "It could change something.".to_owned()
        }
    }
}
