//! The terminal front-end from outside: events, keys and sizes in, what a person would see out.

mod approvals;
mod frames;
mod pages;
mod screen;
