//! The settings of ECA, which count where they are.

use super::plan::{Plan, Program, Scope, Source};

/// ECA's settings are read as they are.
pub(super) fn read(plan: &mut Plan<'_>) {
    let own = plan.environment.eca_config_dir().join("config.json");
    for path in [own, plan.folder.join(".eca/config.json")] {
        if path.is_file() {
            let source = Source { program: Program::Eca, scope: Scope::User, path };
            plan.found.push(source.clone());
            plan.leave_out(&source, "everything", "this file is used as it is; there is nothing to do");
        }
    }
}
