//! The grammar: from a line to its simple commands as lists of words, by tree-sitter.
//!
//! Invariant: the tree is not trusted alone. The words are read from the text itself, and what lies between them must
//! be operators and blank space; anything else is a reason to ask.

use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::word::Word;

/// A simple command whose words the shell takes as they are; `None` for a word it makes itself.
#[derive(Clone, Debug, Default)]
pub(super) struct RawCommand {
    pub words: Vec<Option<Word>>,
}

#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub commands: Vec<RawCommand>,
    pub redirected: Vec<Word>,
    pub reasons: Vec<String>,
    /// What the line does although every word of it is known, such as writing a file.
    pub known_reasons: Vec<String>,
}

const NOT_ANALYZED: &str = "It has syntax that is not analyzed";
const MAX_DEPTH: usize = 100;
const PARSE_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) fn parse(line: &str) -> Parsed {
    let mut walk = TreeWalk { line, out: Parsed::default(), tokens: Vec::new(), depth: 0 };
    match tree(line) {
        Some(tree) => {
            if tree.root_node().has_error() {
                walk.add_reason(NOT_ANALYZED);
            }
            walk.statement(tree.root_node());
            if walk.out.reasons.is_empty() && !walk.covers_whole_line() {
                walk.add_reason(NOT_ANALYZED);
            }
        }
        None => walk.add_reason(NOT_ANALYZED),
    }
    walk.out
}

fn tree(line: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let deadline = Instant::now() + PARSE_TIMEOUT;
    let mut in_time = |_: &tree_sitter::ParseState| {
        if Instant::now() > deadline { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut in_time);
    let bytes = line.as_bytes();
    parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
}

/// A piece of the line that was recognized. Words of one command share its number.
struct Token {
    at: Range<usize>,
    command: Option<usize>,
}

struct TreeWalk<'a> {
    line: &'a str,
    out: Parsed,
    tokens: Vec<Token>,
    depth: usize,
}

