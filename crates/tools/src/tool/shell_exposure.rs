//! How a shell line in the sandbox could send something out.

use domain::tool::Exposure;
use process::sandbox::Grant;

use crate::needs::Needs;

/// How a line in a whole wall could send something out, by the grants that this very run has.
pub(super) fn exposure_in_wall(line: Exposure, needs: &Needs, granted: &[Grant]) -> Exposure {
    if needs.publishes {
        return Exposure::Network;
    }
    if granted.iter().any(Grant::reaches_out) {
        // Whatever it runs has the network.
        return line.max(Exposure::Network);
    }
    if needs.registries || granted.contains(&Grant::Registries) {
        return Exposure::Registries;
    }
    Exposure::Local
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::needs_of;

    #[test]
    fn a_run_with_a_grant_that_reaches_out_counts_as_network() {
        let grants = |texts: &[&str]| -> Vec<Grant> {
            texts.iter().filter_map(|text| Grant::parse(text).ok()).collect()
        };
        let needs = |line: &str| needs_of(&crate::shell::analyze(line), std::path::Path::new("/nowhere"));
        for (line, given, exposure) in [
            ("make", &[][..], Exposure::Local),
            ("make", &["secret:.env", "write:/data"], Exposure::Local),
            // Also where the grant is remembered: nobody is asked about it again.
            ("make", &["network"], Exposure::Network),
            ("make", &["network:example.com"], Exposure::Network),
            ("npm ci", &[], Exposure::Registries),
            ("make", &["registries"], Exposure::Registries),
            ("npm publish", &[], Exposure::Network),
        ] {
            let found = exposure_in_wall(Exposure::RunsProject, &needs(line), &grants(given));
            assert!(found == exposure, "{line} {given:?}: {found:?}");
        }
    }
}
