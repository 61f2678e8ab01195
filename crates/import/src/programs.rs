//! The reader of each program's files.

use super::plan::{Plan, Program};
use super::{claude, codex, cursor, eca, gemini, goose, opencode};

/// Plans what of a program's settings has a place here.
pub(super) fn read(plan: &mut Plan<'_>, program: Program) {
    match program {
        Program::Claude => claude::read(plan),
        Program::Codex => codex::read(plan),
        Program::Opencode => opencode::read(plan),
        Program::Gemini => gemini::read(plan),
        Program::Goose => goose::read(plan),
        Program::Cursor => cursor::read(plan),
        Program::Eca => eca::read(plan),
    }
}
