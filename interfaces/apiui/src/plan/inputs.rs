//! Schemas → inputs of forms.
//!
//! Owns which control a schema gets and how deep a form goes. Named objects become shapes, once each, so that
//! a recursive schema is a finite plan. Fields that only the server sets are left out.

use super::models::Models;
use super::words::{humanize, line, shorten_note};
use super::{Alternative, Input, InputKind, InputPlace, Shape};
use crate::spec::{Kind, Limits, Location, Model, Parameter};
use serde_json::Value;
use std::collections::HashMap;

/// Nested objects without a name below this depth are written as JSON.
const MAX_INLINE_DEPTH: usize = 6;
const MAX_FIELDS: usize = 300;
const MAX_VARIANTS: usize = 40;
const MAX_CHOICES: usize = 1_000;

pub(super) struct Inputs<'s> {
    models: &'s Models<'s>,
    shapes: Vec<Shape>,
    by_name: HashMap<&'s str, usize>,
    pending: Vec<(usize, &'s Model)>,
    /// Whole examples of bodies, by the shape of the body.
    examples: HashMap<usize, Value>,
}

impl<'s> Inputs<'s> {
    pub(super) fn new(models: &'s Models<'s>) -> Self {
        Self {
            models,
            shapes: Vec::new(),
            by_name: HashMap::new(),
            pending: Vec::new(),
            examples: HashMap::new(),
        }
    }

    pub(super) fn finish(mut self) -> Vec<Shape> {
        while let Some((index, model)) = self.pending.pop() {
            let mut fields = self.fields(model, 0);
            if let Some(whole) = self.examples.remove(&index) {
                for field in fields.iter_mut().filter(|field| field.example.is_empty()) {
                    field.example = example(whole.get(&field.name));
                }
            }
            self.shapes[index].fields = fields;
        }
        self.shapes
    }

    pub(super) fn parameter(&mut self, parameter: &'s Parameter, graphql: bool) -> Input {
        let mut input = match &parameter.schema {
            Some(schema) => self.input(&parameter.name, schema, 0),
            None => Input {
                name: parameter.name.clone(),
                kind: kind_of_word(&parameter.kind),
                ..Input::default()
            },
        };
        input.place = match parameter.location {
            _ if graphql => InputPlace::Variable,
            Location::Path => InputPlace::Path,
            Location::Query => InputPlace::Query,
            Location::Header => InputPlace::Header,
            Location::Cookie => InputPlace::Cookie,
        };
        input.required = parameter.required;
        if parameter.description.is_some() {
            input.note = shorten_note(parameter.description.as_deref(), 200);
        }
        input.format = parameter.style.clone().unwrap_or_default();
        input.explode = parameter.explode;
        if parameter.content_type.is_some() {
            input.format = "json".to_owned();
        }
        input
    }

    /// The fields of a body that has examples of its own, where its schema has none.
    pub(super) fn add_examples(&mut self, input: &mut Input, whole: Option<&Value>) {
        let Some(shape) = input.shape.filter(|_| whole.is_some_and(Value::is_object)) else { return };
        self.examples.entry(shape).or_insert_with(|| whole.cloned().unwrap_or_default());
    }

    pub(super) fn input(&mut self, name: &str, model: &'s Model, depth: usize) -> Input {
        let target = self.models.resolve(model);
        let mut input = Input { name: line(name, 200), ..Input::default() };
        input.note = shorten_note(model.description.as_deref().or(target.description.as_deref()), 200);
        input.nullable = model.nullable || target.nullable;
        input.initial = json_text(model.default.as_ref().or(target.default.as_ref()));
        input.example = example(model.example.as_ref().or(target.example.as_ref()));
        if let Some(limits) = target.limits.as_deref().or(model.limits.as_deref()) {
            apply(&mut input, limits);
        }
        self.shape_input(&mut input, model, target, depth);
        input
    }

