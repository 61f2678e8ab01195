//! Pages of this machine for the browser of the same machine: the loopback listener, who may call it, and embedded files.
//!
//! Knows of pages only their files: a site hands over its files, its routes and its frame. Nothing listens before `Host::bind`.
//! Invariants: a request that changes state or reads data carries the cookie and the page's secret, comes from our own
//! origin and names our own host; a refused request reaches no route; every read has a limit and a deadline.

mod access;
mod answer;
mod certificate;
mod guard;
mod host;
mod listener;
mod page_policy;
mod site;
mod stall_limit;
mod tls;

/// The files of each page; empty where `make` has not built it.
pub mod pages {
    include!(concat!(env!("OUT_DIR"), "/pages.rs"));
}

pub use access::{Access, random_text as random_id};
pub use answer::{ApiError, Input, events, file, html, json, set};
pub use axum::Router;
pub use certificate::make_certificate;
pub use guard::{Origin, RequestPolicy, SECRET, check as check_request, is_read, single, single_cookie};
pub use host::{Bound, Host};
pub use listener::{Listener, Peer};
pub use site::{Asset, Site, content_type, no_clients, no_routes};
pub use tls::Tls;
