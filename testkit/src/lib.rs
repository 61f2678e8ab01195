//! What tests need and programs do not: a fake model over real HTTP, models and a store in memory, an engine's end that
//! a test scripts, a client of lines, a guard of costs.
//!
//! A development dependency only. Panics are allowed here: a test that cannot be set up has failed.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant")]

pub mod fake_engine;
pub mod fake_model;
pub mod instruction_guard;
pub mod lines;
pub mod memory_store;
#[cfg(target_os = "linux")]
pub mod postgres;
pub mod sample;
pub mod scripted_model;
pub mod skipping;

pub use fake_engine::{FakeEngine, Seen};
pub use fake_model::{Answer, FakeModel, Gate, Request, clock};
pub use instruction_guard::{InstructionGuard, measured_scenario};
pub use lines::Lines;
pub use memory_store::MemoryStore;
#[cfg(target_os = "linux")]
pub use postgres::PostgresServer;
pub use scripted_model::{ModelStep, ScriptedAnswer, ScriptedModels};
pub use skipping::{is_full_run, skip};