    fn shape_input(&mut self, input: &mut Input, model: &'s Model, target: &'s Model, depth: usize) {
        match target.kind {
            Kind::Object => self.object(input, model, target, depth),
            Kind::Union => self.variants(input, target, depth),
            Kind::Array => {
                input.kind = InputKind::List;
                if depth > MAX_INLINE_DEPTH {
                    input.kind = InputKind::Json;
                } else if let Some(items) = &target.items {
                    input.item = Some(Box::new(self.input("", items, depth + 1)));
                }
                let is_any = input.item.as_ref().is_none_or(|item| item.kind == InputKind::Json);
                if is_any && input.item.as_ref().is_none_or(|item| item.alternatives.is_empty()) {
                    input.kind = InputKind::Json;
                    input.item = None;
                }
            }
            Kind::Enum => {
                input.kind = InputKind::Choice;
                input.choices = scalars(&target.enum_values);
                if target.enum_labels.len() == input.choices.len() {
                    input.labels = target.enum_labels.iter().map(|label| line(label, 120)).collect();
                }
                if input.choices.is_empty() {
                    input.kind = InputKind::Text;
                }
            }
            Kind::Number => input.kind = InputKind::Number,
            Kind::Integer => input.kind = InputKind::Integer,
            Kind::Boolean => input.kind = InputKind::Boolean,
            Kind::File => input.kind = InputKind::File,
            Kind::String => input.kind = text_kind(&input.name, target),
            Kind::Any | Kind::Null | Kind::Reference => input.kind = InputKind::Json,
        }
    }

    fn object(&mut self, input: &mut Input, model: &'s Model, target: &'s Model, depth: usize) {
        input.kind = InputKind::Object;
        if let Some(mapping) = target.discriminator.as_deref().filter(|found| found.mapping.len() > 1)
            && depth == 0
        {
            // A base type of which the mapping names the real ones.
            for (value, name) in mapping.mapping.iter().take(MAX_VARIANTS) {
                let Some(found) = self.models.named(name).filter(|found| !std::ptr::eq(*found, target))
                else {
                    continue;
                };
                let mut variant = self.input("", found, 1);
                variant.note = String::new();
                input.alternatives.push(Alternative {
                    label: humanize(name),
                    value: value.clone(),
                    input: variant,
                });
            }
            if !input.alternatives.is_empty() {
                input.kind = InputKind::Variant;
                input.discriminator = mapping.property.clone();
                return;
            }
        }
        if target.properties.is_empty() {
            input.kind = InputKind::Json;
            if let Some(values) = target.values.as_deref().filter(|_| depth <= MAX_INLINE_DEPTH) {
                let item = self.input("", values, depth + 1);
                if item.kind != InputKind::Json {
                    input.kind = InputKind::Map;
                    input.item = Some(Box::new(item));
                }
            }
        } else if let Some(name) = self.models.name(model) {
            input.shape = Some(self.shape(name, target));
        } else if depth > MAX_INLINE_DEPTH {
            input.kind = InputKind::Json;
        } else {
            input.fields = self.fields(target, depth + 1);
        }
    }

    fn shape(&mut self, name: &'s str, model: &'s Model) -> usize {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = self.shapes.len();
        self.shapes.push(Shape { name: line(name, 120), fields: Vec::new() });
        self.by_name.insert(name, index);
        self.pending.push((index, model));
        index
    }

    fn fields(&mut self, model: &'s Model, depth: usize) -> Vec<Input> {
        let mut fields = Vec::new();
        for (name, property) in &model.properties {
            if property.read_only || self.models.resolve(property).read_only || fields.len() >= MAX_FIELDS {
                continue;
            }
            let mut field = self.input(name, property, depth);
            field.required = model.required.contains(name);
            if field.example.is_empty() {
                field.example = example(model.example.as_ref().and_then(|whole| whole.get(name)));
            }
            fields.push(field);
        }
        // What must be filled in comes first.
        fields.sort_by_key(|field| !field.required);
        fields
    }

