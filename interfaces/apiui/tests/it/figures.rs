//! How well the planner groups operations, measured over the shared specifications (where they are present) and the
//! fixtures. The table is in docs/benchmarks.md; `figures -- --ignored --nocapture` prints it again.

use apiui::plan::{InputPlace, Operation, Options, Plan, Resource, plan};

use crate::check::own_specifications;
use crate::shared::read_file;

#[derive(Debug, Default, Clone, Copy)]
struct Figures {
    operations: usize,
    resources: usize,
    single: usize,
    lists: usize,
    keyed: usize,
    deprecated: usize,
    item_reads: usize,
    reachable: usize,
    largest: usize,
}

/// Whether reading this operation gives one item that its path names.
fn reads_item(operation: &Operation) -> bool {
    let last = operation.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    operation.method == "GET" && last.contains('{')
}

/// Whether a row of the list fills everything that the detail requires.
fn opens_detail(plan: &Plan, resource: &Resource) -> bool {
    let (Some(list), Some(detail)) = (&resource.list, resource.detail) else { return false };
    let asked = &plan.operations[list.operation].inputs;
    plan.operations[detail].inputs.iter().filter(|input| input.required).all(|input| {
        let is_key = resource.keys.iter().any(|key| key.parameter == input.name && !key.guessed);
        let is_handed_down =
            asked.iter().any(|one| one.name == input.name && (one.required || one.place == InputPlace::Path));
        is_key || is_handed_down || !input.initial.is_empty()
    })
}

fn figures(plan: &Plan) -> Figures {
    let mut all = Figures { operations: plan.operations.len(), ..Figures::default() };
    for resource in &plan.resources {
        all.resources += 1;
        all.single += usize::from(resource.operations.len() == 1);
        all.largest = all.largest.max(resource.operations.len());
        let opens = opens_detail(plan, resource);
        if let Some(list) = &resource.list {
            all.lists += 1;
            all.keyed += usize::from(opens);
            all.deprecated += usize::from(plan.operations[list.operation].deprecated);
        }
        let is_read = resource.detail.is_some_and(|detail| reads_item(&plan.operations[detail]));
        all.reachable += usize::from(opens && is_read);
    }
    all.item_reads = plan.operations.iter().filter(|operation| reads_item(operation)).count();
    all
}

fn specifications() -> Vec<std::path::PathBuf> {
    let mut paths = own_specifications();
    for folder in ["openapi3", "openapi31", "swagger2", "graphql"] {
        let Some(shared) = crate::shared::folder() else { continue };
        let entries = std::fs::read_dir(shared.join(folder)).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        found.sort();
        paths.extend(found);
    }
    paths
}

#[test]
#[ignore = "prints the planner's figures"]
fn figures_of_the_planner() {
    let mut sum = Figures::default();
    println!(
        "| specification | operations | resources | of one operation | largest | lists | with a key | deprecated | item reads | reachable |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let show = |name: &str, one: &Figures| {
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            one.operations,
            one.resources,
            one.single,
            one.largest,
            one.lists,
            one.keyed,
            one.deprecated,
            one.item_reads,
            one.reachable
        );
    };
    for path in specifications() {
        let Ok(reading) = read_file(&path) else { continue };
        let one = figures(&plan(&reading.spec, &Options::default()));
        show(&path.file_stem().unwrap().to_string_lossy(), &one);
        sum.operations += one.operations;
        sum.resources += one.resources;
        sum.single += one.single;
        sum.lists += one.lists;
        sum.keyed += one.keyed;
        sum.deprecated += one.deprecated;
        sum.item_reads += one.item_reads;
        sum.reachable += one.reachable;
        sum.largest = sum.largest.max(one.largest);
    }
    show("together", &sum);
}
