//! Models over HTTP: one stream of events, whatever the vendor.
//!
//! Owns the API formats, the vendors' rows, the catalogue and the one loop of requests and retries. Knows nothing of
//! sessions, tools' execution, configuration files or the environment: `app` hands in plain data.
//! Invariant: no key appears in an error, an event or a log.

mod call;
pub mod catalogue;
mod connection;
pub mod discover;
mod downgrade;
pub mod fault;
pub mod format;
pub mod framing;
mod governor;
mod network;
mod provider;
mod registry;
mod repair;
mod retry;
mod scrub;
mod sigv4;
pub mod sse;
pub mod vendors;

pub use format::Api;
pub use governor::{Governor, SharedResets};
pub use network::{Network, NetworkSettings};
pub use provider::{Credential, KeySource, ModelConfig, Patience, ProviderConfig};
pub use registry::{Registry, Settings};
