//! Owns the compiled form of a JSON schema: nodes that the machine walks along, one for each kind of value.
//! Must not know bytes that were written or tokens. Invariant: each JSON text that a node allows is valid for its schema in
//! types, required and known members, constants and lengths of arrays; other keywords are not enforced.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

/// The place of a node in its schema.
pub(super) type NodeId = usize;

/// Any JSON value, any object, any array.
pub(super) const ANY: NodeId = 0;
pub(super) const ANY_OBJECT: NodeId = 1;
pub(super) const ANY_ARRAY: NodeId = 2;
/// A value that does not exist.
const NEVER: NodeId = 3;

/// Members that are counted by the bits of a number.
pub(super) const MOST_MEMBERS: usize = 128;
/// A schema that is deeper or larger allows any value from there on.
const DEEPEST: usize = 48;
const MOST_STEPS: usize = 20_000;
/// Of one value; the first ones stay.
const MOST_ALTERNATIVES: usize = 2_000;

/// Members of a schema that bind no value.
const BESIDE: [&str; 9] =
    ["$schema", "$id", "$defs", "definitions", "$comment", "title", "description", "default", "examples"];

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Any,
    String,
    Number {
        is_integer: bool,
    },
    /// Exactly this text.
    Literal(Box<[u8]>),
    Array {
        items: NodeId,
        least: usize,
        most: usize,
    },
    Object(Members),
    Union(Vec<NodeId>),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Members {
    pub list: Vec<Member>,
    /// The node of members that are not in the list, where there may be any.
    pub others: Option<NodeId>,
    /// The members come in the order of the list.
    pub is_ordered: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    /// As it stands between the quotes.
    pub name: Box<[u8]>,
    pub node: NodeId,
    pub is_required: bool,
}

/// Nodes of one or more schemas.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    list: Vec<Node>,
}

impl Nodes {
    pub(super) fn new() -> Self {
        let any = Members { others: Some(ANY), ..Members::default() };
        let array = Node::Array { items: ANY, least: 0, most: usize::MAX };
        Self { list: vec![Node::Any, Node::Object(any), array, Node::Union(Vec::new())] }
    }

    pub(super) fn get(&self, id: NodeId) -> &Node {
        self.list.get(id).unwrap_or(&Node::Any)
    }

    pub(super) fn add(&mut self, node: Node) -> NodeId {
        self.list.push(node);
        self.list.len() - 1
    }

    /// The node of a whole schema. Its unions hold no unions.
    pub(super) fn compile(&mut self, schema: &Value) -> NodeId {
        let first = self.list.len();
        let mut compiler = Compiler { nodes: self, root: schema, known: HashMap::new(), depth: 0, steps: 0 };
        let node = compiler.node(schema);
        let unions: Vec<NodeId> =
            (first..self.list.len()).filter(|id| matches!(self.list[*id], Node::Union(_))).collect();
        let flat: Vec<Node> = unions.iter().map(|&id| Node::Union(self.leaves(id))).collect();
        unions.into_iter().zip(flat).for_each(|(id, node)| self.list[id] = node);
        node
    }

    /// The alternatives of a union, and of the unions among them.
    fn leaves(&self, union: NodeId) -> Vec<NodeId> {
        let (mut leaves, mut seen, mut left) = (Vec::new(), HashSet::from([union]), vec![union]);
        while let Some(id) = left.pop() {
            match self.get(id) {
                Node::Union(nodes) => left.extend(nodes.iter().rev().filter(|node| seen.insert(**node))),
                Node::Any
                | Node::String
                | Node::Number { .. }
                | Node::Literal(_)
                | Node::Array { .. }
                | Node::Object(_) => leaves.push(id),
            }
            if leaves.len() >= MOST_ALTERNATIVES {
                break;
            }
        }
        leaves
    }
}

struct Compiler<'a> {
    nodes: &'a mut Nodes,
    root: &'a Value,
    /// Nodes by reference; one that refers to itself is found here.
    known: HashMap<String, NodeId>,
    depth: usize,
    /// Schemas that were looked at: one that holds itself twice would have more than any number of them.
    steps: usize,
}

