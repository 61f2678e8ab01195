//! The merged settings as a tree whose leaves know their layers. Objects are merged key by key; any other value of a
//! higher layer replaces the lower one; `null` restores the default.

use indexmap::IndexMap;
use serde_json::{Map, Value};

/// The number of a layer, lowest first.
pub(crate) type LayerIndex = usize;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Leaf { value: Value, layer: LayerIndex },
    Branch(IndexMap<String, Node>),
}

impl Default for Node {
    fn default() -> Self {
        Self::Branch(IndexMap::new())
    }
}

impl Node {
    pub(crate) fn from_map(map: &Map<String, Value>, layer: LayerIndex) -> Self {
        let mut node = Self::default();
        node.merge(map, layer, None);
        node
    }

    /// Merges an object over this tree.
    pub(crate) fn merge(&mut self, over: &Map<String, Value>, layer: LayerIndex, defaults: Option<&Node>) {
        let branch = self.make_branch();
        for (key, value) in over {
            let default = defaults.and_then(|defaults| defaults.get(key));
            match value {
                Value::Object(over) => {
                    branch.entry(key.clone()).or_default().merge(over, layer, default);
                }
                Value::Null => match default {
                    Some(default) => drop(branch.insert(key.clone(), default.clone())),
                    None => drop(branch.shift_remove(key)),
                },
                value @ Value::Bool(_)
                | value @ Value::Number(_)
                | value @ Value::String(_)
                | value @ Value::Array(_) => {
                    drop(branch.insert(key.clone(), Self::Leaf { value: value.clone(), layer }))
                }
            }
        }
    }

    /// Merges another tree over this one; leaves keep their layers.
    pub(crate) fn overlay(&mut self, over: &Node) {
        match over {
            Self::Leaf { .. } => *self = over.clone(),
            Self::Branch(entries) => {
                let branch = self.make_branch();
                for (key, node) in entries {
                    branch.entry(key.clone()).or_default().overlay(node);
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.make_branch().shift_remove(key);
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.get(key)
    }

    pub(crate) fn entries(&self) -> Option<&IndexMap<String, Node>> {
        match self {
            Self::Branch(branch) => Some(branch),
            Self::Leaf { .. } => None,
        }
    }

    pub(crate) fn leaf(&self) -> Option<(&Value, LayerIndex)> {
        match self {
            Self::Leaf { value, layer } => Some((value, *layer)),
            Self::Branch(_) => None,
        }
    }

    /// The plain JSON of this tree.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Leaf { value, .. } => value.clone(),
            Self::Branch(branch) => {
                branch.iter().map(|(key, node)| (key.clone(), node.to_value())).collect::<Map<_, _>>().into()
            }
        }
    }

    fn make_branch(&mut self) -> &mut IndexMap<String, Node> {
        if let Self::Leaf { .. } = self {
            *self = Self::default();
        }
        match self {
            Self::Branch(branch) => branch,
            // A leaf became a branch two lines above.
            Self::Leaf { .. } => unreachable!(),
        }
    }
}

/// A key as it is shown: `a.b`, and `a."b.c"` where a part holds a dot.
pub(crate) fn dotted<'p>(path: impl IntoIterator<Item = &'p str>) -> String {
    let quote = |part: &str| if part.contains('.') { format!("\"{part}\"") } else { part.to_owned() };
    path.into_iter().map(quote).collect::<Vec<_>>().join(".")
}
