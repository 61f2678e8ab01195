//! The settings of ECA, which count where they are.

use super::plan::{Plan, Program, Scope, Source};

/// Its settings are read as they are.
pub(super) fn read(plan: &mut Plan<'_>) {
    let own = plan.environment.eca_config_dir().join("config.json");
    if own.is_file() {
        plan.found.push(Source { program: Program::Eca, scope: Scope::User, path: own.clone() });
        plan.in_place.push((own, false));
    }
    let path = plan.folder.join(".eca/config.json");
    let project = Source { program: Program::Eca, scope: Scope::Project, path };
    if project.path.is_file() {
        plan.found.push(project.clone());
        plan.counts_in_place(&project);
    }
}
