//! Our own specifications: together they have every feature and every kind of invalid input.

use apiui::plan::{InputKind, InputPlace, Layout, Options, PagingStyle, Plan, SchemeKind, Theme, plan};
use apiui::print::{UnknownModule, component_count, plan_of, print, print_whole};
use apiui::problem::{ProblemKind, ProblemLocation};
use apiui::read::{Reading, read_bytes, read_value};
use apiui::spec::Spec;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specs").join(name)
}

/// Reads one of our own specifications, which must be usable.
pub(crate) fn read(name: &str) -> Reading {
    crate::shared::read_file(&path(name)).unwrap_or_else(|unusable| panic!("{name}: {unusable}"))
}

fn planned(name: &str) -> Plan {
    plan(&read(name).spec, &Options::default())
}

pub(crate) const VALID: [&str; 19] = [
    "bookshop.yaml",
    "parcels.json",
    "clinic.yaml",
    "files.yaml",
    "shapes.yaml",
    "access.yaml",
    "servers.yaml",
    "anchors.yaml",
    "split/api.yaml",
    "links.json",
    "library.graphql",
    "tasks-introspection.json",
    "normalized-rest.json",
    "normalized-graphql.json",
    "rpc.yaml",
    "hostile.yaml",
    "webhooks.yaml",
    "sloppy.yaml",
    "pool.yaml",
];

#[test]
fn each_becomes_a_module_with_all_its_operations_and_the_same_bytes() {
    for name in VALID {
        let reading = read(name);
        let plan = plan(&reading.spec, &Options::default());
        plan.validate().unwrap_or_else(|invalid| panic!("{name}: {invalid}"));
        let code = print_whole(&plan);
        crate::check_controls(name, &reading.spec, &code);
        assert_eq!(code, print_whole(&planned(name)), "{name}: same bytes");
        assert_eq!(plan_of(&code).as_ref(), Ok(&plan), "{name}: the plan comes back");
        let components = code.lines().filter(|line| {
            let line = line.strip_prefix("export default ").unwrap_or(line);
            line.strip_prefix("function ")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        });
        assert_eq!(component_count(&plan), components.count(), "{name}: components are counted");
    }
}

#[test]
fn chunks_join_to_the_module() {
    let plan = planned("bookshop.yaml");
    let chunks: Vec<String> = print(&plan).collect();
    assert!(chunks.len() > 1 && chunks.iter().all(|chunk| !chunk.is_empty()));
    assert_eq!(chunks.concat(), print_whole(&plan));
}

#[test]
fn our_own_json_form_reads_back() {
    for name in VALID {
        let spec = read(name).spec;
        let text = serde_json::to_string(&spec).expect("JSON");
        let back: Spec = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        // Planning is what the form is for: it must lose nothing that shows.
        assert_eq!(plan(&back, &Options::default()), plan(&spec, &Options::default()), "{name}");
    }
}

#[test]
fn raw_documents_are_accepted_as_text_and_as_objects() {
    let text = std::fs::read_to_string(path("parcels.json")).expect("a file");
    let object: Value = serde_json::from_str(&text).expect("JSON");
    let as_text = read_value(&Value::String(text), None).expect("usable");
    let as_object = read_value(&object, None).expect("usable");
    assert_eq!(as_text.spec, as_object.spec);
    assert_eq!(as_text.spec.operation_count(), 4);
}

#[test]
fn paging_is_detected() {
    let style = |name: &str, title: &str| {
        let plan = planned(name);
        let resource = plan
            .resources
            .iter()
            .find(|resource| resource.title == title)
            .unwrap_or_else(|| panic!("{name} has {title}"));
        resource.list.as_ref().and_then(|list| list.paging.as_ref()).map(|paging| paging.style)
    };
    assert_eq!(style("bookshop.yaml", "Books"), Some(PagingStyle::Page));
    assert_eq!(style("bookshop.yaml", "Orders"), Some(PagingStyle::Offset));
    assert_eq!(style("bookshop.yaml", "Authors"), None);
    assert_eq!(style("parcels.json", "Parcels"), Some(PagingStyle::Cursor));
    assert_eq!(style("links.json", "Commits"), Some(PagingStyle::Link));
    assert_eq!(style("links.json", "Planets"), Some(PagingStyle::Link));
    assert_eq!(style("links.json", "Charges"), Some(PagingStyle::Cursor));
    assert_eq!(style("library.graphql", "Books"), Some(PagingStyle::Connection));
}

