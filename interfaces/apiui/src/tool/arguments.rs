//! Arguments of an operation: their JSON Schema, an example that fits, and whether given ones fit.

use super::{BODY, argument_name};
use crate::plan::{BodyKind, Input, InputKind, InputPlace, Operation, Plan};
use serde_json::{Map, Value, json};

/// How deep a schema describes objects inside of objects.
const DEPTH: usize = 4;
const MOST_CHOICES: usize = 60;

/// The JSON Schema of an operation's arguments.
pub fn schema(plan: &Plan, operation: &Operation) -> Value {
    let mut properties = Map::new();
    let mut required: Vec<String> = Vec::new();
    for input in &operation.inputs {
        let name = argument_name(operation, input);
        if input.required {
            required.push(name.clone());
        }
        properties.insert(name, schema_of(plan, input, DEPTH));
    }
    if let Some(body) = &operation.body {
        if body.required {
            required.push(BODY.to_owned());
        }
        properties.insert(BODY.to_owned(), schema_of(plan, &body.input, DEPTH));
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn schema_of(plan: &Plan, input: &Input, depth: usize) -> Value {
    let mut schema = match input.kind {
        _ if !input.choices.is_empty() && input.kind != InputKind::List => {
            json!({"enum": input.choices.iter().take(MOST_CHOICES).collect::<Vec<_>>()})
        }
        InputKind::Integer => json!({"type": "integer"}),
        InputKind::Number => json!({"type": "number"}),
        InputKind::Boolean => json!({"type": "boolean"}),
        InputKind::Date => json!({"type": "string", "format": "date"}),
        InputKind::Datetime => json!({"type": "string", "format": "date-time"}),
        InputKind::List => {
            let items =
                input.item.as_ref().map_or(json!({}), |item| schema_of(plan, item, depth.saturating_sub(1)));
            json!({"type": "array", "items": items})
        }
        InputKind::Map | InputKind::Object if depth == 0 => json!({"type": "object"}),
        InputKind::Map => {
            let inner = input.item.as_ref().map_or(json!({}), |item| schema_of(plan, item, depth - 1));
            json!({"type": "object", "additionalProperties": inner})
        }
        InputKind::Object => object(plan, fields(plan, input), depth - 1),
        InputKind::Variant if depth == 0 => json!({}),
        InputKind::Variant => {
            let all = input.alternatives.iter().take(8);
            json!({"anyOf": all.map(|one| schema_of(plan, &one.input, depth - 1)).collect::<Vec<_>>()})
        }
        InputKind::Json => json!({}),
        _ => json!({"type": "string"}),
    };
    let mut add = |name: &str, value: Value| {
        if let Value::Object(members) = &mut schema {
            members.insert(name.to_owned(), value);
        }
    };
    if let Some(minimum) = input.minimum {
        add("minimum", json!(minimum));
    }
    if let Some(maximum) = input.maximum {
        add("maximum", json!(maximum));
    }
    if !input.note.is_empty() && depth >= DEPTH - 1 {
        add("description", json!(crate::plan::words::line(&input.note, 120)));
    }
    schema
}

fn object(plan: &Plan, fields: &[Input], depth: usize) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.clone(), schema_of(plan, field, depth))).collect();
    let required: Vec<&str> =
        fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

pub(super) fn fields<'p>(plan: &'p Plan, input: &'p Input) -> &'p [Input] {
    match input.shape.and_then(|shape| plan.shapes.get(shape)) {
        Some(shape) => &shape.fields,
        None => &input.fields,
    }
}

/// Arguments that fit: what is required, with the examples of the specification where they fit.
pub fn example(plan: &Plan, operation: &Operation) -> Value {
    let mut arguments = Map::new();
    for input in operation.inputs.iter().filter(|input| input.required) {
        let value = example_of(plan, input, 0);
        let is_path = input.place == InputPlace::Path;
        let value = if is_path { not_empty(plan, input, value) } else { value };
        arguments.insert(argument_name(operation, input), value);
    }
    // The body may hold what says which row is meant.
    let is_selecting = operation.writes && operation.query_text.is_empty() && !operation.selectors.is_empty();
    if let Some(body) = operation.body.as_ref().filter(|body| body.required || is_selecting) {
        arguments.insert(BODY.to_owned(), example_of(plan, &body.input, 0));
    }
    for selector in operation.selectors.iter().filter(|_| operation.writes) {
        if operation.query_text.is_empty() {
            if let (Some(body), Some(value)) = (&operation.body, arguments.get_mut(BODY)) {
                select(plan, value, &body.input, selector);
            }
        } else if let Some((name, rest)) = selector.split_first()
            && let Some(input) = operation.inputs.iter().find(|input| input.name == *name)
        {
            select(plan, arguments.entry(name.clone()).or_insert(Value::Null), input, rest);
        }
    }
    Value::Object(arguments)
}