    fn variants(&mut self, input: &mut Input, target: &'s Model, depth: usize) {
        let members: Vec<&'s Model> = target.union_of.iter().take(MAX_VARIANTS).collect();
        if members.is_empty() || depth > MAX_INLINE_DEPTH {
            input.kind = InputKind::Json;
            return;
        }
        if members.iter().all(|member| is_scalar(self.models.resolve(member).kind)) {
            return self.scalar_union(input, &members, depth);
        }
        input.kind = InputKind::Variant;
        let discriminator = target.discriminator.as_deref();
        input.discriminator = discriminator.map(|found| found.property.clone()).unwrap_or_default();
        for (index, member) in members.iter().enumerate() {
            let name = self.models.name(member);
            let inner = self.input("", member, depth + 1);
            let value = discriminator.and_then(|found| {
                let mapped = found.mapping.iter().find(|(_, target)| Some(target.as_str()) == name);
                mapped.map(|(value, _)| value.clone()).or_else(|| name.map(str::to_owned))
            });
            let titled = Some(inner.note.clone()).filter(|note| (1..=40).contains(&note.chars().count()));
            let unnamed = || titled.unwrap_or_else(|| variant_label(&inner, index));
            let label = name.map_or_else(unnamed, humanize);
            input.alternatives.push(Alternative { label, value: value.unwrap_or_default(), input: inner });
        }
    }

