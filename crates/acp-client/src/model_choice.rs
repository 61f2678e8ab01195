//! The models that an agent offers for its session, in the two ways in which agents say so, and the request that chooses
//! one. Pure.

use serde_json::{Value, json};

use crate::wire::{SessionResult, method};

/// Models that are read from an agent; more are left out.
const MOST: usize = 500;
const LONGEST_NAME: usize = 200;
/// The name of the model that the agent itself would take.
pub(crate) const DEFAULT: &str = "default";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentModel {
    pub id: String,
    pub name: String,
}

/// The choice between models of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelChoice {
    pub(crate) models: Vec<AgentModel>,
    pub(crate) current: String,
    /// The configuration option that chooses the model; `None`: the method for models does.
    option: Option<String>,
}

impl ModelChoice {
    pub(crate) fn of(result: &SessionResult) -> Self {
        Self::of_option(&result.config_options).unwrap_or_else(|| Self::of_models(&result.models))
    }

    fn of_models(models: &Value) -> Self {
        let listed = models["availableModels"].as_array().into_iter().flatten();
        let models_of = listed.filter_map(|model| model_of(&model["modelId"], &model["name"]));
        Self {
            models: models_of.take(MOST).collect(),
            current: models["currentModelId"].as_str().unwrap_or_default().to_owned(),
            option: None,
        }
    }

    fn of_option(options: &Value) -> Option<Self> {
        let is_choice = |option: &&Value| option["category"] == "model" || option["id"] == "model";
        let option = options.as_array()?.iter().find(is_choice)?;
        let entries =
            option["options"].as_array()?.iter().flat_map(|entry| match entry["options"].as_array() {
                Some(group) => group.iter().collect::<Vec<_>>(),
                None => vec![entry],
            });
        let models = entries.filter_map(|entry| model_of(&entry["value"], &entry["name"]));
        Some(Self {
            models: models.take(MOST).collect(),
            current: option["currentValue"].as_str().unwrap_or_default().to_owned(),
            option: Some(option["id"].as_str()?.to_owned()),
        })
    }

    /// The request that chooses a model, where the session has another one now. `Err`: why there is no such model.
    pub(crate) fn request(
        &self,
        wanted: &str,
        session: &str,
    ) -> Result<Option<(&'static str, Value)>, String> {
        if wanted == DEFAULT || wanted == self.current {
            return Ok(None);
        }
        let Some(model) = self.find(wanted) else { return Err(self.missing(wanted)) };
        if model.id == self.current {
            return Ok(None);
        }
        Ok(Some(match &self.option {
            Some(option) => (
                method::SESSION_SET_CONFIG_OPTION,
                json!({"sessionId": session, "configId": option, "value": model.id}),
            ),
            None => (method::SESSION_SET_MODEL, json!({"sessionId": session, "modelId": model.id})),
        }))
    }

    fn find(&self, wanted: &str) -> Option<&AgentModel> {
        let is_same = |text: &str| text.eq_ignore_ascii_case(wanted);
        self.models
            .iter()
            .find(|model| is_same(&model.id))
            .or_else(|| self.models.iter().find(|model| is_same(&model.name)))
    }

    fn missing(&self, wanted: &str) -> String {
        if self.models.is_empty() {
            return format!("The agent offers no choice of models, so there is no {wanted}.");
        }
        let names: Vec<&str> = self.models.iter().take(20).map(|model| model.id.as_str()).collect();
        format!("The agent has no model {wanted}. It has: {}.", names.join(", "))
    }
}

fn model_of(id: &Value, name: &Value) -> Option<AgentModel> {
    let id = id.as_str().filter(|id| !id.is_empty() && id.len() <= LONGEST_NAME)?;
    let name = name.as_str().filter(|name| name.len() <= LONGEST_NAME).unwrap_or(id);
    Some(AgentModel { id: id.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(value: Value) -> SessionResult {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn both_ways_of_offering_models_are_read() {
        let old = ModelChoice::of(&result(json!({"sessionId": "s", "models": {
            "currentModelId": "opus", "availableModels": [{"modelId": "opus", "name": "Opus 5"}, {"modelId": "haiku", "name": "Haiku"}, {"name": "x"}]}})));
        assert_eq!(old.models.len(), 2);
        assert_eq!(old.request("default", "s"), Ok(None));
        assert_eq!(old.request("opus 5", "s"), Ok(None));
        let expected = ("session/set_model", json!({"sessionId": "s", "modelId": "haiku"}));
        assert_eq!(old.request("Haiku", "s"), Ok(Some(expected)));
        let new = ModelChoice::of(&result(
            json!({"configOptions": [{"id": "mode"}, {"id": "m", "category": "model", "type": "select",
            "currentValue": "a", "options": [{"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]}]}]}),
        ));
        let expected =
            ("session/set_config_option", json!({"sessionId": "s", "configId": "m", "value": "b"}));
        assert_eq!(new.request("b", "s"), Ok(Some(expected)));
        assert!(new.request("c", "s").unwrap_err().contains("It has: a, b."));
        assert!(ModelChoice::of(&SessionResult::default()).request("c", "s").is_err());
    }
}