#[test]
fn the_first_column_tells_which_row_it_is() {
    for (name, title, field) in [
        ("bookshop.yaml", "Books", "id"),
        ("links.json", "Planets", "name"),
        ("bookshop.yaml", "Reviews", "stars"),
        ("pool.yaml", "Hours", "date"),
        ("pool.yaml", "Readings", "takenAt"),
        ("pool.yaml", "Pumps", "metadata.name"),
        ("pool.yaml", "Lockers", "lockerCode"),
    ] {
        let plan = planned(name);
        let resource = plan.resources.iter().find(|resource| resource.title == title).expect(title);
        let columns = &resource.list.as_ref().expect(title).columns;
        assert_eq!((columns[0].field.as_str(), columns[0].hidden), (field, false), "{name}: {title}");
    }
}

#[test]
fn resources_have_their_roles_keys_and_relations() {
    let plan = planned("bookshop.yaml");
    let signature = |index: Option<usize>| {
        index.map(|index| plan.operations[index].signature.clone()).unwrap_or_default()
    };
    let books = plan.resources.iter().find(|resource| resource.title == "Books").expect("books");
    assert_eq!(signature(books.list.as_ref().map(|list| list.operation)), "GET /books");
    assert_eq!(signature(books.detail), "GET /books/{bookId}");
    assert_eq!(signature(books.creates), "POST /books");
    assert_eq!(signature(books.edits), "PATCH /books/{bookId}");
    assert_eq!(signature(books.deletes), "DELETE /books/{bookId}");
    assert_eq!(books.keys[0].field, "id");
    let leads: Vec<&str> =
        books.relations.iter().map(|relation| plan.resources[relation.resource].title.as_str()).collect();
    assert_eq!(leads, ["Reviews", "Authors"]);
    assert_eq!(books.group, "Catalogue");
}

#[test]
fn bodies_parameters_and_security_are_planned() {
    let files = planned("files.yaml");
    let kind = |signature: &str| {
        files
            .operations
            .iter()
            .find(|operation| operation.signature == signature)
            .and_then(|operation| operation.body.clone())
            .expect(signature)
    };
    assert_eq!(kind("POST /files").content_type, "multipart/form-data");
    assert_eq!(kind("POST /files").input.fields[0].kind, InputKind::File);
    assert_eq!(kind("PUT /files/{name}").input.kind, InputKind::File);
    assert_eq!(kind("POST /notes").input.kind, InputKind::Multiline);
    assert_eq!(kind("POST /search").content_type, "application/x-www-form-urlencoded");
    assert_eq!(kind("POST /labels").content_type, "application/vnd.label+json");

    let parcels = planned("parcels.json");
    let formats: Vec<(InputPlace, &str)> =
        parcels.operations[0].inputs.iter().map(|input| (input.place, input.format.as_str())).collect();
    assert!(
        formats.contains(&(InputPlace::Query, "deepObject"))
            && formats.contains(&(InputPlace::Query, "pipeDelimited"))
    );
    assert!(formats.contains(&(InputPlace::Query, "json")) && formats.contains(&(InputPlace::Cookie, "")));
    assert_eq!(parcels.webhooks.len(), 2);
    assert_eq!(parcels.operations.iter().map(|operation| operation.incoming.len()).sum::<usize>(), 1);

    let access = planned("access.yaml");
    let kinds: Vec<SchemeKind> = access.schemes.iter().map(|scheme| scheme.kind).collect();
    use SchemeKind::*;
    assert_eq!(kinds, [Bearer, ApiKey, ApiKey, ApiKey, Basic, Http, Oauth2, OpenIdConnect, MutualTls]);
    let security = |path: &str| {
        access
            .operations
            .iter()
            .find(|operation| operation.path == path)
            .map(|operation| operation.security.clone())
            .expect(path)
    };
    assert_eq!(security("/both"), [[1, 4]]);
    assert_eq!(security("/either"), [vec![1], vec![0], vec![]]);
    assert_eq!(security("/open"), Vec::<Vec<usize>>::new());
    assert_eq!(access.schemes[6].flows.len(), 4);
}

