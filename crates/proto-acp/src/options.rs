//! The choices of a user in a session: settings as the protocol's modes and configuration options.
//!
//! Invariant: the current value is always one of the offered ones, and only offered values are accepted.

use domain::command::{Catalog, SessionSettings};
use rpc::Fault;

use crate::from_wire::invalid;
use crate::wire::acp;

const MODE: &str = "mode";
const MODEL: &str = "model";
const VARIANT: &str = "variant";
const TRUST: &str = "trust";
/// The choices of `trust` for clients without on/off options.
const ASK_FIRST: &str = "ask";
const TRUSTED: &str = "trust";
/// Shown while no variant was chosen.
const UNCHOSEN: &str = "default";

pub(crate) fn modes(catalog: &Catalog, settings: &SessionSettings) -> acp::SessionModeState {
    let current = behavior(catalog, settings);
    let modes = behaviors(catalog, current)
        .into_iter()
        .map(|name| acp::SessionMode::new(name.to_owned(), title(name)).description(description(name)));
    acp::SessionModeState::new(current.to_owned(), modes.collect())
}

pub(crate) fn options(
    catalog: &Catalog,
    settings: &SessionSettings,
    boolean: bool,
) -> Vec<acp::SessionConfigOption> {
    let mut options = vec![mode(catalog, settings)];
    options.extend(model(catalog, settings));
    options.extend(variant(catalog, settings));
    options.push(trust(settings, boolean));
    options
}

/// The change that setting an option means.
pub(crate) fn change(
    catalog: &Catalog,
    settings: &SessionSettings,
    id: &str,
    value: &acp::SessionConfigOptionValue,
) -> Result<SessionSettings, Fault> {
    if id == TRUST {
        let chosen = value.as_value_id().map(|value| value.0.as_ref());
        let trust = value.as_bool().or(match chosen {
            Some(TRUSTED | "true" | "on") => Some(true),
            Some(ASK_FIRST | "false" | "off") => Some(false),
            _ => None,
        });
        let sentence = "The option trust is \"ask\" or \"trust\", or true or false.";
        let trust = trust.ok_or_else(|| invalid(sentence))?;
        return Ok(SessionSettings { trust: Some(trust), ..SessionSettings::default() });
    }
    let offered = match id {
        MODE => Some(mode(catalog, settings)),
        MODEL => model(catalog, settings),
        VARIANT => variant(catalog, settings),
        _ => None,
    };
    let offered = offered.ok_or_else(|| invalid(format!("There is no option {id} in this session.")))?;
    let value = value.as_value_id().map(|value| value.0.to_string()).unwrap_or_default();
    if !values(&offered).any(|offered| *offered == *value) {
        return Err(invalid(format!(
            "The option {id} cannot be {value:?}; choose one of the offered values."
        )));
    }
    Ok(match id {
        MODE => SessionSettings { behavior: Some(value), ..SessionSettings::default() },
        MODEL => SessionSettings { model: Some(value), ..SessionSettings::default() },
        // "default" stands for no choice; nothing changes.
        _ if value == UNCHOSEN && settings.variant.is_none() => SessionSettings::default(),
        _ => SessionSettings { variant: Some(value), ..SessionSettings::default() },
    })
}

/// The change that choosing a mode means.
pub(crate) fn mode_change(
    catalog: &Catalog,
    settings: &SessionSettings,
    mode: &str,
) -> Result<SessionSettings, Fault> {
    change(catalog, settings, MODE, &mode.into())
        .map_err(|_| invalid(format!("There is no mode {mode:?}; choose one of the offered modes.")))
}

fn mode(catalog: &Catalog, settings: &SessionSettings) -> acp::SessionConfigOption {
    let current = behavior(catalog, settings);
    let choices: Vec<_> = behaviors(catalog, current)
        .into_iter()
        .map(|name| {
            acp::SessionConfigSelectOption::new(name.to_owned(), title(name)).description(description(name))
        })
        .collect();
    acp::SessionConfigOption::select(MODE, "Mode", current.to_owned(), choices)
        .category(acp::SessionConfigOptionCategory::Mode)
}

fn model(catalog: &Catalog, settings: &SessionSettings) -> Option<acp::SessionConfigOption> {
    let current = settings.model.as_ref().or(catalog.default_model.as_ref())?;
    let mut names: Vec<&str> = catalog.models.iter().map(|model| model.id.as_str()).collect();
    if !names.contains(&current.as_str()) {
        names.insert(0, current);
    }
    Some(
        acp::SessionConfigOption::select(MODEL, "Model", current.clone(), choices(&names))
            .category(acp::SessionConfigOptionCategory::Model),
    )
}

fn variant(catalog: &Catalog, settings: &SessionSettings) -> Option<acp::SessionConfigOption> {
    let model = settings.model.as_ref().or(catalog.default_model.as_ref())?;
    let info = catalog.models.iter().find(|info| info.id == *model)?;
    if info.variants.is_empty() {
        return None;
    }
    let current = settings.variant.as_deref().unwrap_or(UNCHOSEN);
    let mut names: Vec<&str> = info.variants.iter().map(String::as_str).collect();
    if !names.contains(&current) {
        names.insert(0, current);
    }
    Some(
        acp::SessionConfigOption::select(VARIANT, "Reasoning", current.to_owned(), choices(&names))
            .category(acp::SessionConfigOptionCategory::ThoughtLevel),
    )
}

