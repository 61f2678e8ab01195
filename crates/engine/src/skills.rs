//! Skills: instructions for one kind of work, which the model loads when it needs them.
//!
//! Must not know where skills are kept. Invariant: the model always knows the names and what each is for; the text costs
//! nothing until it is loaded.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use domain::BoxFuture;
use domain::tool::{Invocation, Review, Scope, Tool, ToolEffect, ToolResult, ToolSpec};
use domain::tool_call::Origin;
use serde_json::{Value, json};

use crate::session::Session;
use crate::workspace::Skill;

/// The first line of the part of the system prompt that names the skills.
pub(crate) const HEADING: &str = "Skills that the tool skill loads:";
/// What the model is told of one skill, in characters.
const SHOWN_DESCRIPTION: usize = 400;

/// The tool `skill`.
pub(crate) struct LoadSkill {
    skills: Arc<[Skill]>,
}

/// The skills as a turn knows them: looking for them costs a dozen system calls, which not every step must pay.
#[derive(Default)]
pub(crate) struct KnownSkills(Mutex<Option<Arc<[Skill]>>>);

impl KnownSkills {
    /// Files may have changed: they are looked for again.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    fn get(&self, session: &Session) -> Arc<[Skill]> {
        self.lock().get_or_insert_with(|| session.workspace.texts.skills().into()).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<[Skill]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: "skill".to_owned(),
    server: "eca".to_owned(),
    origin: Origin::Native,
    description: "Loads the instructions of a skill. Load one before you do the work it is for.".to_owned(),
    input_schema: json!({
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    }),
    effect: ToolEffect::Reads,
});

impl LoadSkill {
    /// `None` where there are no skills.
    pub(crate) fn of(session: &Session, known: &KnownSkills) -> Option<Self> {
        let skills = known.get(session);
        (!skills.is_empty()).then_some(Self { skills })
    }

    fn find(&self, input: &Value) -> Result<&Skill, String> {
        let name = input["name"].as_str().unwrap_or_default();
        self.skills.iter().find(|skill| skill.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.skills.iter().map(|skill| skill.name.as_str()).collect();
            format!("There is no skill {name:?}. There are: {}.", names.join(", "))
        })
    }
}

impl Tool for LoadSkill {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn review(&self, input: &Value, _scope: &Scope) -> Result<Review, String> {
        let skill = self.find(input)?;
        Ok(Review {
            summary: format!("Loading the skill {}", skill.name),
            harmless: true,
            ..Review::default()
        })
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            self.find(&call.input).map_or_else(ToolResult::error, |skill| ToolResult::text(text(skill)))
        })
    }
}

/// A skill as the model is given it.
pub(crate) fn text(skill: &Skill) -> String {
    format!(
        "<skill name=\"{}\" folder=\"{}\">\n{}\n</skill>",
        skill.name,
        skill.folder.display(),
        skill.text.trim()
    )
}

/// The part of the system prompt that names the skills; `None` where there are none.
pub(crate) fn instructions(session: &Session) -> Option<String> {
    let skills = session.workspace.texts.skills();
    if skills.is_empty() {
        return None;
    }
    let line = |skill: &Skill| {
        let description: String = skill.description.chars().take(SHOWN_DESCRIPTION).collect();
        format!("- {}: {description}", skill.name)
    };
    let lines: Vec<String> = skills.iter().map(line).collect();
    Some(format!("{HEADING}\n{}", lines.join("\n")))
}
