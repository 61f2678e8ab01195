//! The settings of Cursor: servers, commands, rules.

use super::place::{Place, folder};
use super::plan::{Plan, Program};

pub(super) fn read(plan: &mut Plan<'_>) {
    for place in [
        Place::user(plan, Program::Cursor, ".cursor/mcp.json"),
        Place::project(plan, Program::Cursor, ".cursor/mcp.json"),
    ] {
        if let Some(values) = place.json(plan) {
            place.servers(plan, &values["mcpServers"]);
        }
    }
    for place in [
        Place::user(plan, Program::Cursor, ".cursor/commands"),
        Place::project(plan, Program::Cursor, ".cursor/commands"),
    ] {
        folder(&place, place.0.path.clone()).commands(plan);
    }
    let rules = Place::project(plan, Program::Cursor, ".cursor/rules");
    folder(&rules, rules.0.path.clone()).cursor_rules(plan);
    Place::project(plan, Program::Cursor, ".cursorrules").hints(plan);
}
