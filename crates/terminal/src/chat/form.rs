//! A form of an MCP server: its fields, their values and the resulting data.
//!
//! Pure. Invariants: a form has only text, number, yes/no and choice fields; its data matches the schema.

#![allow(clippy::wildcard_enum_match_arm, reason = "most keys have no meaning here")]

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Map, Value};

use super::input::Input;
use crate::text::clean_line;

/// A form with more fields is declined.
const MAX_FIELDS: usize = 50;

pub struct Form {
    schema: Value,
    pub fields: Vec<Field>,
    /// The index of the focused field.
    pub at: usize,
    /// Why the form was not sent.
    pub problem: Option<String>,
}

pub struct Field {
    name: String,
    pub title: String,
    pub description: Option<String>,
    pub required: bool,
    pub kind: FieldKind,
    pub input: Input,
}

pub enum FieldKind {
    Text,
    Number,
    /// The values with their labels.
    Choice {
        options: Vec<(Value, String)>,
        chosen: Option<usize>,
    },
}

impl Form {
    /// Returns `None` if a terminal cannot show a field.
    pub fn read(schema: &Value) -> Option<Self> {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties =
            schema["properties"].as_object().filter(|all| (1..=MAX_FIELDS).contains(&all.len()))?;
        let fields = properties.iter().map(|(name, it)| Field::read(name, it, required.contains(&&**name)));
        Some(Self { schema: schema.clone(), fields: fields.collect::<Option<_>>()?, at: 0, problem: None })
    }

    /// The input of the focused field.
    pub fn input(&mut self) -> Option<&mut Input> {
        self.fields.get_mut(self.at).map(|field| &mut field.input)
    }

    /// Handles a key; returns the data if the key sends the form.
    pub fn handle_key(&mut self, key: KeyEvent) -> Option<Value> {
        self.problem = None;
        let count = self.fields.len();
        match key.code {
            KeyCode::Up | KeyCode::BackTab => self.at = (self.at + count - 1) % count,
            KeyCode::Down => self.at = (self.at + 1) % count,
            KeyCode::Enter => return self.enter(),
            _ => {
                if let Some(field) = self.fields.get_mut(self.at) {
                    field.handle_key(key);
                }
            }
        }
        None
    }

    pub fn handle_paste(&mut self, text: &str) {
        if let Some(field) = self.fields.get_mut(self.at).filter(|field| !field.is_choice()) {
            field.input.insert(&clean_line(text));
        }
    }

    pub fn is_at_end(&self) -> bool {
        self.at + 1 == self.fields.len()
    }

    /// Moves to the next field, or sends the form.
    fn enter(&mut self) -> Option<Value> {
        let field = self.fields.get(self.at)?;
        if let Err(problem) = field.value() {
            self.problem = Some(problem);
            return None;
        }
        if !self.is_at_end() {
            self.at += 1;
            return None;
        }
        match self.data() {
            Ok(data) => Some(data),
            Err((at, problem)) => {
                self.at = at;
                self.problem = Some(problem);
                None
            }
        }
    }

    /// The data, or the index of a wrong field and the reason.
    fn data(&self) -> Result<Value, (usize, String)> {
        let mut data = Map::new();
        for (at, field) in self.fields.iter().enumerate() {
            if let Some(value) = field.value().map_err(|problem| (at, problem))? {
                data.insert(field.name.clone(), value);
            }
        }
        let data = Value::Object(data);
        // The server checks a schema that we cannot compile.
        let Ok(validator) = jsonschema::validator_for(&self.schema) else { return Ok(data) };
        let Some(error) = validator.iter_errors(&data).next() else { return Ok(data) };
        let place = error.instance_path().to_string();
        let at = self.fields.iter().position(|field| place == format!("/{}", field.name));
        Err((at.unwrap_or(self.at), clean_line(&error.to_string())))
    }
}