#[test]
fn servers_are_expanded_and_only_addresses_pass() {
    let plan = planned("servers.yaml");
    let urls: Vec<&str> = plan.servers.iter().map(|server| server.url.as_str()).collect();
    assert_eq!(
        urls,
        [
            "https://eu.example.com:8443/v1",
            "https://us.example.com:8443/v1",
            "https://eu.example.com:443/v1",
            "https://us.example.com:443/v1",
            "/local",
            "https://other.example.com",
            "https://third.example.com"
        ]
    );
    assert_eq!(plan.operations[0].server, Some(5));
    let hostile = planned("hostile.yaml");
    assert!(
        hostile.servers.iter().all(|server| !server.url.contains("javascript") && !server.url.contains('@'))
    );
}

#[test]
fn shapes_are_finite_and_know_their_alternatives() {
    let plan = planned("shapes.yaml");
    let body = |signature: &str| {
        plan.operations
            .iter()
            .find(|operation| operation.signature == signature)
            .and_then(|operation| operation.body.clone())
            .expect(signature)
            .input
    };
    let pet = body("POST /pets");
    assert_eq!(
        (pet.kind, pet.discriminator.as_str(), pet.alternatives.len()),
        (InputKind::Variant, "kind", 2)
    );
    assert_eq!(pet.alternatives.iter().map(|one| one.value.as_str()).collect::<Vec<_>>(), ["cat", "dog"]);
    let tree = body("PUT /trees/{id}");
    let shape = &plan.shapes[tree.shape.expect("a shape")];
    let children = shape
        .fields
        .iter()
        .find(|field| field.name == "children")
        .and_then(|field| field.item.clone())
        .expect("children");
    assert_eq!(children.shape, tree.shape, "recursion is by reference");
    let settings = &plan.shapes[body("PUT /settings").shape.expect("a shape")];
    let kind = |name: &str| {
        settings.fields.iter().find(|field| field.name == name).map(|field| field.kind).expect(name)
    };
    assert_eq!(
        (kind("flags"), kind("limits"), kind("anything"), kind("free")),
        (InputKind::Map, InputKind::Map, InputKind::Json, InputKind::Json)
    );
    assert_eq!((kind("either"), kind("either_shape")), (InputKind::Text, InputKind::Variant));
}

#[test]
fn text_from_a_specification_is_only_ever_text() {
    let plan = planned("hostile.yaml");
    let code = print_whole(&plan);
    for poison in ["</script", "<script", "<img", "\u{2028}", "\u{2029}"] {
        assert!(!code.contains(poison), "{poison:?} is in the code");
    }
    // No key of the literal comes from the specification.
    let literal = code.rsplit_once("const PLAN = ").expect("a literal").1.trim_end_matches(";\n");
    let value: Value = serde_json::from_str(literal).expect("JSON");
    let mut keys = Vec::new();
    collect_keys(&value, &mut keys);
    assert!(
        keys.iter().all(|key| key.chars().all(|c| c.is_ascii_alphabetic())
            && !["constructor", "toString", "then"].contains(&key.as_str())),
        "{keys:?}"
    );
}

fn collect_keys(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| {
            keys.push(key.clone());
            collect_keys(inner, keys);
        }),
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        _ => {}
    }
}

#[test]
fn options_are_honored() {
    let spec = read("bookshop.yaml").spec;
    let options = Options::from_host(
        Some("dark"),
        Some(&json!({"layout": "cards", "includeAuth": false, "pagination": false})),
    );
    let plan = plan(&spec, &options);
    assert_eq!(
        (plan.theme, plan.layout, plan.auth, plan.pagination),
        (Theme::Dark, Layout::Cards, false, false)
    );
    let odd = Options::from_host(Some("sepia"), Some(&json!({"layout": "kanban"})));
    let assumptions = apiui::plan::plan(&spec, &odd).assumptions;
    assert!(
        assumptions.iter().any(|text| text.contains("sepia"))
            && assumptions.iter().any(|text| text.contains("kanban"))
    );
}

