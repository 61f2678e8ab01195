//! Random specifications: always an answer, never a panic, whatever a host sends.

use apiui::customize::wish;
use apiui::plan::{Options, plan};
use apiui::print::{plan_of, print_whole};
use apiui::read::{read_bytes, read_value};
use serde_json::{Map, Value, json};

/// How many, by the scale: a tenth of the full figure by default.
fn count(full: usize) -> usize {
    let scale: usize =
        std::env::var("DRAGOMAN_TEST_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    (full * scale / 10).max(1)
}

/// A small generator of our own: the same numbers on every machine (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

const WORDS: [&str; 26] = [
    "id",
    "name",
    "user",
    "users",
    "Order",
    "page",
    "limit",
    "cursor",
    "data",
    "items",
    "status",
    "__proto__",
    "constructor",
    "",
    " ",
    "名前",
    "a.b",
    "a/b",
    "{x}",
    "</script>",
    "\u{2028}",
    "toString",
    "createdAt",
    "next",
    "total",
    "🎛️",
];
const KINDS: [&str; 14] = [
    "object",
    "array",
    "string",
    "number",
    "integer",
    "boolean",
    "null",
    "enum",
    "union",
    "file",
    "reference",
    "nonsense",
    "",
    "Object",
];

fn word(random: &mut Random) -> String {
    random.pick(&WORDS).to_owned()
}

fn junk(random: &mut Random) -> Value {
    match random.below(7) {
        0 => Value::Null,
        1 => json!(random.chance(50)),
        2 => json!(random.next() as i64),
        3 => json!(-0.5e300),
        4 => Value::String(word(random)),
        5 => json!([word(random), null, 1]),
        _ => json!({ word(random): word(random) }),
    }
}

fn model(random: &mut Random, depth: usize) -> Value {
    if random.chance(6) {
        return junk(random);
    }
    if random.chance(12) {
        return json!({ "$ref": format!("#/components/schemas/{}", word(random)) });
    }
    let mut object = Map::new();
    object.insert("name".to_owned(), Value::String(word(random)));
    object.insert("type".to_owned(), Value::String(random.pick(&KINDS).to_owned()));
    let deeper = depth < 4;
    if deeper && random.chance(50) {
        let fields: Vec<(String, Value)> =
            (0..random.below(6)).map(|_| (word(random), model(random, depth + 1))).collect();
        let value = if random.chance(50) {
            Value::Object(fields.into_iter().collect())
        } else {
            Value::Array(fields.into_iter().map(|(_, value)| value).collect())
        };
        object.insert("properties".to_owned(), value);
    }
    if deeper && random.chance(35) {
        object.insert("items".to_owned(), model(random, depth + 1));
    }
    if deeper && random.chance(20) {
        object.insert(
            "unionOf".to_owned(),
            Value::Array((0..random.below(4)).map(|_| model(random, depth + 1)).collect()),
        );
    }
    for key in [
        "required",
        "enumValues",
        "format",
        "default",
        "example",
        "description",
        "nullable",
        "minimum",
        "pattern",
    ] {
        if random.chance(15) {
            object.insert(key.to_owned(), junk(random));
        }
    }
    Value::Object(object)
}

fn parameter(random: &mut Random) -> Value {
    let place = random.pick(&["path", "query", "header", "cookie", "body", ""]);
    let mut value = json!({"name": word(random), "in": place, "type": random.pick(&KINDS), "required": random.chance(40)});
    if random.chance(40) {
        value["schema"] = model(random, 2);
    }
    value
}

fn endpoint(random: &mut Random) -> Value {
    if random.chance(4) {
        return junk(random);
    }
    let path: String =
        (0..random.below(5))
            .map(|_| {
                if random.chance(35) {
                    format!("/{{{}}}", word(random))
                } else {
                    format!("/{}", word(random))
                }
            })
            .collect();
    let mut value = json!({
        "path": path,
        "method": random.pick(&["get", "POST", "put", "patch", "DELETE", "", "brew"]),
        "parameters": (0..random.below(5)).map(|_| parameter(random)).collect::<Vec<_>>(),
        "responses": {"200": {"statusCode": "200", "description": word(random), "schema": model(random, 0)}},
    });
    for key in [
        "operationId",
        "summary",
        "description",
        "tag",
        "requestBody",
        "securityRequirements",
        "deprecated",
        "responses",
    ] {
        if random.chance(20) {
            value[key] = if key == "requestBody" { model(random, 0) } else { junk(random) };
        }
    }
    value
}

fn operation(random: &mut Random) -> Value {
    json!({
        "name": random.pick(&["users", "user", "createUser", "deleteUser", "updateUser", "not a name", "", "__typename"]),
        "type": word(random),
        "args": (0..random.below(4)).map(|_| parameter(random)).collect::<Vec<_>>(),
        "returnType": model(random, 0),
    })
}

fn specification(random: &mut Random) -> Value {
    let many = |random: &mut Random, make: fn(&mut Random) -> Value, limit: usize| {
        Value::Array((0..random.below(limit)).map(|_| make(random)).collect())
    };
    let mut value = json!({
        "format": random.pick(&["openapi3", "swagger2", "graphql", "raml", ""]),
        "metadata": {"title": word(random), "version": junk(random), "baseUrl": junk(random)},
        "endpoints": many(random, endpoint, 8),
        "queries": many(random, operation, 4),
        "mutations": many(random, operation, 4),
        "subscriptions": many(random, operation, 2),
        "models": many(random, |random| model(random, 0), 5),
        "securitySchemes": many(random, |random| json!({"name": word(random), "type": random.pick(&["apiKey", "oauth2", "http", "x"]), "in": word(random), "flows": junk(random)}), 3),
    });
    for key in ["metadata", "endpoints", "models", "securitySchemes", "tags", "servers", "webhooks"] {
        if random.chance(4) {
            value[key] = junk(random);
        }
    }
    value
}

#[test]
fn normalized_specs_always_get_an_answer() {
    let mut random = Random(0x00D0_6A00);
    let mut usable = 0;
    for number in 0..count(2_000) {
        let value = specification(&mut random);
        let Ok(reading) = read_value(&value, None) else { continue };
        usable += 1;
        let plan = plan(&reading.spec, &Options::default());
        plan.validate().unwrap_or_else(|invalid| panic!("{number}: {invalid}"));
        let code = print_whole(&plan);
        crate::check_controls(&format!("{number}"), &reading.spec, &code);
        assert_eq!(plan_of(&code).as_ref(), Ok(&plan), "{number}");
        let text = serde_json::to_string(&reading.spec).expect("JSON");
        serde_json::from_str::<apiui::spec::Spec>(&text).expect("our own form");
        let _ = wish(
            &plan,
            &format!(
                "hide the {} column of {} and sort by {}",
                word(&mut random),
                word(&mut random),
                word(&mut random)
            ),
            &[],
        );
    }
    assert!(usable * 2 > count(2_000), "most are usable, so that planning is reached: {usable}");
}

#[test]
fn damaged_documents_always_get_an_answer() {
    let mut random = Random(0x5EED);
    let documents: Vec<Vec<u8>> = crate::own::VALID
        .iter()
        .map(|name| {
            std::fs::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specs").join(name))
                .expect("a file")
        })
        .collect();
    for _ in 0..count(3_000) {
        let mut bytes = documents[random.below(documents.len())].clone();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = (random.next() & 0xFF) as u8,
                2 => {
                    let end = (at + random.below(40)).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    let end = (at + random.below(60)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    let to = random.below(bytes.len());
                    bytes.splice(to..to, piece);
                }
            }
            if bytes.is_empty() {
                bytes.push(b'{');
            }
        }
        if let Ok(reading) = read_bytes(&bytes, Some("x.graphql").filter(|_| random.chance(10)), None) {
            let plan = plan(&reading.spec, &Options::default());
            plan.validate().expect("a valid plan");
        }
    }
}

#[test]
fn damaged_code_never_passes_for_another_plan() {
    let code = print_whole(&plan(&crate::own::read("parcels.json").spec, &Options::default()));
    let mut random = Random(0xC0DE);
    for _ in 0..count(500) {
        let mut bytes = code.clone().into_bytes();
        let at = random.below(bytes.len());
        bytes[at] = b"{}[]\",:0a\n"[random.below(10)];
        if let Ok(plan) = plan_of(&String::from_utf8_lossy(&bytes)) {
            plan.validate().expect("what comes back is valid");
        }
    }
}
