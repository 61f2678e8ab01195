//! What agents of other vendors get from this program: the environment, the sandbox, the way to the tools of our servers.

use std::sync::Arc;

use acp_client::BridgeProgram;
use config::{Environment, Resolved};
use external_agents::{ExternalAgents, Surroundings};

use crate::sandboxing::{self, WorkspaceSandbox};

/// Called when an agent changes what it offers without being asked.
pub(crate) type OffersObserver = Arc<dyn Fn() + Send + Sync>;

/// The agents of a workspace; without a sandbox where that is switched off.
pub(crate) fn of_workspace(
    environment: &Arc<Environment>,
    resolved: &Resolved,
    sandbox: Option<&WorkspaceSandbox>,
    on_offers: Option<OffersObserver>,
) -> Arc<ExternalAgents> {
    let known = environment.clone();
    let program = std::env::current_exe().ok();
    let bridge = program.map(|command| BridgeProgram {
        command,
        args: ["mcp-server", "--bridge"].map(str::to_owned).to_vec(),
    });
    let surroundings = Surroundings {
        environment: environment.clone(),
        facts: Arc::new(move |roots| sandboxing::facts(&known, roots)),
        grants: sandbox.map(|sandbox| sandbox.grants.clone()),
        on_offers,
        bridge,
    };
    ExternalAgents::new(resolved, surroundings)
}

/// The same for a look at which agents there are.
pub(crate) fn to_list(environment: &Environment, resolved: &Resolved) -> Arc<ExternalAgents> {
    of_workspace(&Arc::new(environment.clone()), resolved, None, None)
}
