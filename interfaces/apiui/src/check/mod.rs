//! Stage 5: the checker of generated code. Owns the decision whether a module, ours or a language model's, may run in
//! a host's page; must not know specifications, plans or how modules are printed.
//!
//! The checker is an allow-list over the syntax tree, once as written and once after JSX became calls. It is sound
//! because of what a checked module can hold: plain data, its own functions, and React elements it wrote. The doors
//! to more are closed one by one:
//! - globals, React exports, elements, attributes, styles and member names come from lists (`lists.rs`, `names.rs`);
//! - events and element references, from which all of the page can be reached, are never values: they are used on the
//!   spot in listed ways (`rules/events.rs`, `rules/refs.rs`);
//! - keys that are not literal, and whatever looks into an object of unknown kind, go through vetted definitions
//!   (`approved.rs`) that answer for plain data only;
//! - the network is reached by one vetted function, which calls only the addresses the module lists;
//! - large data at the end of a module is looked at as JSON (`data.rs`);
//! - the text that is checked cannot make the parser overflow its stack (`scan.rs`).

pub mod approved;
mod checked;
mod css;
mod data;
mod element;
mod element_view;
mod html;
mod lists;
mod names;
mod possible;
mod refusal;
mod rules;
mod scan;
mod transform;
mod tree;

pub use checked::Checked;
pub use html::{PageOptions, html_page};
pub use refusal::{Refusal, Rule};

/// The rules in words, for a prompt.
pub const RULES: &str = include_str!("rules.txt");

/// Looks at a JSX module; refuses whatever is not on the lists, with the place of each thing.
pub fn check(code: &str) -> Result<Checked, Vec<Refusal>> {
    transform::checked(code)
}

/// As `check`, and refuses addresses that are not among these: code that somebody changed must call whom it called
/// before. An interface that may call the origin of its own page could act for the person who is signed in there.
pub fn check_with_servers(code: &str, servers: &[String]) -> Result<Checked, Vec<Refusal>> {
    let checked = check(code)?;
    let Some(foreign) = checked.servers.iter().find(|server| !servers.contains(server)) else {
        return Ok(checked);
    };
    let line = code.lines().position(|line| line.contains("SERVERS =")).map_or(1, |index| index + 1);
    Err(vec![Refusal {
        line,
        column: 1,
        rule: Rule::Servers,
        what: format!("`SERVERS` lists \"{foreign}\", which this interface did not call before"),
        advice: "Leave SERVERS as it was.".to_owned(),
    }])
}

/// Checks a JSX module and gives it as plain JavaScript, with elements as calls of `react/jsx-runtime`.
pub fn transform(code: &str) -> Result<String, Vec<Refusal>> {
    transform::plain(code)
}

/// Checks a JSX module and gives a script for a page that has `dragomanReact`: it shows the component in `#root`.
pub fn frame_script(code: &str) -> Result<String, Vec<Refusal>> {
    transform::page_script(code).map(|(_, script)| script)
}
