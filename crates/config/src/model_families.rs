//! `modelFamilies`: what the user says about models that the table of families does not know or knows otherwise.
//!
//! Invariant: a value that cannot be read is reported and left out; the others of its entry hold.

use domain::Level;

use crate::cursor::Cursor;

/// How a model changes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditFormat {
    /// By texts to replace.
    Replace,
    /// By patches.
    Patch,
    /// By texts to replace, and small files as a whole.
    Whole,
}

impl EditFormat {
    pub const ALL: [Self; 3] = [Self::Replace, Self::Patch, Self::Whole];

    pub fn name(self) -> &'static str {
        match self {
            Self::Replace => "replace",
            Self::Patch => "patch",
            Self::Whole => "whole",
        }
    }
}

/// An entry: a pattern of models and what holds for them; `None` leaves a part as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FamilyRule {
    pub pattern: String,
    /// Where it stands, for people.
    pub origin: String,
    pub family: Option<String>,
    pub prompt: Option<String>,
    pub edits: Option<EditFormat>,
    pub without_tools: Option<Vec<String>>,
    pub parallel: Option<bool>,
    /// `default` takes the effort of the family away.
    pub effort: Option<String>,
    pub tasks: Option<bool>,
}

pub(crate) fn read(cursor: &Cursor) -> Vec<FamilyRule> {
    cursor.entries().iter().map(read_rule).collect()
}

fn read_rule(entry: &Cursor) -> FamilyRule {
    let edits = entry.get("editFormat");
    let format = edits.text().and_then(|name| {
        let format = EditFormat::ALL.into_iter().find(|format| format.name() == name);
        if format.is_none() {
            edits.report(Level::Error, "must be `replace`, `patch` or `whole`.");
        }
        format
    });
    let without = entry.get("withoutTools");
    FamilyRule {
        pattern: entry.name().to_owned(),
        origin: entry.origin().to_string(),
        family: entry.get("family").text(),
        prompt: entry.get("prompt").text(),
        edits: format,
        without_tools: without.value().is_some().then(|| without.texts()),
        parallel: entry.get("parallelCalls").flag(),
        effort: entry.get("effort").text(),
        tasks: entry.get("taskList").flag(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Environment, Inputs};

    #[test]
    fn an_entry_says_what_holds_for_its_models() {
        let home = tempfile::tempdir().unwrap();
        let families = json!({"house/*": {"family": "gpt", "editFormat": "whole", "taskList": false, "withoutTools": []},
            "x": {"editFormat": "magic", "effort": "high"}});
        let config = json!({"modelFamilies": families}).to_string();
        let environment = Environment::new(home.path(), [("DRAGOMAN_CONFIG", config)]);
        let resolved = crate::resolve(&environment, &Inputs::default());
        let notices: Vec<String> = resolved.notices.into_iter().map(|notice| notice.text).collect();
        assert!(notices.len() == 1 && notices[0].contains("`whole`"), "{notices:?}");
        let rules = resolved.settings.model_families;
        assert_eq!(rules[0].family.as_deref(), Some("gpt"));
        assert_eq!((rules[0].edits, rules[0].tasks), (Some(EditFormat::Whole), Some(false)));
        assert_eq!(rules[0].without_tools, Some(Vec::new()));
        assert_eq!((rules[1].edits, rules[1].effort.as_deref()), (None, Some("high")));
    }
}
