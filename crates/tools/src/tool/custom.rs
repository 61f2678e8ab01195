//! Tools of the user's own: a shell line with places for arguments.
//!
//! Invariants: an argument is one word of the line, whatever it holds and wherever its place is; the filled line is
//! reviewed, confined and run exactly as a line of `shell_command`.

use std::fmt::Write as _;
use std::sync::Arc;

use domain::tool::{Invocation, Scope, ToolEffect, ToolResult};
use domain::tool_call::Origin;
use domain::{BoxFuture, Review, Tool, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::shell_command::{Input, ShellCommand};
pub use crate::custom_tool::CustomTool;
use crate::offered::{BUILT_IN_SERVER, BuiltInTool, with_secrets};

pub(crate) struct CustomCommand {
    spec: ToolSpec,
    template: String,
    shell: Arc<ShellCommand>,
}

impl CustomCommand {
    pub(crate) fn new(definition: CustomTool, shell: Arc<ShellCommand>) -> Self {
        let CustomTool { name, description, command, input_schema } = definition;
        let (server, origin) = (BUILT_IN_SERVER.to_owned(), Origin::Native);
        let effect = ToolEffect::RunsCommands;
        let spec = ToolSpec { name, server, origin, description, input_schema, effect };
        Self { spec, template: command, shell }
    }

    fn shell_input(&self, input: &Value) -> Result<Input, String> {
        let line = fill(&self.template, input)?;
        Input::deserialize(json!({"command": line})).map_err(|error| error.to_string())
    }
}

impl Tool for CustomCommand {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shell.prepare())
    }

    fn review(&self, input: &Value, scope: &Scope) -> Result<Review, String> {
        Ok(with_secrets(self.shell.review(self.shell_input(input)?, scope)?))
    }

    fn remember(&self, keys: &[String], scope: &Scope) {
        self.shell.remember(keys, scope);
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let outcome = match self.shell_input(&call.input) {
                Ok(input) => self.shell.run(input, call).await,
                Err(problem) => Err(problem),
            };
            outcome.unwrap_or_else(ToolResult::error)
        })
    }
}

/// How the shell reads a place of the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

/// The line with the arguments in their places; one that is missing becomes an empty word.
fn fill(template: &str, input: &Value) -> Result<String, String> {
    let mut line = String::with_capacity(template.len());
    let (mut quote, mut rest) = (Quote::None, template);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else { break };
        line.push_str(before);
        quote = quote_after(before, quote);
        add_argument(&mut line, &text_of(input.get(name.trim()))?, quote);
        rest = after;
    }
    line.push_str(rest);
    Ok(line)
}

fn text_of(argument: Option<&Value>) -> Result<String, String> {
    let text = match argument {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if text.contains('\0') { Err("An argument holds a zero byte.".to_owned()) } else { Ok(text) }
}

/// The quotes that are open behind a piece of the line.
fn quote_after(text: &str, mut quote: Quote) -> Quote {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        quote = match (quote, character) {
            (Quote::None | Quote::Double, '\\') => {
                characters.next();
                quote
            }
            (Quote::None, '\'') => Quote::Single,
            (Quote::None, '"') => Quote::Double,
            (Quote::Single, '\'') | (Quote::Double, '"') => Quote::None,
            (quote, _) => quote,
        };
    }
    quote
}

/// Adds an argument so that the shell takes every character of it as it is.
fn add_argument(line: &mut String, text: &str, quote: Quote) {
    let is_plain = |character: char| {
        character.is_ascii_alphanumeric()
            || matches!(character, '_' | '-' | '.' | '/' | ':' | '@' | '%' | '+' | ',')
    };
    match quote {
        Quote::None if !text.is_empty() && text.chars().all(is_plain) => line.push_str(text),
        Quote::None => {
            // Writing to a string cannot fail.
            let _ = write!(line, "'{}'", text.replace('\'', "'\\''"));
        }
        Quote::Single => line.push_str(&text.replace('\'', "'\\''")),
        Quote::Double => {
            for character in text.chars() {
                if matches!(character, '\\' | '"' | '$' | '`') {
                    line.push('\\');
                }
                line.push(character);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test asks the shell itself what it makes of a line")]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_one_word_wherever_its_place_is() {
        let evil = "a b'; rm -rf \"$HOME\" `x` \\";
        let rows = ["printf %s {{x}}", "printf %s '{{x}}'", "printf %s \"{{x}}\"", "printf %s \\'{{x}}"];
        for template in rows {
            let line = fill(template, &json!({"x": evil})).unwrap();
            let output = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(printed.trim_start_matches('\''), evil, "{line}");
        }
    }

    #[test]
    fn plain_arguments_stay_readable_and_missing_ones_are_empty() {
        let rows = [
            (json!({"a": "src/main.rs", "b": 3}), "grep src/main.rs 3"),
            (json!({"a": true}), "grep true ''"),
            (json!({"a": ""}), "grep '' ''"),
        ];
        for (input, line) in rows {
            assert_eq!(fill("grep {{a}} {{ b }}", &input).unwrap(), line);
        }
        assert_eq!(fill("awk '{{print $1}", &json!({})).unwrap(), "awk '{{print $1}");
        assert!(fill("x {{a}}", &json!({"a": "\0"})).is_err());
    }
}
