//! Managed settings over the merged ones: the highest layer, which holds only what is stricter than what is below it.

use domain::{Level, Notice};
use serde_json::{Map, Value, json};

use crate::layer::{Layer, Object, notice};
use crate::managed::{Managed, ManagedRules, ManagedTelemetry};
use crate::origin::Origin;
use crate::settings::Settings;
use crate::tree::Node;

/// Lowers what is too high, and takes out what is forbidden.
pub(crate) fn apply(managed: &Managed, tree: &mut Node, layers: &mut Vec<Layer>) {
    let rules = &managed.rules;
    let mut values = Map::new();
    if rules.sandbox_required {
        values.insert("sandboxRequired".to_owned(), true.into());
        if value_at(tree, &["sandbox"]).is_some_and(|value| value == "off") {
            values.insert("sandbox".to_owned(), "on".into());
        }
    }
    if let Some(days) = rules.retention_days {
        // A project does not decide about retention, so its number would leave none.
        let leaf = tree.get("chatRetentionDays").and_then(Node::leaf);
        let own =
            leaf.filter(|(_, layer)| !is_of_project(layers, *layer)).and_then(|(value, _)| value.as_u64());
        if own.is_none_or(|own| own == 0 || own > days) {
            values.insert("chatRetentionDays".to_owned(), days.into());
        }
        let of_tasks = value_at(tree, &["worker", "retentionDays"]).and_then(Value::as_u64);
        if of_tasks.is_none_or(|own| own > days) {
            values.insert("worker".to_owned(), json!({"retentionDays": days}));
        }
    }
    // A budget that cannot be read spends nothing.
    if tree.get("budget").is_none_or(|node| node.entries().is_some()) {
        let budget = budgets(managed, tree);
        if !budget.is_empty() {
            values.insert("budget".to_owned(), budget.into());
        }
    }
    if let Some(telemetry) = &rules.telemetry {
        tree.remove("otlp");
        if let ManagedTelemetry::Only(otlp) = telemetry {
            values.insert("otlp".to_owned(), otlp.clone().into());
        }
    }
    tree.merge(&values, layers.len(), None);
    let base = managed.file.parent().map(ToOwned::to_owned).unwrap_or_default();
    layers.push(Layer::new(Origin::ManagedFile(managed.file.clone()), values, base));
}

fn budgets(managed: &Managed, tree: &Node) -> Object {
    let mut lowered = Map::new();
    let budgets = managed.rules.budgets;
    let limits = [("chat", budgets.chat), ("day", budgets.day), ("run", budgets.run)];
    for (name, limit) in limits {
        let own = value_at(tree, &["budget", name]);
        let is_lower = |limit: f64| own.is_some_and(|own| own.as_f64().is_none_or(|own| own <= limit));
        if let Some(limit) = limit.filter(|limit| !is_lower(*limit)) {
            let written = managed.written.get("budgets").and_then(|budgets| budgets.get(name));
            lowered.insert(name.to_owned(), written.cloned().unwrap_or_else(|| json!(limit)));
        }
    }
    lowered
}

fn value_at<'a>(tree: &'a Node, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(tree, |node, key| node.get(key))?.leaf().map(|(value, _)| value)
}

fn is_of_project(layers: &[Layer], layer: usize) -> bool {
    layers.get(layer).is_some_and(|layer| matches!(layer.origin, Origin::ProjectFile { .. }))
}

/// Takes providers and servers out that no rule permits, with a notice for each.
pub(crate) fn restrict(managed: &Managed, settings: &mut Settings, notices: &mut Vec<Notice>) {
    let rules = &managed.rules;
    let mut refuse = |what: String| {
        notices.push(notice(Level::Warning, ManagedRules::refusal(&what).to_string()));
        false
    };
    for list in [&mut settings.worker.repositories, &mut settings.worker.push] {
        list.retain(|place| rules.permits_repository(place) || refuse(format!("The repository {place}")));
    }
    settings
        .providers
        .retain(|name, _| rules.permits_provider(name) || refuse(format!("The provider {name}")));
    settings
        .mcp_servers
        .retain(|name, _| rules.may_permit_server(name) || refuse(format!("The MCP server {name}")));
}