#[test]
fn code_that_is_not_ours_is_told_apart() {
    let code = print_whole(&planned("parcels.json"));
    assert_eq!(plan_of("export default function App() { return null; }"), Err(UnknownModule::NoPlan));
    assert_eq!(plan_of(""), Err(UnknownModule::NoPlan));
    assert_eq!(plan_of(&code.replacen("Loading…", "Waiting…", 1)), Err(UnknownModule::Changed));
    assert_eq!(
        plan_of(&code.replace("// dragoman plan 1 ", "// dragoman plan 9 ")),
        Err(UnknownModule::Version("9".to_owned()))
    );
    for (from, to) in [
        ("\"operation\":0", "\"operation\":900"),
        ("\"graphql\": false", "\"graphql\": alert(1)"),
        ("\"version\": 1", "\"version\": 1, \"extra\": 2"),
        ("\"id\":\"Parcels\"", "\"id\":\"Parcels() {}\""),
    ] {
        assert!(code.contains(from), "{from}");
        assert!(matches!(plan_of(&code.replace(from, to)), Err(UnknownModule::Broken(_))), "{from} → {to}");
    }
}

/// File, kind, words of its text.
const INVALID: [(&str, ProblemKind, &[&str]); 30] = [
    ("truncated.json", ProblemKind::Syntax, &["line 3", "ends too early"]),
    ("comma.json", ProblemKind::Syntax, &["line 1, column 21", "JSON"]),
    ("indent.yaml", ProblemKind::Syntax, &["line 4", "YAML"]),
    ("old.raml", ProblemKind::UnsupportedFormat, &["RAML", "OpenAPI"]),
    ("service.wsdl", ProblemKind::UnsupportedFormat, &["WSDL"]),
    ("note.xml", ProblemKind::UnsupportedFormat, &["XML"]),
    ("page.html", ProblemKind::UnsupportedFormat, &["HTML", "sign-in"]),
    ("events.yaml", ProblemKind::UnsupportedFormat, &["AsyncAPI"]),
    ("collection.json", ProblemKind::UnsupportedFormat, &["Postman"]),
    ("schema.json", ProblemKind::UnsupportedFormat, &["JSON Schema"]),
    ("service.proto", ProblemKind::UnsupportedFormat, &["Protocol Buffers"]),
    ("words.yaml", ProblemKind::UnsupportedFormat, &["just some words"]),
    ("address.yaml", ProblemKind::UnsupportedFormat, &["where a specification is", "Send what is there"]),
    ("empty.yaml", ProblemKind::Structure, &["empty"]),
    ("version.json", ProblemKind::UnsupportedVersion, &["/openapi", "2.9.0"]),
    ("swagger1.json", ProblemKind::UnsupportedVersion, &["/swagger", "1.2"]),
    ("no-paths.yaml", ProblemKind::Structure, &["`paths`", "missing"]),
    ("paths-list.json", ProblemKind::Structure, &["/paths", "not an object"]),
    ("no-operations.json", ProblemKind::NoOperations, &["/paths", "no operation"]),
    (
        "dangling.yaml",
        ProblemKind::DanglingReference,
        &["/paths/~1a/get/parameters/0", "Did you mean `Page`?"],
    ),
    ("cycle.yaml", ProblemKind::CyclicReference, &["/paths/~1a/post/requestBody", "itself"]),
    ("bomb.yaml", ProblemKind::Expansion, &["aliases"]),
    ("latin1.yaml", ProblemKind::Encoding, &["line 2, column 18", "UTF-8"]),
    ("nested.json", ProblemKind::Syntax, &["levels deep"]),
    ("deep.yaml", ProblemKind::Syntax, &["levels deep"]),
    ("unclosed.graphql", ProblemKind::Syntax, &["line 2", "GraphQL"]),
    ("query.graphql", ProblemKind::UnsupportedFormat, &["query", "schema"]),
    ("no-root.graphql", ProblemKind::NoOperations, &["`Query`"]),
    ("introspection.json", ProblemKind::Structure, &["/data/__schema/types"]),
    ("normalized-empty.json", ProblemKind::NoOperations, &["/endpoints"]),
];

