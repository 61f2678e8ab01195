//! Every specification of the shared folder, where it is present: the valid ones give a module with a control for each
//! operation, the invalid ones give their problem.

use apiui::plan::{Options, plan};
use apiui::print::{plan_of, print_whole};
use apiui::problem::ProblemKind;
use apiui::read::{Reading, Unusable, read_bytes};
use std::path::{Path, PathBuf};

/// The folder of specifications, if this machine has it; DRAGOMAN_SPECS names another.
pub(crate) fn folder() -> Option<PathBuf> {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/specs");
    let path = std::env::var_os("DRAGOMAN_SPECS").map_or_else(usual, PathBuf::from);
    if !path.is_dir() {
        testkit::skip("there are no specifications of others (DRAGOMAN_SPECS names their folder)");
        return None;
    }
    Some(path)
}

pub(crate) fn read_file(path: &Path) -> Result<Reading, Unusable> {
    let bytes = std::fs::read(path).expect("the file is there");
    let mut load = |location: &str| std::fs::read(location).map_err(|error| format!("{location}: {error}."));
    read_bytes(&bytes, path.to_str(), Some(&mut load))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// File and how many operations its index counts.
const VALID: [(&str, usize); 32] = [
    ("openapi3/atlassian-jira.yaml", 499),
    ("openapi3/box.json", 296),
    ("openapi3/kubernetes-apps-v1.json", 77),
    ("openapi3/petstore.yaml", 19),
    ("openapi3/readme-callbacks.yaml", 1),
    ("openapi3/readme-discriminators.yaml", 10),
    ("openapi3/readme-file-uploads.yaml", 3),
    ("openapi3/readme-parameters-style.json", 25),
    ("openapi3/readme-schema-circular.json", 3),
    ("openapi3/readme-security.json", 15),
    ("openapi3/readme-server-variables.yaml", 4),
    ("openapi3/spotify.yaml", 88),
    ("openapi3/stripe.yaml", 452),
    ("openapi31/adyen-checkout-v71.json", 28),
    ("openapi31/oai-webhook-only.yaml", 0),
    ("openapi31/openai.yaml", 288),
    ("openapi31/pokeapi.yml", 100),
    ("openapi31/readme-schema-types.json", 23),
    ("openapi31/redocly-museum.yaml", 8),
    ("openapi31/redocly-petstore-3-1.yaml", 23),
    ("swagger2/azure-webapps-2016.yaml", 311),
    ("swagger2/eve-esi.yaml", 206),
    ("swagger2/gitea.json", 536),
    ("swagger2/kubernetes-shared-parameters.json", 843),
    ("swagger2/oai-petstore-separate/spec/swagger.json", 4),
    ("swagger2/oai-uber.json", 5),
    ("graphql/dagster.graphql", 110),
    ("graphql/github.graphql", 278),
    ("graphql/netflix-dgs-shows.graphqls", 8),
    ("graphql/opentripplanner-gtfs.graphqls", 43),
    ("graphql/swapi.graphql", 13),
    ("openapi31/edge-unicode-anchors.yaml", 3),
];

#[test]
fn every_valid_specification_becomes_a_module_with_all_its_operations() {
    let Some(folder) = folder() else { return };
    for (name, count) in VALID {
        let started = std::time::Instant::now();
        let reading = read_file(&folder.join(name)).unwrap_or_else(|unusable| panic!("{name}: {unusable}"));
        let read = started.elapsed();
        assert_eq!(reading.spec.operation_count(), count, "{name}");
        let plan = plan(&reading.spec, &Options::default());
        plan.validate().unwrap_or_else(|invalid| panic!("{name}: {invalid}"));
        let code = print_whole(&plan);
        crate::check_controls(name, &reading.spec, &code);
        assert_eq!(plan_of(&code).as_ref(), Ok(&plan), "{name}: the plan comes back");
        assert_eq!(code, print_whole(&plan), "{name}: same bytes");
        println!(
            "{name}: {} KB, {} resources, {} warnings, read {read:?}, all {:?}",
            code.len() / 1024,
            plan.resources.len(),
            reading.warnings.len(),
            started.elapsed()
        );
    }
}

#[test]
fn every_file_of_the_folder_is_covered() {
    let Some(folder) = folder() else { return };
    let mut found = Vec::new();
    files(&folder, &mut found);
    let beside = ["INDEX.md", "parameters.json", "Pet.json", "NewPet.json", "Error.json"];
    for path in found {
        let name = path.strip_prefix(&folder).expect("inside").to_string_lossy().into_owned();
        let known = VALID.iter().any(|(valid, _)| *valid == name)
            || INVALID.iter().any(|(invalid, _, _)| *invalid == name);
        let is_part = beside.iter().any(|part| name.ends_with(part));
        assert!(known || is_part, "{name} is in the folder and in no test");
    }
}

/// File, kind of problem, and words that its message must hold.
const INVALID: [(&str, ProblemKind, &[&str]); 10] = [
    ("invalid/truncated.json", ProblemKind::Syntax, &["line 8", "JSON", "ends too early"]),
    ("invalid/library.raml", ProblemKind::UnsupportedFormat, &["RAML"]),
    ("invalid/weather.wsdl", ProblemKind::UnsupportedFormat, &["WSDL"]),
    ("invalid/no-paths.yaml", ProblemKind::Structure, &["`paths`", "missing"]),
    (
        "invalid/dangling-ref.yaml",
        ProblemKind::DanglingReference,
        &["/paths/~1items/get/parameters/0", "Missing"],
    ),
    (
        "invalid/cyclic-only.yaml",
        ProblemKind::CyclicReference,
        &["/paths/~1loop/post/requestBody", "back to itself"],
    ),
    ("invalid/yaml-bomb.yaml", ProblemKind::Expansion, &["beyond all measure"]),
    ("invalid/wrong-version.json", ProblemKind::UnsupportedVersion, &["/openapi", "7.0.0"]),
    ("invalid/login-page.html", ProblemKind::UnsupportedFormat, &["HTML"]),
    ("invalid/binary-junk.json", ProblemKind::Encoding, &["not UTF-8"]),
];

#[test]
fn every_invalid_specification_gets_its_problem() {
    let Some(folder) = folder() else { return };
    for (name, kind, words) in INVALID {
        let unusable = read_file(&folder.join(name)).expect_err(name);
        let problem = unusable.first().expect("a problem");
        let text = problem.to_string();
        assert_eq!(problem.kind, kind, "{name}: {text}");
        for word in words {
            assert!(text.contains(word), "{name}: “{word}” is missing in: {text}");
        }
        assert!(!problem.advice.is_empty(), "{name}: says what to do");
    }
}
