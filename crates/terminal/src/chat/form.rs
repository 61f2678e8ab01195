//! A form of an MCP server: its fields, what was put into them, and the data they make.
//!
//! Pure. Invariants: what cannot be shown as text, numbers, yes or no and choices is no form; data that leaves fits the
//! schema.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Map, Value};

use super::input::Input;
use crate::text::clean_line;

/// More than a person would fill in.
const MOST: usize = 50;

pub struct Form {
    schema: Value,
    pub fields: Vec<Field>,
    /// The one that takes keys.
    pub at: usize,
    /// Why it was not sent.
    pub problem: Option<String>,
}

pub struct Field {
    name: String,
    pub title: String,
    pub description: Option<String>,
    pub required: bool,
    pub kind: Kind,
    pub input: Input,
}

pub enum Kind {
    Text,
    Number,
    /// Values and how they are called.
    Choice {
        options: Vec<(Value, String)>,
        chosen: Option<usize>,
    },
}

impl Form {
    /// `None`: it has something that cannot be shown here.
    pub fn read(schema: &Value) -> Option<Self> {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = schema["properties"].as_object().filter(|all| (1..=MOST).contains(&all.len()))?;
        let fields = properties.iter().map(|(name, it)| Field::read(name, it, required.contains(&&**name)));
        Some(Self { schema: schema.clone(), fields: fields.collect::<Option<_>>()?, at: 0, problem: None })
    }

    /// The line that is typed into.
    pub fn input(&mut self) -> Option<&mut Input> {
        self.fields.get_mut(self.at).map(|field| &mut field.input)
    }

    /// What a key does; the data where it sends them.
    pub fn key(&mut self, key: KeyEvent) -> Option<Value> {
        self.problem = None;
        let count = self.fields.len();
        match key.code {
            KeyCode::Up | KeyCode::BackTab => self.at = (self.at + count - 1) % count,
            KeyCode::Down => self.at = (self.at + 1) % count,
            KeyCode::Enter => return self.enter(),
            _ => {
                if let Some(field) = self.fields.get_mut(self.at) {
                    field.key(key);
                }
            }
        }
        None
    }

    pub fn paste(&mut self, text: &str) {
        if let Some(field) = self.fields.get_mut(self.at).filter(|field| !field.is_choice()) {
            field.input.insert(&clean_line(text));
        }
    }

    pub fn is_at_end(&self) -> bool {
        self.at + 1 == self.fields.len()
    }

    /// To the next field, or away with all of them.
    fn enter(&mut self) -> Option<Value> {
        let here = self.fields.get(self.at)?;
        if let Err(problem) = here.value() {
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

    /// What was put in, or which field is wrong and why.
    fn data(&self) -> Result<Value, (usize, String)> {
        let mut data = Map::new();
        for (at, field) in self.fields.iter().enumerate() {
            if let Some(value) = field.value().map_err(|problem| (at, problem))? {
                data.insert(field.name.clone(), value);
            }
        }
        let data = Value::Object(data);
        // A schema that cannot be read is the server's to check.
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
        let kind = Kind::read(schema, default)?;
        let mut input = Input::default();
        if let (Kind::Text | Kind::Number, Some(default)) = (&kind, default) {
            input.set(&default.as_str().map_or_else(|| default.to_string(), clean_line));
        }
        let title = text("title").unwrap_or_else(|| clean_line(name));
        Some(Self { name: name.to_owned(), title, description: text("description"), required, kind, input })
    }

    fn is_choice(&self) -> bool {
        matches!(self.kind, Kind::Choice { .. })
    }

    fn key(&mut self, key: KeyEvent) {
        if let Kind::Choice { options, chosen } = &mut self.kind {
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

    /// `None`: left out.
    fn value(&self) -> Result<Option<Value>, String> {
        let typed = self.input.text().trim();
        let value = match &self.kind {
            Kind::Choice { options, chosen } => chosen.and_then(|at| Some(options.get(at)?.0.clone())),
            Kind::Text | Kind::Number if typed.is_empty() => None,
            Kind::Text => Some(self.input.text().into()),
            Kind::Number => Some(number(typed).ok_or_else(|| format!("{} is no number.", self.title))?),
        };
        match value {
            None if self.required => Err(format!("{} is needed.", self.title)),
            value => Ok(value),
        }
    }
}

impl Kind {
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
