//! What the planner chose for each resource: the operations that make, edit and delete an item, and the keys that views fill
//! in. `census -- --ignored --nocapture` prints the list, to be read by a person; the rules that can be checked are in `rows`.

use apiui::plan::{Options, Plan, Resource, plan};
use std::path::PathBuf;

use crate::check::own_specifications;
use crate::shared::read_file;

fn specifications() -> Vec<PathBuf> {
    let mut paths = own_specifications();
    paths.extend(crate::rows::dialects());
    for folder in ["openapi3", "openapi31", "swagger2", "graphql"] {
        let Some(shared) = crate::shared::folder() else { continue };
        let entries = std::fs::read_dir(shared.join(folder)).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        found.sort();
        paths.extend(found);
    }
    paths
}

/// What was chosen for a resource, one line each.
fn chosen(plan: &Plan, resource: &Resource) -> Vec<String> {
    let id = |index: usize| {
        let operation = &plan.operations[index];
        format!("{} “{}”", operation.signature, operation.title)
    };
    let parts = [("new", resource.creates), ("edit", resource.edits), ("delete", resource.deletes)];
    let mut lines: Vec<String> = parts
        .into_iter()
        .filter_map(|(part, index)| Some(format!("  {part} {}: {}", resource.singular, id(index?))))
        .collect();
    for key in &resource.keys {
        let mark = if key.guessed { " (guessed)" } else { "" };
        lines.push(format!("    key {} = {}{mark}", key.parameter, key.field));
        lines.extend(key.also.iter().map(|index| format!("      also {}", id(*index))));
    }
    lines
}

#[test]
#[ignore = "prints what was chosen"]
fn what_was_chosen() {
    let mut counts = [0; 4];
    for path in specifications() {
        let Ok(reading) = read_file(&path) else { continue };
        let plan = plan(&reading.spec, &Options::default());
        println!("{}", path.file_stem().unwrap().to_string_lossy());
        for resource in &plan.resources {
            counts[0] += usize::from(resource.creates.is_some());
            counts[1] += usize::from(resource.edits.is_some());
            counts[2] += usize::from(resource.deletes.is_some());
            counts[3] += resource.keys.len();
            chosen(&plan, resource).iter().for_each(|line| println!("{line}"));
        }
    }
    println!("creates {}, edits {}, deletes {}, keys {}", counts[0], counts[1], counts[2], counts[3]);
}