/// A part of a path is never empty: an object without required fields gets its first one.
fn not_empty(plan: &Plan, input: &Input, value: Value) -> Value {
    let is_empty = value == json!({}) || value == json!([]);
    if value == json!("") {
        return input.choices.iter().find(|choice| **choice != value).cloned().unwrap_or(json!("x"));
    }
    match fields(plan, input).first().filter(|_| is_empty) {
        Some(field) => Value::Object(Map::from_iter([(field.name.clone(), example_of(plan, field, 1))])),
        None if value == json!({}) => json!({"x": "x"}),
        None if is_empty => json!(["x"]),
        None => value,
    }
}

/// Fills what says which rows a write is about: the part of a value at a path.
fn select(plan: &Plan, value: &mut Value, input: &Input, path: &[String]) {
    let Some((name, rest)) = path.split_first() else {
        if value.is_null() || *value == json!({}) || *value == json!([]) {
            *value = not_empty(plan, input, example_of(plan, input, 0));
        }
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    let Some(members) = value.as_object_mut() else { return };
    match field_named(plan, input, name) {
        Some(field) => select(plan, members.entry(name.clone()).or_insert(Value::Null), field, rest),
        // A key that only answers have by the specification: the write is about that record all the same.
        None => {
            members.entry(name.clone()).or_insert_with(|| json!("x"));
        }
    }
}

/// A field of an object, or of one of the variants that it may be.
fn field_named<'p>(plan: &'p Plan, input: &'p Input, name: &str) -> Option<&'p Input> {
    let own = fields(plan, input).iter().find(|field| field.name == name);
    own.or_else(|| input.alternatives.iter().find_map(|one| field_named(plan, &one.input, name)))
}

fn example_of(plan: &Plan, input: &Input, depth: usize) -> Value {
    if let Some(choice) = input.choices.first().filter(|_| input.kind != InputKind::List) {
        return choice.clone();
    }
    let texts = [&input.initial, &input.example].into_iter().filter(|text| !text.is_empty());
    let mut given = texts.map(|text| serde_json::from_str::<Value>(text).unwrap_or_else(|_| json!(text)));
    if let Some(value) = given.find(|value| depth < 2 && check(plan, input, value, "").is_ok()) {
        return value;
    }
    let number = |value: f64| {
        let (low, high) = (input.minimum.unwrap_or(f64::MIN), input.maximum.unwrap_or(f64::MAX));
        value.clamp(low, high.max(low))
            + if input.above && value <= low { input.step.unwrap_or(1.0) } else { 0.0 }
    };
    match input.kind {
        InputKind::Integer => json!(number(1.0) as i64),
        InputKind::Number => json!(number(1.0)),
        InputKind::Boolean => json!(true),
        InputKind::Date => json!("2026-01-31"),
        InputKind::Datetime => json!("2026-01-31T12:00:00Z"),
        InputKind::Time => json!("12:00:00"),
        InputKind::Email => json!("ann@example.com"),
        InputKind::Url => json!("https://example.com"),
        // Recursion ends where a list or map may be empty.
        InputKind::List => match input.item.as_ref().filter(|_| depth < 6) {
            Some(item) => json!([example_of(plan, item, depth + 1)]),
            None => json!([]),
        },
        InputKind::Map => json!({}),
        InputKind::Object if depth > 8 => json!({}),
        InputKind::Object => {
            let needed = fields(plan, input).iter().filter(|field| field.required);
            Value::Object(
                needed.map(|field| (field.name.clone(), example_of(plan, field, depth + 1))).collect(),
            )
        }
        InputKind::Variant => variant(plan, input, depth),
        InputKind::Json => json!({}),
        _ => json!("x".repeat(usize::try_from(input.min_length.unwrap_or(1).clamp(1, 64)).unwrap_or(1))),
    }
}

/// The first variant whose example fits it.
fn variant(plan: &Plan, input: &Input, depth: usize) -> Value {
    let mut first = None;
    for one in &input.alternatives {
        let value = tagged(input, &one.value, example_of(plan, &one.input, depth + 1));
        if check(plan, &one.input, &value, "").is_ok() {
            return value;
        }
        first.get_or_insert(value);
        // Variants of variants of variants would take for ever.
        if depth > 3 {
            break;
        }
    }
    first.unwrap_or_else(|| json!({}))
}

/// A variant says which one it is.
fn tagged(input: &Input, value: &str, mut example: Value) -> Value {
    if let Value::Object(members) = &mut example
        && !input.discriminator.is_empty()
        && !value.is_empty()
    {
        members.entry(input.discriminator.clone()).or_insert_with(|| json!(value));
    }
    example
}

/// Whether arguments fit an operation, or which one does not.
pub(super) fn check_all(
    plan: &Plan,
    operation: &Operation,
    arguments: &Map<String, Value>,
) -> Result<(), String> {
    let names: Vec<String> = operation.inputs.iter().map(|input| argument_name(operation, input)).collect();
    let is_known = |name: &&String| names.contains(name) || operation.body.is_some() && *name == BODY;
    if let Some(unknown) = arguments.keys().find(|name| !is_known(name)) {
        return Err(format!("{} takes no argument “{unknown}”.", operation.signature));
    }
    for (input, name) in operation.inputs.iter().zip(&names) {
        match arguments.get(name).filter(|value| !value.is_null() || input.nullable) {
            Some(value) => check(plan, input, value, name)?,
            None if input.required => return Err(format!("The argument “{name}” is required.")),
            None => {}
        }
    }
    let Some(body) = &operation.body else { return Ok(()) };
    match arguments.get(BODY) {
        Some(_) if matches!(body.kind, BodyKind::File) => {
            Err("The body of this operation is a file, which cannot be sent here.".to_owned())
        }
        Some(value) => check(plan, &body.input, value, BODY),
        None if body.required => Err("The argument “body” is required.".to_owned()),
        None => Ok(()),
    }
}

fn check(plan: &Plan, input: &Input, value: &Value, place: &str) -> Result<(), String> {
    if value.is_null() && (input.nullable || !input.required) {
        return Ok(());
    }
    let wrong = |what: &str| Err(format!("“{place}” must be {what}."));
    if !input.choices.is_empty() && input.kind != InputKind::List {
        let known = input.choices.iter().any(|choice| choice == value);
        let all: Vec<String> = input.choices.iter().take(12).map(Value::to_string).collect();
        return if known { Ok(()) } else { wrong(&format!("one of {}", all.join(", "))) };
    }
    let is_text = matches!(
        input.kind,
        InputKind::Text
            | InputKind::Multiline
            | InputKind::Secret
            | InputKind::Date
            | InputKind::Datetime
            | InputKind::Time
            | InputKind::Email
            | InputKind::Url
    );
    match input.kind {
        InputKind::Integer if !(value.is_i64() || value.is_u64()) => wrong("a whole number"),
        InputKind::Number if !value.is_number() => wrong("a number"),
        InputKind::Boolean if !value.is_boolean() => wrong("true or false"),
        InputKind::File => wrong("left out: files cannot be sent here"),
        _ if is_text && !value.is_string() => wrong("a text"),
        _ => check_inside(plan, input, value, place),
    }
}

/// Whether the parts of a list, an object or a variant fit.
fn check_inside(plan: &Plan, input: &Input, value: &Value, place: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("“{place}” must be {what}."));
    match input.kind {
        InputKind::List => match (value.as_array(), &input.item) {
            (None, _) => wrong("a list"),
            (Some(_), None) => Ok(()),
            (Some(all), Some(item)) => (0..)
                .zip(all)
                .try_for_each(|(at, one): (usize, &Value)| check(plan, item, one, &format!("{place}[{at}]"))),
        },
        InputKind::Map if !value.is_object() => wrong("an object"),
        InputKind::Object => match value.as_object() {
            None => wrong("an object"),
            Some(members) => {
                fields(plan, input).iter().try_for_each(|field| match members.get(&field.name) {
                    Some(inner) => check(plan, field, inner, &format!("{place}.{}", field.name)),
                    None if field.required => Err(format!("“{place}.{}” is required.", field.name)),
                    None => Ok(()),
                })
            }
        },
        InputKind::Variant => {
            match input.alternatives.iter().any(|one| check(plan, &one.input, value, place).is_ok())
                || input.alternatives.is_empty()
            {
                true => Ok(()),
                false => wrong("one of its variants"),
            }
        }
        _ => Ok(()),
    }
}
