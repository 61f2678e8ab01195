//! The plan inside the module: written as a data literal, read back from code of any origin.
//!
//! Owns the marker, the hash and the escaping. The literal is JSON, so reading it runs nothing; what is read is
//! validated before it is returned.

use crate::plan::{Plan, VERSION};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};

const MARKER: &str = "\n// dragoman plan ";
const OPENING: &str = "const PLAN = ";
/// Far above the largest plan of a specification that is read.
const MAX_LITERAL: usize = 100 * 1024 * 1024;

/// Why code is not one of our generated modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownModule {
    /// It carries no plan.
    NoPlan,
    /// Its plan has a version that is not known here.
    Version(String),
    /// Somebody changed the code before the plan.
    Changed,
    /// The plan is not what was written.
    Broken(String),
}

impl fmt::Display for UnknownModule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnknownModule::NoPlan => out.write_str("This code does not carry a Dragoman plan."),
            UnknownModule::Version(version) => {
                write!(out, "The plan in this code has version {version}; this program knows {VERSION}.")
            }
            UnknownModule::Changed => out.write_str("This code was changed after it was generated."),
            UnknownModule::Broken(reason) => write!(out, "The plan in this code cannot be used: {reason}"),
        }
    }
}

impl std::error::Error for UnknownModule {}

/// The plan of a module that was printed here and not changed since.
pub fn plan_of(code: &str) -> Result<Plan, UnknownModule> {
    let at = code.rfind(MARKER).ok_or(UnknownModule::NoPlan)?;
    let (before, after) = code.split_at(at + 1);
    let (head, literal) = after.split_once('\n').ok_or(UnknownModule::NoPlan)?;
    let mut words = head.trim_start_matches(&MARKER[1..]).split_whitespace();
    let version = words.next().unwrap_or_default();
    if version != VERSION.to_string() {
        return Err(UnknownModule::Version(version.chars().take(20).collect()));
    }
    let expected = words.next().and_then(|word| word.strip_prefix("sha256:")).unwrap_or_default();
    if expected != hex(&Sha256::digest(before.as_bytes())) {
        return Err(UnknownModule::Changed);
    }
    let json = literal.trim().strip_prefix(OPENING).and_then(|rest| rest.strip_suffix(';'));
    let json = json
        .filter(|json| json.len() <= MAX_LITERAL)
        .ok_or_else(|| UnknownModule::Broken("it is not a literal.".to_owned()))?;
    let mut plan: Plan =
        serde_json::from_str(json).map_err(|error| UnknownModule::Broken(format!("{error}.")))?;
    // Modules of earlier versions may edit and delete without a key.
    plan.guard();
    plan.validate().map_err(|invalid| UnknownModule::Broken(invalid.to_string()))?;
    Ok(plan)
}

pub(super) fn begin(out: &mut String, hash: &[u8]) {
    let _ = writeln!(out, "{} {VERSION} sha256:{}", MARKER.trim_matches(['\n', ' ']), hex(hash));
}

/// Writes the piece with this number; false if it was the last.
pub(super) fn piece(out: &mut String, plan: &Plan, number: usize) -> bool {
    let (resources, operations) = (plan.resources.len(), plan.operations.len());
    if number == 0 {
        out.push_str(OPENING);
        head(out, plan);
        return true;
    }
    let mut at = number - 1;
    for (name, length) in
        [("resources", resources), ("operations", operations), ("shapes", plan.shapes.len())]
    {
        if at <= length {
            if at == 0 {
                let _ = write!(out, "  \"{name}\": [");
            }
            let comma = if at + 1 < length { "," } else { "" };
            let line = match name {
                // What would change rows without naming one is not printed, whoever made the plan.
                "resources" => plan.resources.get(at).map(|resource| {
                    plan.guarded(resource).map_or_else(|| json(resource), |kept| json(&kept))
                }),
                "operations" => plan.operations.get(at).map(json),
                _ => plan.shapes.get(at).map(json),
            };
            match line {
                Some(line) => {
                    let _ = write!(out, "\n    {line}{comma}");
                }
                None => out.push_str("\n  ],\n"),
            }
            return true;
        }
        at -= length + 1;
    }
    tail(out, plan);
    false
}

/// A string literal that is safe in a script of a page.
pub(super) fn text(text: &str) -> String {
    json(text)
}

fn head(out: &mut String, plan: &Plan) {
    out.push_str("{\n");
    let mut field = |name: &str, value: String| {
        let _ = writeln!(out, "  \"{name}\": {value},");
    };
    field("version", json(&plan.version));
    field("title", json(&plan.title));
    field("description", json(&plan.description));
    field("apiVersion", json(&plan.api_version));
    field("graphql", json(&plan.graphql));
    field("theme", json(&plan.theme));
    field("layout", json(&plan.layout));
    field("viewOnly", json(&plan.view_only));
    field("auth", json(&plan.auth));
    field("pagination", json(&plan.pagination));
    field("servers", json(&plan.servers));
    if !plan.headers.is_empty() {
        field("headers", json(&plan.headers));
    }
    field("schemes", json(&plan.schemes));
}

fn tail(out: &mut String, plan: &Plan) {
    if !plan.slots.is_empty() {
        let _ = writeln!(out, "  \"slots\": {},", json(&plan.slots));
    }
    if !plan.past.is_empty() {
        let _ = writeln!(out, "  \"past\": {},", json(&plan.past));
    }
    let _ = write!(
        out,
        "  \"webhooks\": {},\n  \"assumptions\": {}\n}};\n",
        json(&plan.webhooks),
        json(&plan.assumptions)
    );
}

/// JSON in which nothing can end a script element or a line of code: such characters only occur inside strings.
fn json<T: Serialize + ?Sized>(value: &T) -> String {
    // Plans have text keys and finite numbers, so this cannot fail; "null" would be refused when it is read.
    let json = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    if !json.contains(['<', '\u{2028}', '\u{2029}']) {
        return json;
    }
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