    /// A choice of plain values: one text control for all of them.
    fn scalar_union(&mut self, input: &mut Input, members: &[&'s Model], depth: usize) {
        let found: Vec<Input> = members.iter().map(|member| self.input("", member, depth + 1)).collect();
        let all_choices = found.iter().all(|member| member.kind == InputKind::Choice);
        if all_choices {
            input.kind = InputKind::Choice;
            for choice in found.into_iter().flat_map(|member| member.choices) {
                if !input.choices.contains(&choice) {
                    input.choices.push(choice);
                }
            }
        } else if found.iter().any(|member| member.kind == InputKind::Text) {
            input.kind = InputKind::Text;
        } else {
            let name = std::mem::take(&mut input.name);
            let (note, nullable) = (std::mem::take(&mut input.note), input.nullable);
            *input = found.into_iter().next().unwrap_or_default();
            (input.name, input.note, input.nullable) = (name, note, nullable);
        }
    }
}

fn apply(input: &mut Input, limits: &Limits) {
    let finite = |number: Option<f64>| number.and_then(tame_number);
    input.minimum = finite(limits.minimum);
    input.maximum = finite(limits.maximum);
    input.above = limits.exclusive_minimum;
    input.below = limits.exclusive_maximum;
    input.step = finite(limits.multiple_of).filter(|step| *step > 0.0);
    input.min_length = limits.min_length.or(limits.min_items);
    input.max_length = limits.max_length.or(limits.max_items);
    input.distinct = limits.unique_items;
    input.pattern = limits.pattern.clone().filter(|pattern| is_tame(pattern)).unwrap_or_default();
}

/// A bound that is worth checking, with so few digits that it reads back from JSON as it was written.
fn tame_number(number: f64) -> Option<f64> {
    let size = number.abs();
    if number != 0.0 && !(1e-9..1e15).contains(&size) {
        return None;
    }
    format!("{number:.11e}").parse().ok()
}

/// Whether a pattern can be run in a browser without fear of catastrophic backtracking: short, and no
/// repetition of a group that itself repeats.
fn is_tame(pattern: &str) -> bool {
    if pattern.len() > 200 {
        return false;
    }
    let mut repeats = vec![false];
    let mut escaped = false;
    let mut in_class = false;
    let characters: Vec<char> = pattern.chars().collect();
    for (at, c) in characters.iter().enumerate() {
        let next_repeats = matches!(characters.get(at + 1), Some('*' | '+' | '{'));
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' if !in_class => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            '(' => repeats.push(false),
            ')' => {
                let inner = repeats.pop().unwrap_or(true);
                if inner && next_repeats || repeats.is_empty() {
                    return false;
                }
                if let Some(outer) = repeats.last_mut() {
                    *outer |= inner || next_repeats;
                }
            }
            '*' | '+' | '{' | '|' => {
                if let Some(group) =
                    repeats.last_mut().filter(|_| *c != '|' || repeats_depth(&characters, at))
                {
                    *group = true;
                }
            }
            _ => {}
        }
    }
    repeats.len() == 1 && !in_class && !escaped
}

/// Alternatives inside a group count as repetition: `(a|a)*` backtracks too.
fn repeats_depth(characters: &[char], at: usize) -> bool {
    characters[..at].contains(&'(')
}

fn text_kind(name: &str, model: &Model) -> InputKind {
    let lower = name.to_lowercase();
    match model.format.as_deref() {
        Some("date") => InputKind::Date,
        Some("date-time") => InputKind::Datetime,
        Some("time") => InputKind::Time,
        Some("email") => InputKind::Email,
        Some("uri" | "url") => InputKind::Url,
        Some("password") => InputKind::Secret,
        _ if lower.contains("password") || lower.ends_with("secret") => InputKind::Secret,
        _ if ["description", "body", "content", "comment", "notes", "message", "text", "bio"]
            .contains(&lower.as_str()) =>
        {
            InputKind::Multiline
        }
        _ if model
            .limits
            .as_ref()
            .and_then(|limits| limits.max_length)
            .is_some_and(|length| (256..100_000_000).contains(&length)) =>
        {
            InputKind::Multiline
        }
        _ => InputKind::Text,
    }
}

fn is_scalar(kind: Kind) -> bool {
    matches!(kind, Kind::String | Kind::Number | Kind::Integer | Kind::Boolean | Kind::Enum | Kind::Null)
}

fn kind_of_word(word: &str) -> InputKind {
    match word.to_ascii_lowercase().as_str() {
        "integer" | "int" => InputKind::Integer,
        "number" | "float" => InputKind::Number,
        "boolean" => InputKind::Boolean,
        "object" | "array" => InputKind::Json,
        _ => InputKind::Text,
    }
}

fn variant_label(input: &Input, index: usize) -> String {
    let word = match input.kind {
        InputKind::Object => return format!("Form {}", index + 1),
        InputKind::List => "List",
        InputKind::Choice => "One of the choices",
        InputKind::Number | InputKind::Integer => "Number",
        InputKind::Boolean => "Yes or no",
        InputKind::File => "File",
        InputKind::Map => "Names and values",
        InputKind::Json | InputKind::Variant => return format!("Other {}", index + 1),
        _ => "Text",
    };
    word.to_owned()
}

fn scalars(values: &[Value]) -> Vec<Value> {
    let scalar = |value: &Value| match value {
        Value::String(text) => (text.len() <= 1_000).then(|| value.clone()),
        Value::Number(number) if number.is_f64() => number.as_f64().and_then(tame_number).map(Value::from),
        Value::Number(_) | Value::Bool(_) => Some(value.clone()),
        _ => None,
    };
    values.iter().filter_map(scalar).take(MAX_CHOICES).collect()
}

fn json_text(value: Option<&Value>) -> String {
    value
        .filter(|value| !value.is_null())
        .map(|value| value.to_string())
        .filter(|text| text.len() <= 2_000)
        .unwrap_or_default()
}

fn example(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => line(text, 80),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_tame;

    #[test]
    fn dangerous_patterns_are_not_run() {
        for tame in ["^[a-z]+$", r"^\d{3}-\d{4}$", "^(a|b)$", r"^(\+\d)?[0-9 ]*$", "^[^()]*$"] {
            assert!(is_tame(tame), "{tame}");
        }
        for wild in ["(a+)+$", "^(a|a)*$", "([a-z]+)*", "((a*))*", "(", "[", "a\\", ")", &"a".repeat(201)] {
            assert!(!is_tame(wild), "{wild}");
        }
    }
}
