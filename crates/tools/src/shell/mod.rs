//! What a shell line would do, as far as it can be known without running it: its commands, each with the key an
//! approval is remembered by, and every reason why the line must be asked whatever is remembered.
//!
//! Knows bash's grammar, options of well-known programs and nothing of sessions or policy. Invariant: what is not
//! understood is a reason to ask; every byte of a line without a reason belongs to a word, an operator, a comment or
//! blank space that was recognized.

mod command;
mod exposure;
mod git;
mod git_words;
mod keys;
mod line;
mod line_paths;
mod parse;
mod plain_sed;
pub mod quiet;
mod read_only;
mod risky;
mod word;
mod wrappers;

use command::analyze_into;
pub use line::{Command, ShellLine};
pub use line_paths::{LinePaths, find_line_paths};
pub use word::Word;

pub fn analyze(line: &str) -> ShellLine {
    let mut out = ShellLine::default();
    analyze_into(line, 0, &mut out);
    if out.commands.is_empty() && out.reasons.is_empty() {
        out.add_reason("It holds no command");
    }
    out
}