impl Compiler<'_> {
    fn node(&mut self, schema: &Value) -> NodeId {
        self.steps += 1;
        if self.depth >= DEEPEST || self.steps >= MOST_STEPS {
            return ANY;
        }
        self.depth += 1;
        let node = match schema {
            Value::Bool(false) => NEVER,
            Value::Object(map) => self.object_schema(map),
            Value::Null | Value::Bool(true) | Value::Number(_) | Value::String(_) | Value::Array(_) => ANY,
        };
        self.depth -= 1;
        node
    }

    fn object_schema(&mut self, schema: &Map<String, Value>) -> NodeId {
        if let Some(Value::String(reference)) = schema.get("$ref") {
            return self.referred(reference);
        }
        if let Some(value) = schema.get("const") {
            return self.literal(value);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let literals = values.iter().map(|value| self.literal(value)).collect();
            return self.nodes.add(Node::Union(literals));
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            let rest = without(schema, "allOf");
            let merged = parts.iter().fold(rest, |merged, part| self.merged(merged, part));
            return self.node(&Value::Object(merged));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(parts)) = schema.get(key) {
                let rest = without(schema, key);
                // Where nothing else binds the value, an alternative that is a reference is compiled once.
                if rest.keys().all(|key| BESIDE.contains(&key.as_str())) {
                    return self.union(parts);
                }
                let alternative = |part: &Value| Value::Object(self.merged(rest.clone(), part));
                let alternatives: Vec<Value> = parts.iter().map(alternative).collect();
                return self.union(&alternatives);
            }
        }
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) | None if schema.contains_key("properties") => vec!["object"],
            Some(_) | None if schema.contains_key("items") => vec!["array"],
            Some(_) | None => return ANY,
        };
        let mut nodes: Vec<NodeId> = types.iter().map(|name| self.typed(name, schema)).collect();
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            nodes.push(self.literal(&Value::Null));
        }
        match nodes[..] {
            [node] => node,
            _ => self.nodes.add(Node::Union(nodes)),
        }
    }

    fn union(&mut self, schemas: &[Value]) -> NodeId {
        let nodes = schemas.iter().map(|schema| self.node(schema)).collect();
        self.nodes.add(Node::Union(nodes))
    }

    fn typed(&mut self, name: &str, schema: &Map<String, Value>) -> NodeId {
        let node = match name {
            "string" => Node::String,
            "integer" => Node::Number { is_integer: true },
            "number" => Node::Number { is_integer: false },
            "boolean" => {
                let both = [true, false].map(|value| self.literal(&Value::Bool(value)));
                Node::Union(both.to_vec())
            }
            "null" => return self.literal(&Value::Null),
            "array" => {
                let count = |key: &str| schema.get(key).and_then(Value::as_u64);
                let length = |key: &str| count(key).and_then(|count| usize::try_from(count).ok());
                let (least, most) =
                    (length("minItems").unwrap_or(0), length("maxItems").unwrap_or(usize::MAX));
                let items = schema.get("items").map_or(ANY, |items| self.node(items));
                Node::Array { items, least, most: most.max(least) }
            }
            "object" => return self.object(schema),
            _ => return ANY,
        };
        self.nodes.add(node)
    }

    fn object(&mut self, schema: &Map<String, Value>) -> NodeId {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> = match schema.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) | None => Vec::new(),
        };
        let others = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            // A schema that lists members and says nothing of others gets those of the list.
            None if !properties.is_empty() => None,
            Some(Value::Bool(true)) | None => Some(ANY),
            Some(schema) => Some(self.node(schema)),
        };
        let mut list = Vec::new();
        for (name, schema) in properties {
            let node = self.node(schema);
            let is_required = required.contains(&name.as_str());
            if node != NEVER {
                list.push(Member { name: quoted(name), node, is_required });
            }
        }
        for name in required.iter().filter(|name| !properties.contains_key(**name)) {
            list.push(Member { name: quoted(name), node: others.unwrap_or(ANY), is_required: true });
        }
        if list.len() > MOST_MEMBERS {
            return ANY_OBJECT;
        }
        self.nodes.add(Node::Object(Members { list, others, is_ordered: false }))
    }

    fn literal(&mut self, value: &Value) -> NodeId {
        self.nodes.add(Node::Literal(value.to_string().into_bytes().into()))
    }

    /// The node that `#/…` refers to in this schema.
    fn referred(&mut self, reference: &str) -> NodeId {
        if let Some(&known) = self.known.get(reference) {
            return known;
        }
        let Some(schema) = self.find(reference) else { return ANY };
        let place = self.nodes.add(Node::Any);
        self.known.insert(reference.to_owned(), place);
        let node = self.node(&schema);
        // One that is nothing but itself allows any value.
        if node != place {
            self.nodes.list[place] = Node::Union(vec![node]);
        }
        place
    }

    fn find(&self, reference: &str) -> Option<Value> {
        self.root.pointer(reference.strip_prefix('#')?).cloned()
    }

    /// The members of both schemas: lists of required names are joined, of other members the later one counts.
    fn merged(&self, mut into: Map<String, Value>, part: &Value) -> Map<String, Value> {
        let resolved = match part.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.find(reference),
            None => Some(part.clone()),
        };
        let Some(Value::Object(part)) = resolved else { return into };
        for (key, value) in part {
            match (into.get_mut(&key), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (Some(Value::Array(known)), Value::Array(more)) if key == "required" => known.extend(more),
                (_, value) => {
                    into.insert(key, value);
                }
            }
        }
        into
    }
}

fn without(schema: &Map<String, Value>, key: &str) -> Map<String, Value> {
    let others = schema.iter().filter(|(name, _)| *name != key);
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A name as JSON writes it between quotes.
pub(super) fn quoted(name: &str) -> Box<[u8]> {
    let text = Value::from(name).to_string().into_bytes();
    text[1..text.len() - 1].into()
}