#[test]
fn each_invalid_input_gets_its_problem() {
    for (name, kind, words) in INVALID {
        let unusable = crate::shared::read_file(&path("invalid").join(name)).expect_err(name);
        let problem = unusable.first().expect("a problem");
        let text = problem.to_string();
        assert_eq!(problem.kind, kind, "{name}: {text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{name}: “{word}” is missing in: {text}"));
        assert!(!problem.advice.is_empty(), "{name}: says what to do");
    }
    let count = std::fs::read_dir(path("invalid")).expect("a folder").count();
    assert_eq!(count, INVALID.len(), "every invalid file is tested");
}

#[test]
fn warnings_say_where_and_what_was_done() {
    let shapes = read("shapes.yaml");
    let [warning] = shapes.warnings.as_slice() else { panic!("one warning: {:?}", shapes.warnings) };
    assert_eq!(
        warning.place,
        ProblemLocation::Pointer {
            pointer: "/paths/~1broken/get/responses/200/schema".to_owned(),
            file: None
        }
    );
    assert!(warning.advice.contains("`Settings`"));
    assert!(shapes.spec.assumptions.iter().any(|text| text.contains("leads nowhere")));
    // Without a loader, other files are missing but the rest is there.
    let bytes = std::fs::read(path("split/api.yaml")).expect("a file");
    let alone = read_bytes(&bytes, None, None);
    assert!(alone.is_err(), "its only operation rests on another file");
}

#[test]
fn slips_are_reported_and_change_nothing() {
    let reading = read("sloppy.yaml");
    let told: Vec<String> = reading.warnings.iter().map(ToString::to_string).collect();
    for expected in [
        "/paths/~1a~1{id}/get/parameters: The path parameter `id` is not described",
        "/paths/~1a~1{key}/get/operationId: The operationId `same` is also that of GET /a/{id}.",
        "/paths/~1a~1{key}/get: This path differs from `/a/{id}` only in the names",
        "/paths/~1a~1{key}/get/parameters: The path parameter `gone` does not appear",
        "/paths/~1a~1{key}/get/security: The security scheme `nobody` is not defined.",
        "/paths/~1a~1{key}/get/responses: No successful response is described",
    ] {
        assert!(told.iter().any(|text| text.starts_with(expected)), "“{expected}” is missing in {told:#?}");
    }
    assert!(reading.warnings.iter().all(|warning| warning.kind == ProblemKind::Doubtful));
    let plan = plan(&reading.spec, &Options::default());
    let body = |signature: &str| {
        let operation = plan.operations.iter().find(|operation| operation.signature == signature);
        operation.and_then(|operation| operation.body.clone()).expect(signature)
    };
    assert!(body("POST /forms").brackets);
    let animal = body("POST /animals").input;
    assert_eq!(
        animal.alternatives.iter().map(|one| one.value.as_str()).collect::<Vec<_>>(),
        ["Fish", "Bird"]
    );
}

#[test]
fn too_large_is_said_at_once() {
    let mut bytes = b"{\"openapi\": \"3.0.0\", \"x\": \"".to_vec();
    bytes.resize(apiui::read::LIMIT_BYTES + 1, b'a');
    let unusable = read_bytes(&bytes, None, None).expect_err("too large");
    assert!(unusable.is_too_large());
    assert!(unusable.to_string().contains("50 MB"));
}

#[test]
fn references_reach_no_file_from_the_root() {
    let document = json!({"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": {"/a": {"get": {
        "responses": {"200": {"description": "", "content": {"application/json": {"schema": {"$ref": "/etc/secret.json"}}}}}}}}});
    for (location, asked) in [
        (Some("api.json"), vec![]),
        (Some("/home/me/api.json"), vec![]),
        (None, vec![]),
        (Some("https://api.example/v1/api.json"), vec!["https://api.example/etc/secret.json".to_owned()]),
    ] {
        let mut loaded = Vec::new();
        let mut load = |place: &str| {
            loaded.push(place.to_owned());
            Err("not there".to_owned())
        };
        let reading = read_bytes(document.to_string().as_bytes(), location, Some(&mut load)).expect("usable");
        assert_eq!(loaded, asked, "{location:?}");
        assert!(!reading.warnings.is_empty(), "{location:?}");
    }
}