impl TreeWalk<'_> {
    fn statement(&mut self, node: Node<'_>) {
        if self.enter() {
            self.known_statement(node);
            self.depth -= 1;
        }
    }

    /// A line can be nested deeper than our stack is.
    fn enter(&mut self) -> bool {
        if self.depth >= MAX_DEPTH {
            self.add_reason(NOT_ANALYZED);
            return false;
        }
        self.depth += 1;
        true
    }

    fn known_statement(&mut self, node: Node<'_>) {
        match node.kind() {
            "program" | "list" | "pipeline" | "subshell" | "compound_statement" | "negated_command" => {
                self.children(node);
            }
            "command" => self.command(node),
            "redirected_statement" => self.redirected(node),
            "comment" => self.comment(node),
            "test_command" => self.test(node),
            kind => {
                self.add_reason(reason_of(kind));
                self.collect_commands(node);
            }
        }
    }

    fn children(&mut self, node: Node<'_>) {
        for child in all_children(node) {
            if child.is_named() {
                self.statement(child);
            } else {
                match child.kind() {
                    "&&" | "||" | "|" | "|&" | ";" | "\n" | "(" | ")" | "{" | "}" | "!" => {
                        self.operator(child)
                    }
                    "&" => {
                        self.operator(child);
                        self.out.known_reasons.push("It goes on in the background (&)".to_owned());
                    }
                    _ => self.add_reason(NOT_ANALYZED),
                }
            }
        }
    }

    fn command(&mut self, node: Node<'_>) {
        let number = self.out.commands.len();
        self.out.commands.push(RawCommand::default());
        let mut words = Vec::new();
        for child in all_children(node) {
            match child.kind() {
                "variable_assignment" => {
                    self.add_reason("It sets variables for a command");
                    self.collect_commands(child);
                }
                "command_name" | "word" | "string" | "raw_string" | "number" | "concatenation" => {
                    words.push(self.word(child, Some(number)));
                }
                "file_redirect" => self.file_redirect(child),
                kind => {
                    self.add_reason(reason_of(kind));
                    words.push(None);
                    self.collect_commands(child);
                }
            }
        }
        self.out.commands[number].words = words;
    }

    /// `[ … ]` with words that hold no blanks is the command `test`.
    fn test(&mut self, node: Node<'_>) {
        let at = node.byte_range();
        let inner = self.line[at.clone()].strip_prefix("[ ").and_then(|text| text.strip_suffix(" ]"));
        let words = inner
            .map(|inner| inner.split([' ', '\t']).filter(|word| !word.is_empty()).map(Word::read).collect());
        match words {
            Some(Ok(words)) => {
                let words: Vec<Word> = words;
                let words = std::iter::once(Word::plain("test")).chain(words).map(Some).collect();
                self.out.commands.push(RawCommand { words });
                self.tokens.push(Token { at, command: None });
            }
            _ => {
                self.add_reason(NOT_ANALYZED);
                self.collect_commands(node);
            }
        }
    }

    fn word(&mut self, node: Node<'_>, command: Option<usize>) -> Option<Word> {
        let at = node.byte_range();
        let raw = &self.line[at.clone()];
        let end = at.end;
        self.tokens.push(Token { at, command });
        match Word::read(raw) {
            Ok(word) => Some(Word { end, ..word }),
            Err(reason) => {
                self.add_reason(reason);
                self.collect_commands(node);
                None
            }
        }
    }

    fn redirected(&mut self, node: Node<'_>) {
        for child in all_children(node) {
            match child.kind() {
                "file_redirect" => self.file_redirect(child),
                "heredoc_redirect" | "herestring_redirect" => {
                    self.add_reason("It has a here-document");
                    self.collect_commands(child);
                }
                _ if child.is_named() => self.statement(child),
                _ => self.add_reason(NOT_ANALYZED),
            }
        }
    }

    fn file_redirect(&mut self, node: Node<'_>) {
        let mut operator = "";
        let mut targets = Vec::new();
        for child in all_children(node) {
            match child.kind() {
                "file_descriptor" => self.operator(child),
                kind if !child.is_named() => {
                    operator = kind;
                    self.operator(child);
                }
                "word" | "string" | "raw_string" | "number" | "concatenation" => {
                    targets.push(self.word(child, None));
                }
                kind => {
                    self.add_reason(reason_of(kind));
                    targets.push(None);
                    self.collect_commands(child);
                }
            }
        }
        let target = match targets.as_slice() {
            [Some(target)] => target,
            [] if matches!(operator, ">&-" | "<&-") => return,
            _ => return self.add_reason(NOT_ANALYZED),
        };
        let text = target.as_str();
        let to_descriptor = text == "-" || text.bytes().all(|byte| byte.is_ascii_digit());
        match operator {
            ">&" | "<&" if to_descriptor => {}
            "<" => self.out.redirected.push(target.clone()),
            ">" | ">>" | "&>" | "&>>" | ">|" | ">&" if text == "/dev/null" => {}
            ">" | ">>" | "&>" | "&>>" | ">|" | ">&" => {
                self.out.known_reasons.push(format!("It writes to {text}"));
                self.out.redirected.push(target.clone());
            }
            _ => self.add_reason(NOT_ANALYZED),
        }
    }

    fn comment(&mut self, node: Node<'_>) {
        let at = node.byte_range();
        let text = &self.line[at.clone()];
        let before = self.line[..at.start].chars().next_back();
        let begins = before.is_none_or(|char| " \t\n;&|()".contains(char));
        if !begins || !text.starts_with('#') || text.contains('\n') {
            self.add_reason(NOT_ANALYZED);
        }
        self.tokens.push(Token { at, command: None });
    }

    /// `!`, `{` and `}` are operators only as words of their own; only a number of its own says what is redirected.
    fn operator(&mut self, node: Node<'_>) {
        let at = node.byte_range();
        let before = self.line[..at.start].chars().next_back();
        let after = self.line[at.end..].chars().next();
        let apart = |char: Option<char>| char.is_none_or(|char| " \t\n;&|()".contains(char));
        let is_number = self.line[at].bytes().all(|byte| byte.is_ascii_digit());
        let right = match node.kind() {
            "!" | "{" | "}" => apart(before) && apart(after),
            "file_descriptor" => apart(before) && is_number,
            _ => true,
        };
        if !right {
            self.add_reason(NOT_ANALYZED);
        }
        self.tokens.push(Token { at: node.byte_range(), command: None });
    }

    /// Looks for commands in what is not analyzed itself, so that people and rules see them.
    fn collect_commands(&mut self, node: Node<'_>) {
        if !self.enter() {
            return;
        }
        for child in all_children(node).into_iter().filter(Node::is_named) {
            match child.kind() {
                "command" | "list" | "pipeline" | "redirected_statement" | "subshell" | "negated_command" => {
                    self.statement(child);
                }
                _ => self.collect_commands(child),
            }
        }
        self.depth -= 1;
    }

    /// Between two words of a command is blank space and no line end; between commands is an operator or a line end.
    fn covers_whole_line(&mut self) -> bool {
        self.tokens.sort_by_key(|token| (token.at.start, token.at.end));
        let mut end = 0;
        let mut last: Option<usize> = None;
        for token in &self.tokens {
            if token.at.start < end {
                return false;
            }
            let gap = &self.line[end..token.at.start];
            if gap.chars().any(|char| !matches!(char, ' ' | '\t' | '\n')) {
                return false;
            }
            let apart = match (last, token.command) {
                (Some(one), Some(other)) if one == other => !gap.is_empty() && !gap.contains('\n'),
                (Some(_), Some(_)) => gap.contains('\n'),
                _ => true,
            };
            if !apart {
                return false;
            }
            last = token.command;
            end = token.at.end;
        }
        self.line[end..].chars().all(|char| matches!(char, ' ' | '\t' | '\n'))
    }

    fn add_reason(&mut self, reason: impl Into<String>) {
        let reason = reason.into();
        if !self.out.reasons.contains(&reason) {
            self.out.reasons.push(reason);
        }
    }
}

fn all_children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

fn reason_of(kind: &str) -> &'static str {
    match kind {
        "command_substitution" => "It puts in the output of a command",
        "process_substitution" => "It has a process substitution",
        "simple_expansion" | "expansion" | "arithmetic_expansion" => "It puts in a value ($…)",
        "ansi_c_string" | "translated_string" => "It has a string with escapes ($'…')",
        "variable_assignment" | "variable_assignments" | "declaration_command" | "unset_command" => {
            "It sets variables"
        }
        "function_definition" => "It defines a function",
        "heredoc_redirect" | "herestring_redirect" => "It has a here-document",
        "if_statement" | "while_statement" | "for_statement" | "c_style_for_statement" | "case_statement" => {
            "It has a loop or a condition"
        }
        "brace_expression" => "It has a brace expansion",
        _ => NOT_ANALYZED,
    }
}
