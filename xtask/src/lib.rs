//! Chores of the repository as functions, so that tests can run them too.

pub mod catalogue;
pub mod cited;
pub mod tidy;
