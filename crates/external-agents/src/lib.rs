//! Agents of other vendors as models: which there are, how each is started, and the sandbox around it.
//!
//! Owns the list of known agents, their programs, files and hosts. Must not know the protocol (`acp-client`), sessions or
//! front-ends; the program hands over what it knows of the machine ([`Surroundings`]).

mod agents;
mod entry;
mod kept_models;
mod known;
mod launcher;
mod registry;
mod settings_watch;

pub use agents::{ExternalAgents, Surroundings};
pub use entry::{AgentEntry, PREFIX};
pub use launcher::{AgentLauncher, AgentWall, FactsOf};
pub use registry::registry_entry;