fn trust(settings: &SessionSettings, boolean: bool) -> acp::SessionConfigOption {
    let on = settings.trust.unwrap_or(false);
    let option = if boolean {
        acp::SessionConfigOption::boolean(TRUST, "Never ask", on)
    } else {
        let choices = vec![
            acp::SessionConfigSelectOption::new(ASK_FIRST, "Ask first"),
            acp::SessionConfigSelectOption::new(TRUSTED, "Never ask"),
        ];
        acp::SessionConfigOption::select(TRUST, "Approvals", if on { TRUSTED } else { ASK_FIRST }, choices)
    };
    option.description("Tool calls run without asking; what is forbidden stays forbidden.".to_owned())
}

fn choices(names: &[&str]) -> Vec<acp::SessionConfigSelectOption> {
    names.iter().map(|name| acp::SessionConfigSelectOption::new((*name).to_owned(), *name)).collect()
}

fn values(option: &acp::SessionConfigOption) -> impl Iterator<Item = &str> {
    let mut ungrouped: &[acp::SessionConfigSelectOption] = &[];
    if let acp::SessionConfigKind::Select(select) = &option.kind
        && let acp::SessionConfigSelectOptions::Ungrouped(choices) = &select.options
    {
        ungrouped = choices;
    }
    ungrouped.iter().map(|choice| choice.value.0.as_ref())
}

fn behavior<'a>(catalog: &'a Catalog, settings: &'a SessionSettings) -> &'a str {
    let default = if catalog.default_behavior.is_empty() { "agent" } else { &catalog.default_behavior };
    settings.behavior.as_deref().unwrap_or(default)
}

fn behaviors<'a>(catalog: &'a Catalog, current: &'a str) -> Vec<&'a str> {
    let mut names: Vec<&str> = catalog.behaviors.iter().map(String::as_str).collect();
    if !names.contains(&current) {
        names.push(current);
    }
    names
}

fn title(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn description(name: &str) -> Option<String> {
    match name {
        "agent" => Some("Reads, edits and runs; asks where the rules say so.".to_owned()),
        "plan" => Some("Reads and plans; changes nothing.".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use domain::model::ModelInfo;

    use super::*;

    fn catalog() -> Catalog {
        let model = |id: &str, variants: &[&str]| ModelInfo {
            id: id.into(),
            variants: variants.iter().map(|name| (*name).to_owned()).collect(),
            ..ModelInfo::default()
        };
        Catalog {
            models: vec![model("a/plain", &[]), model("b/deep", &["low", "high"])],
            behaviors: vec!["agent".into(), "plan".into()],
            default_model: Some("a/plain".into()),
            default_behavior: "agent".into(),
            ..Catalog::default()
        }
    }

    fn shown(settings: &SessionSettings, boolean: bool) -> Vec<(String, String)> {
        let current = |option: &acp::SessionConfigOption| match &option.kind {
            acp::SessionConfigKind::Select(select) => select.current_value.to_string(),
            acp::SessionConfigKind::Boolean(boolean) => boolean.current_value.to_string(),
            _ => unreachable!(),
        };
        options(&catalog(), settings, boolean).iter().map(|it| (it.id.to_string(), current(it))).collect()
    }

    fn pair(id: &str, value: &str) -> (String, String) {
        (id.to_owned(), value.to_owned())
    }

    #[test]
    fn the_current_value_is_always_offered() {
        let plain = SessionSettings::default();
        assert_eq!(
            shown(&plain, true),
            [pair("mode", "agent"), pair("model", "a/plain"), pair("trust", "false")]
        );
        let odd = SessionSettings {
            behavior: Some("mine".into()),
            model: Some("b/deep".into()),
            trust: Some(true),
            ..SessionSettings::default()
        };
        assert_eq!(
            shown(&odd, false),
            [
                pair("mode", "mine"),
                pair("model", "b/deep"),
                pair("variant", "default"),
                pair("trust", "trust")
            ]
        );
        let gone = SessionSettings { model: Some("c/unlisted".into()), ..SessionSettings::default() };
        let model = model(&catalog(), &gone).unwrap();
        assert!(values(&model).any(|value| value == "c/unlisted"));
    }

    #[test]
    fn only_offered_values_are_accepted() {
        let catalog = catalog();
        let deep = SessionSettings { model: Some("b/deep".into()), ..SessionSettings::default() };
        let set = |id: &str, value: acp::SessionConfigOptionValue| change(&catalog, &deep, id, &value);
        assert_eq!(set("mode", "plan".into()).unwrap().behavior.as_deref(), Some("plan"));
        assert_eq!(set("model", "a/plain".into()).unwrap().model.as_deref(), Some("a/plain"));
        assert_eq!(set("variant", "high".into()).unwrap().variant.as_deref(), Some("high"));
        assert_eq!(set("variant", "default".into()).unwrap(), SessionSettings::default());
        assert_eq!(set("trust", true.into()).unwrap().trust, Some(true));
        assert_eq!(set("trust", "ask".into()).unwrap().trust, Some(false));
        for (id, value) in
            [("mode", "wild"), ("model", "x/y"), ("variant", "max"), ("trust", "x"), ("other", "x")]
        {
            assert!(set(id, value.into()).is_err(), "{id} {value}");
        }
        assert!(set("mode", true.into()).is_err());
        assert!(mode_change(&catalog, &deep, "plan").is_ok());
        assert!(mode_change(&catalog, &deep, "wild").unwrap_err().message.contains("wild"));
    }
}
