//! Models over HTTP: one stream of events, whatever the vendor.
//!
//! Owns the API formats, the vendors' rows, the catalog and the one loop of requests and retries. Knows nothing of
//! sessions, tools' execution, configuration files or the environment: `app` hands in plain data.
//! Invariant: no key appears in an error, an event or a log.

mod call;
pub mod catalog;
mod connection;
pub mod discover;
mod downgrade;
pub mod fault;
pub mod format;
pub mod framing;
mod network;
mod provider;
mod rate_limiter;
mod registry;
mod response;
mod retry;
mod scrub;
mod sigv4;
mod text_tool_calls;
pub mod vendors;

pub use format::Api;
pub use network::{Network, NetworkSettings};
pub use provider::{Credential, KeySource, ModelConfig, ProviderConfig, RetryPolicy};
pub use rate_limiter::{RateLimiter, SharedResets};
pub use registry::{Registry, RegistrySettings};