impl Field {
    fn read(name: &str, schema: &Value, required: bool) -> Option<Self> {
        let text = |key: &str| schema[key].as_str().map(clean_line).filter(|text| !text.is_empty());
        let default = schema.get("default").filter(|value| !value.is_null());
        let kind = FieldKind::read(schema, default)?;
        let mut input = Input::default();
        if let (FieldKind::Text | FieldKind::Number, Some(default)) = (&kind, default) {
            input.set(&default.as_str().map_or_else(|| default.to_string(), clean_line));
        }
        let title = text("title").unwrap_or_else(|| clean_line(name));
        Some(Self { name: name.to_owned(), title, description: text("description"), required, kind, input })
    }

    fn is_choice(&self) -> bool {
        matches!(self.kind, FieldKind::Choice { .. })
    }

    fn handle_key(&mut self, key: KeyEvent) {
        if let FieldKind::Choice { options, chosen } = &mut self.kind {
            let last = options.len().saturating_sub(1);
            *chosen = match key.code {
                KeyCode::Right | KeyCode::Char(' ') => Some(chosen.map_or(0, |at| (at + 1) % options.len())),
                KeyCode::Left => Some(chosen.map_or(last, |at| at.checked_sub(1).unwrap_or(last))),
                KeyCode::Char(digit @ '1'..='9') => {
                    Some(digit as usize - '1' as usize).filter(|at| *at <= last)
                }
                KeyCode::Backspace | KeyCode::Delete => None,
                _ => *chosen,
            };
            return;
        }
        let is_shortcut = matches!(key.code, KeyCode::Char(_)) && key.modifiers.contains(KeyModifiers::ALT);
        if !is_shortcut {
            self.input.edit(key.code);
        }
    }

    /// `None`: the field is empty.
    fn value(&self) -> Result<Option<Value>, String> {
        let typed = self.input.text().trim();
        let value = match &self.kind {
            FieldKind::Choice { options, chosen } => chosen.and_then(|at| Some(options.get(at)?.0.clone())),
            FieldKind::Text | FieldKind::Number if typed.is_empty() => None,
            FieldKind::Text => Some(self.input.text().into()),
            FieldKind::Number => Some(number(typed).ok_or_else(|| format!("{} is no number.", self.title))?),
        };
        match value {
            None if self.required => Err(format!("{} is needed.", self.title)),
            value => Ok(value),
        }
    }
}

impl FieldKind {
    fn read(schema: &Value, default: Option<&Value>) -> Option<Self> {
        let choice = |options: Vec<(Value, String)>| {
            let chosen = options.iter().position(|(value, _)| Some(value) == default);
            (!options.is_empty()).then_some(Self::Choice { options, chosen })
        };
        match schema["type"].as_str() {
            Some("boolean") => choice(vec![(true.into(), "yes".to_owned()), (false.into(), "no".to_owned())]),
            Some("string") => match options(schema) {
                Some(options) => choice(options),
                None => Some(Self::Text),
            },
            Some("number" | "integer") => Some(Self::Number),
            _ => None,
        }
    }
}

/// `enum` with `enumNames`, or `oneOf` of constants with titles.
fn options(schema: &Value) -> Option<Vec<(Value, String)>> {
    let called = |value: &Value, name: Option<&str>| {
        let name = name.or(value.as_str()).map_or_else(|| value.to_string(), clean_line);
        (value.clone(), name)
    };
    if let Some(values) = schema["enum"].as_array() {
        let named = values.iter().enumerate();
        return Some(named.map(|(at, value)| called(value, schema["enumNames"][at].as_str())).collect());
    }
    let constants = schema["oneOf"].as_array()?;
    Some(constants.iter().map(|it| called(&it["const"], it["title"].as_str())).collect())
}

fn number(text: &str) -> Option<Value> {
    let whole = text.parse::<i64>().ok().map(Value::from);
    whole.or_else(|| serde_json::Number::from_f64(text.parse().ok()?).map(Value::Number))
}
