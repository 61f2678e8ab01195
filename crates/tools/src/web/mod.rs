//! Pages of the web as text, fetched so that nobody can be made to reach into the user's own network.

pub mod address;
pub mod fetch;
mod html;
pub mod page;
pub mod search;
