//! Chores of the repository as functions, so that tests can run them too.

pub mod budgets;
pub mod catalog;
pub mod circles;
pub mod cited;
pub mod crossings;
pub mod deny;
pub mod notices;
mod output_code;
mod packages;
mod paths;
mod platform_code;
pub mod publishing;
pub mod site;
pub mod tidy;
mod two_products;
mod words;
pub mod workflows;
