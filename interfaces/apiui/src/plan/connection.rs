//! Relay connections: a list of edges or nodes with page information.
//!
//! Owns their recognition, for documents, lists and grouping alike.

use super::models::Models;
use crate::spec::{Kind, Model};

pub(super) struct Connection<'s> {
    /// From the connection to its items, `*` standing for each.
    pub items: Vec<String>,
    pub node: &'s Model,
    pub has_total: bool,
}

pub(super) fn connection<'s>(models: &Models<'s>, model: &'s Model) -> Option<Connection<'s>> {
    let model = models.resolve(model);
    if model.kind != Kind::Object || !model.properties.contains_key("pageInfo") {
        return None;
    }
    let has_total = model.properties.contains_key("totalCount");
    if let Some(node) = model.properties.get("nodes").and_then(|nodes| models.item(nodes)) {
        return Some(Connection { items: vec!["nodes".to_owned()], node, has_total });
    }
    let edge = models.resolve(models.item(model.properties.get("edges")?)?);
    let node = edge.properties.get("node")?;
    Some(Connection { items: vec!["edges".to_owned(), "*".to_owned(), "node".to_owned()], node, has_total })
}
