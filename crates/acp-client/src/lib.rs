//! The client side of the Agent Client Protocol, version 1: agents of other vendors as child processes.
//!
//! Owns the connection to such an agent, from its start to its end, and translates between the protocol and
//! `domain::agent`. Must not know the engine, tools, settings or sandbox policies: `app` hands over how to start a
//! child, and the engine answers what the child asks for.
//!
//! Invariants: nothing from a child is trusted, and everything from it is bounded (sizes, queues, times); a child that
//! breaks these bounds is ended with a sentence that says which one; a child never outlives its [`Agent`].

mod agent;
pub mod bridge;
mod call_updates;
mod child;
mod diff;
mod driver;
mod handshake;
mod model_choice;
mod offers;
mod options;
mod requests;
mod terminals;
mod updates;
mod wire;

pub use agent::Agent;
pub use bridge::BridgeProgram;
pub use handshake::{AuthMethod, Probe, authenticate, probe};
pub use model_choice::AgentModel;
pub use options::{AgentOptions, Launch, Launcher, Limits, SettingsLook};
