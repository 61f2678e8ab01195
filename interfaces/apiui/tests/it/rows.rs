//! No write without the key of its row: the parts of resources and the requests that the pages of eight GraphQL dialects send,
//! compared with what a person reads in their schemas (`tests/dialects`), and the same rules over all specifications.

use apiui::check::{PageOptions, html_page};
use apiui::plan::{Input, InputKind, Options, Plan, Resource, plan};
use apiui::print::{plan_of, print_whole};
use apiui::read::read_bytes;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn dialects() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialects");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn planned(path: &Path) -> Plan {
    let reading = crate::shared::read_file(path).unwrap_or_else(|unusable| panic!("{unusable}"));
    plan(&reading.spec, &Options::default())
}

fn planned_text(schema: &str) -> Plan {
    let reading = read_bytes(schema.as_bytes(), Some("schema.graphql"), None).unwrap();
    plan(&reading.spec, &Options::default())
}

/// What the page sends: the signature of the operation, and the paths of its keys with the fields that fill them.
#[derive(Debug, Deserialize)]
struct Sent {
    edits: Vec<String>,
    deletes: Vec<String>,
    more: Vec<String>,
    problems: Vec<String>,
}

/// Lets the script of the page build its requests. `None` without Node.
fn sent_by(name: &str, plan: &Plan) -> Option<Sent> {
    let job = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rows").join(name);
    std::fs::create_dir_all(&job).unwrap();
    let page = html_page(&print_whole(plan), "", &PageOptions::default());
    let page = page.unwrap_or_else(|refusals| panic!("{name}: {}", refusals[0]));
    let (_, script) = page.rsplit_once("<script type=\"module\">").unwrap();
    std::fs::write(job.join("script.js"), script.split("</script>").next().unwrap()).unwrap();
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/rows.mjs");
    let output = match Command::new("node").arg(driver).arg(&job).output() {
        Ok(output) => output,
        Err(error) => {
            assert!(std::env::var_os("DRAGOMAN_BROWSER").is_none(), "node is needed: {error}");
            return None;
        }
    };
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&std::fs::read(job.join("rows.json")).unwrap()).unwrap())
}

/// The name of a dialect; every edit, every deletion, and every key that another form begins with.
type Dialect = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

const SENT: [Dialect; 8] = [
    (
        "hasura",
        &[
            "mutation update_posts_by_pk: pk_columns.id=id changed",
            "mutation update_order_lines_by_pk: pk_columns.order_id=order_id, pk_columns.line_no=line_no",
        ],
        &[
            "mutation delete_posts_by_pk: id=id",
            "mutation delete_order_lines_by_pk: order_id=order_id, line_no=line_no",
        ],
        &[],
    ),
    (
        "keystone",
        &["mutation updatePost: where.id=id changed", "mutation updateUser: where.id=id changed"],
        &["mutation deletePost: where.id=id", "mutation deleteUser: where.id=id"],
        &[],
    ),
    (
        "prisma",
        &["mutation updateOnePost: where.id=id changed"],
        &["mutation deleteOnePost: where.id=id"],
        &["mutation upsertOnePost: where.id=id"],
    ),
    (
        "postgraphile",
        &["mutation updatePost: input.id=id changed"],
        &["mutation deletePost: input.id=id"],
        &[
            "mutation updatePostByNodeId: input.nodeId=nodeId",
            "mutation deletePostByNodeId: input.nodeId=nodeId",
        ],
    ),
    (
        "strapi",
        &[
            "mutation updateArticle: id=id changed",
            "mutation updateTag: documentId=documentId changed",
            "mutation updateNote: input.where.id=id changed",
        ],
        &[
            "mutation deleteArticle: id=id",
            "mutation deleteTag: documentId=documentId",
            "mutation deleteNote: input.where.id=id",
        ],
        &[],
    ),
    (
        "relay",
        &["mutation updateWidget: input.widgetId=id changed"],
        &["mutation deleteWidget: input.id=id", "mutation deletePerson: asks"],
        &[
            "mutation addWidgetPart: input.widgetId=id",
            "mutation removeWidgetPart: input.widgetId=id",
            "mutation widgetArchive: id=id",
        ],
    ),
    (
        "shopify",
        &["mutation productUpdate: input.id=id changed", "mutation customerUpdate: input.id=id changed"],
        &["mutation productDelete: input.id=id", "mutation customerDelete: input.id=id"],
        &[],
    ),
    (
        "github",
        &[
            "mutation updateIssue: input.id=id changed",
            "mutation updateLabel: input.id=id changed",
            "mutation updateProjectV2: input.projectId=id changed",
        ],
        &[
            "mutation deleteIssue: input.issueId=id",
            "mutation deleteLabel: input.id=id",
            "mutation deleteProjectV2: input.projectId=id",
        ],
        &["mutation transferIssue: input.issueId=id"],
    ),
];

#[test]
fn each_dialect_writes_one_row_by_its_own_key() {
    for path in dialects() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let Some(sent) = sent_by(&name, &planned(&path)) else { return };
        let (_, edits, deletes, more) = SENT.iter().find(|(dialect, ..)| *dialect == name).expect("a row");
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines
        };
        let wanted = |lines: &[&str]| sorted(lines.iter().map(|line| (*line).to_owned()).collect());
        assert!(sent.problems.is_empty(), "{name}: {:#?}", sent.problems);
        assert_eq!(sorted(sent.edits), wanted(edits), "{name}: edits");
        assert_eq!(sorted(sent.deletes), wanted(deletes), "{name}: deletions");
        assert_eq!(sorted(sent.more), wanted(more), "{name}: what other forms begin with");
    }
}

#[test]
fn every_part_of_every_specification_names_its_row() {
    let mut paths = crate::check::own_specifications();
    paths.extend(dialects());
    for folder in ["openapi3", "openapi31", "swagger2", "graphql"] {
        let Some(shared) = crate::shared::folder() else { continue };
        let entries = std::fs::read_dir(shared.join(folder)).into_iter().flatten().flatten();
        paths.extend(entries.map(|entry| entry.path()).filter(|path| path.is_file()));
    }
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let Ok(reading) = crate::shared::read_file(&path) else { continue };
        let plan = plan(&reading.spec, &Options::default());
        for resource in &plan.resources {
            for index in [resource.edits, resource.deletes].into_iter().flatten() {
                check_part(&name, &plan, resource, index);
            }
            if let Some(create) = resource.creates {
                assert!(!plan.operations[create].destroys, "{name}: {}", plan.operations[create].signature);
            }
        }
    }
}

/// An operation that edits or deletes one item has a key of that item, and is not about many of them.
fn check_part(name: &str, plan: &Plan, resource: &Resource, index: usize) {
    let operation = &plan.operations[index];
    let told = format!("{name}: {} of {}", operation.signature, resource.title);
    let is_many = |word: &str| operation.title.to_lowercase().split(' ').any(|part| part == word);
    assert!(!["bulk", "many"].into_iter().any(is_many), "{told}");
    if operation.query_text.is_empty() {
        let has_key = !operation.selectors.is_empty() || operation.path.contains('{');
        assert!(has_key, "{told}");
        return;
    }
    let keys: Vec<&str> = resource
        .keys
        .iter()
        .filter(|key| !key.guessed)
        .map(|key| key.parameter.as_str())
        .filter(|parameter| takes(plan, &operation.inputs, parameter))
        .collect();
    assert!(!keys.is_empty(), "{told} has no key");
    let is_list =
        |input: &Input| input.required && input.kind == InputKind::List && input.name.ends_with("ds");
    assert!(!operation.inputs.iter().any(is_list), "{told} is about many");
}

fn takes(plan: &Plan, inputs: &[Input], parameter: &str) -> bool {
    let (name, rest) = parameter.split_once('.').unwrap_or((parameter, ""));
    let Some(input) = inputs.iter().find(|input| input.name == name) else { return false };
    let fields = input.shape.map_or(&input.fields, |shape| &plan.shapes[shape].fields);
    if rest.is_empty() { input.kind != InputKind::Object } else { takes(plan, fields, rest) }
}

#[test]
fn the_printer_refuses_a_part_without_a_key() {
    let path = dialects().into_iter().find(|path| path.ends_with("hasura.graphql")).unwrap();
    let mut plan = planned(&path);
    let at = |plan: &Plan, name: &str| {
        plan.operations
            .iter()
            .position(|one| one.signature == format!("mutation {name}"))
            .expect("a mutation")
    };
    let (bulk_edit, bulk_delete) = (at(&plan, "update_posts"), at(&plan, "delete_posts"));
    let posts = plan.resources.iter_mut().find(|resource| resource.title == "Posts").expect("posts");
    posts.edits = Some(bulk_edit);
    posts.deletes = Some(bulk_delete);
    let told = plan.validate().expect_err("a bulk mutation is no edit of an item").to_string();
    assert!(told.contains("Posts"), "{told}");
    let reading = crate::shared::read_file(&path).unwrap();
    let files = apiui::project::files(&reading.spec, &plan);
    let (_, posts) = files.iter().find(|(name, _)| name.ends_with("plan/Posts.ts")).expect("its data");
    let has_part =
        |part: &str| posts.contains(&format!("{part}:")) || posts.contains(&format!("\"{part}\":"));
    assert!(!has_part("edits") && !has_part("deletes") && has_part("creates"), "a project has none either");
    let back = plan_of(&print_whole(&plan)).expect("a module");
    let posts = back.resources.iter().find(|resource| resource.title == "Posts").expect("posts");
    assert_eq!((posts.edits, posts.deletes), (None, None));
}

#[test]
fn a_key_of_something_else_is_not_filled_in() {
    let schema = "type Order { id: ID!, total: Int } type Query { orders: [Order!]!, order(id: ID!): Order }
        type Payload { order: Order }
        type Mutation {
          orderDiscountDelete(discountId: ID!): Payload
          orderLineDelete(id: ID!): Payload
          orderCancel(id: ID!): Payload
          orderNote(order: ID!, note: ID!): Payload
          deleteOrder(id: ID!): Payload
        }";
    let Some(sent) = sent_by("orders", &planned_text(schema)) else { return };
    assert!(sent.problems.is_empty(), "{:?}", sent.problems);
    assert_eq!(sent.more, ["mutation orderCancel: id=id", "mutation orderNote: order=id"]);
    assert_eq!(sent.deletes, ["mutation deleteOrder: id=id"]);
}

/// An object that names a relation is not the item's own chooser, whatever its type is called.
#[test]
fn the_key_of_a_relation_is_not_that_of_the_item() {
    let types = "type User { id: ID!, name: String }
        type Post { id: ID!, title: String, author: User, parent: Post }
        input UserWhereUniqueInput { id: ID, email: String }
        input PostWhereUniqueInput { id: ID }
        input UserRef { id: ID! }
        type Query { posts: [Post!]!, post(id: ID!): Post }";
    for (input, mutations, edits, more) in [
        (
            "input In { author: UserWhereUniqueInput, id: ID, title: String }",
            "updatePost(input: In!): Post assignPost(author: UserWhereUniqueInput!): Post",
            &["mutation updatePost: input.id=id changed"][..],
            &[][..],
        ),
        (
            "input In { parent: PostWhereUniqueInput, id: ID, title: String }",
            "updatePost(input: In!): Post movePost(parent: PostWhereUniqueInput!): Post",
            &["mutation updatePost: input.id=id changed"],
            &[],
        ),
        (
            "input In { title: String }",
            "updatePost(author: UserRef!, data: In!): Post assignPost(author: UserRef!): Post",
            &[],
            &[],
        ),
        (
            "input In { title: String }",
            "updatePost(author: UserWhereUniqueInput, where: PostWhereUniqueInput!, data: In!): Post
             assignPost(author: UserWhereUniqueInput!, post: PostWhereUniqueInput!): Post",
            &["mutation updatePost: where.id=id changed"],
            &["mutation assignPost: post.id=id"],
        ),
        (
            "input In { where: UserWhereUniqueInput, title: String }",
            "updatePost(data: In!): Post assignPost(where: UserWhereUniqueInput!): Post",
            &[],
            &[],
        ),
    ] {
        let plan = planned_text(&format!("{types} {input} type Mutation {{ {mutations} }}"));
        let Some(sent) = sent_by("relations", &plan) else { return };
        assert!(sent.problems.is_empty(), "{mutations}: {:?}", sent.problems);
        assert_eq!(sent.edits, edits, "{mutations}");
        assert_eq!(sent.more, more, "{mutations}");
    }
}

/// What people call a user is not the name of the account.
#[test]
fn a_display_name_is_no_key() {
    let schema =
        "type User { id: ID!, login: String!, name: String, code: String, key: String, slug: String }
        type Query { users: [User!]!, user(id: ID!): User }
        type Mutation { deleteUser(MUTATION): User }";
    for (argument, expected) in [
        ("userName: String!", None),
        ("username: String!", None),
        ("userCode: String!", None),
        ("userKey: String!", None),
        ("userSlug: String!", Some("mutation deleteUser: userSlug=slug")),
        ("userId: ID!", Some("mutation deleteUser: userId=id")),
        ("login: String!", Some("mutation deleteUser: login=login")),
    ] {
        let plan = planned_text(&schema.replace("MUTATION", argument));
        let Some(sent) = sent_by("display", &plan) else { return };
        assert!(sent.problems.is_empty(), "{argument}: {:?}", sent.problems);
        assert_eq!(sent.deletes.first().map(String::as_str), expected, "{argument}");
        assert!(sent.more.is_empty(), "{argument}: {:?}", sent.more);
    }
    let user = serde_json::json!({"type": "object", "properties": {
        "id": {"type": "integer"}, "login": {"type": "string"}, "name": {"type": "string"}}});
    let document = serde_json::json!({"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {
        "/users": {"get": list("User")},
        "/users/{username}": {"get": one("User", &["username"]), "delete": one("User", &["username"])},
        "/accounts/{username}/close": {"post": one("User", &["username"])},
    }, "components": {"schemas": {"User": user}}});
    let plan =
        plan(&read_bytes(document.to_string().as_bytes(), None, None).unwrap().spec, &Options::default());
    let certain = plan.resources.iter().flat_map(|resource| &resource.keys).filter(|key| !key.guessed);
    assert!(
        certain.map(|key| key.field.as_str()).all(|field| field != "name"),
        "{:?}",
        plan.resources[0].keys
    );
}

/// A filter that is left out means every row, whatever the mutation does with them and whatever type the filter has.
#[test]
fn a_filter_is_never_empty_and_many_rows_ask() {
    let schema = "scalar JSON scalar JSONObject input F { title: String, and: [F!] } input In { filter: F } input Set { title: String }
        type Post { id: ID!, title: String } type Query { posts: [Post!]!, post(id: ID!): Post }
        type Mutation { MUTATION }";
    for (mutation, guarded) in [
        ("archivePosts(where: F): Int", Some("where")),
        ("cancelPosts(filter: F): Int", Some("filter")),
        ("publishMany(where: F): Int", Some("where")),
        ("disablePosts(filters: F): Int", Some("filters")),
        ("archivePosts(input: In!): Int", Some("input.filter")),
        ("deletePosts(input: In!): Int", Some("input.filter")),
        ("deletePosts(where: JSON!): Int", Some("where")),
        ("deletePosts(filter: JSONObject): Int", Some("filter")),
        ("archivePosts(filter: String): Int", Some("filter")),
        ("deletePosts(condition: JSON): Int", Some("condition")),
        ("archivePosts(ids: [ID!]): Int", Some("ids")),
        ("createPosts(filter: F): Int", None),
        ("exportPosts(filter: F): String", None),
        ("updatePost(id: ID!, title: String, filter: JSON): Post", Some("id")),
    ] {
        let plan = planned_text(&schema.replace("MUTATION", mutation));
        let Some(sent) = sent_by("filters", &plan) else { return };
        assert!(sent.problems.is_empty(), "{mutation}: {:?}", sent.problems);
        let operation =
            plan.operations.iter().find(|one| one.signature.starts_with("mutation")).expect("a mutation");
        let paths: Vec<String> = operation.selectors.iter().map(|path| path.join(".")).collect();
        assert_eq!(paths.first().map(String::as_str), guarded, "{mutation}");
        let is_many = guarded.is_some_and(|path| !["id", "ids"].contains(&path));
        assert!(operation.destroys || !is_many, "{mutation} asks");
        assert!(!operation.destroys || guarded.is_some_and(|path| path != "id"), "{mutation} does not ask");
    }
}

/// A `PUT` to a collection that names its record in the body: the form keeps the key.
#[test]
fn a_key_in_the_body_is_not_typed() {
    let body = serde_json::json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}});
    let mut put = answer(serde_json::json!({"$ref": "#/components/schemas/Pet"}));
    put["operationId"] = "updatePet".into();
    put["requestBody"] = body;
    let document = serde_json::json!({"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {
        "/pets": {"get": list("Pet"), "put": put},
        "/pets/{id}": {"get": one("Pet", &["id"])},
    }, "components": {"schemas": {"Pet": thing()}}});
    let reading = read_bytes(document.to_string().as_bytes(), None, None).unwrap();
    let Some(sent) = sent_by("bodies", &plan(&reading.spec, &Options::default())) else { return };
    assert!(sent.problems.is_empty(), "{:?}", sent.problems);
    assert_eq!(sent.edits, ["PUT /pets: body.id=id"]);
}

#[test]
fn the_path_says_whose_key_a_parameter_is() {
    let document = serde_json::json!({"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {
        "/stacks": {"get": list("Stack")},
        "/stacks/{id}": {"get": one("Stack", &["id"]), "delete": one("Stack", &["id"])},
        "/stacks/{id}/assets/{assetId}": {"delete": one("Stack", &["id", "assetId"])},
        "/users/{id}/orders": {"get": with(list("Order"), &["id"])},
        "/users/{id}": {"get": one("User", &["id"])},
        "/users": {"get": list("User")},
        "/orders/{id}/lines": {"post": one("Order", &["id"])},
    }, "components": {"schemas": {
        "Stack": thing(), "Order": thing(), "User": thing(),
    }}});
    let reading = read_bytes(document.to_string().as_bytes(), None, None).unwrap();
    let plan = plan(&reading.spec, &Options::default());
    let Some(sent) = sent_by("paths", &plan) else { return };
    assert!(sent.problems.is_empty(), "{:?}", sent.problems);
    let stacks = plan.resources.iter().find(|resource| resource.title == "Stacks").expect("stacks");
    let keys: Vec<(&str, usize)> =
        stacks.keys.iter().map(|key| (key.parameter.as_str(), key.also.len())).collect();
    assert_eq!(keys, [("id", 1)], "the id of the stack, for the asset in it too; nothing for the asset");
}

fn thing() -> serde_json::Value {
    serde_json::json!({"type": "object", "properties": {"id": {"type": "string"}, "name": {"type": "string"}}})
}

fn answer(schema: serde_json::Value) -> serde_json::Value {
    serde_json::json!({"responses": {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}})
}

fn list(name: &str) -> serde_json::Value {
    let item = serde_json::json!({"$ref": format!("#/components/schemas/{name}")});
    answer(serde_json::json!({"type": "array", "items": item}))
}

fn one(name: &str, parameters: &[&str]) -> serde_json::Value {
    with(answer(serde_json::json!({"$ref": format!("#/components/schemas/{name}")})), parameters)
}

fn with(mut operation: serde_json::Value, parameters: &[&str]) -> serde_json::Value {
    let described = |name: &&str| serde_json::json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    operation["parameters"] = parameters.iter().map(described).collect();
    operation
}

/// What looks like a key and is not: each of these is an operation and no part of a resource.
#[test]
fn what_is_in_doubt_is_an_operation() {
    for (types, mutation) in [
        ("", "deleteThingByOwner(ownerId: ID!): Thing"),
        ("", "deleteThings(ids: [ID!]!): Int"),
        ("input F { and: [F!], id: ID }", "deleteThing(filter: F!): Int"),
        ("input W { OR: [W!], id: ID }", "updateThing(where: W, update: U): [Thing!]!"),
        ("", "removeAllThing: Int"),
        ("", "deleteThing: Int"),
        ("", "updateThing(data: U!): Thing"),
        ("type Owner { id: ID! }", "deleteThing(ownerId: ID!): Thing"),
        ("type Part { id: ID! }", "deleteThingPart(id: ID!): Thing"),
        ("", "deleteThingItem(id: ID!): Thing"),
        ("", "batchUpdateThing(id: ID!, name: String): Thing"),
        ("", "setThing(name: String!): Thing"),
        ("input P { id: ID, name: String }", "updateThing(filter: String, set: P!): Thing"),
    ] {
        let schema = format!(
            "type Thing {{ id: ID!, ownerId: ID, name: String }} input U {{ name: String }} {types}
             type Query {{ things: [Thing!]!, thing(id: ID!): Thing }} type Mutation {{ {mutation} }}"
        );
        let plan = planned_text(&schema);
        let things = plan.resources.iter().find(|resource| resource.title == "Things").expect("things");
        assert_eq!((things.edits, things.deletes), (None, None), "{mutation}");
        let Some(sent) = sent_by("doubt", &plan) else { return };
        assert!(sent.problems.is_empty(), "{mutation}: {:?}", sent.problems);
        assert!(sent.more.iter().all(|line| !line.contains("ownerId=id")), "{mutation}: {:?}", sent.more);
    }
}

/// A role by the name of another thing is worse than none.
#[test]
fn verb_and_noun_agree() {
    let post = |id: &str| {
        let mut operation = answer(serde_json::json!({"$ref": "#/components/schemas/Key"}));
        operation["operationId"] = id.into();
        operation
    };
    let document = serde_json::json!({"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {
        "/v2/keys.addPermissions": {"post": post("addPermissions")},
        "/v2/keys.createKey": {"post": post("createKey")},
        "/v2/keys.list": {"get": list("Key")},
        "/item/public_token/create": {"post": post("itemPublicTokenCreate")},
        "/item/get": {"get": list("Key")},
        "/branches": {"get": list("Branch"), "post": post("searchBranches"), "put": with_body("replaceAll")},
        "/branches/{name}": {"get": one("Branch", &["name"]), "put": with(post("resetBranch"), &["name"])},
    }, "components": {"schemas": {"Key": thing(), "Branch": thing()}}});
    let reading = read_bytes(document.to_string().as_bytes(), None, None).unwrap();
    let plan = plan(&reading.spec, &Options::default());
    let part = |title: &str| {
        let resource = plan.resources.iter().find(|resource| resource.title == title);
        let resource = resource.unwrap_or_else(|| panic!("no {title}"));
        let signature = |index: Option<usize>| index.map(|index| plan.operations[index].signature.clone());
        (signature(resource.creates), signature(resource.edits))
    };
    assert_eq!(part("Keys"), (Some("POST /v2/keys.createKey".to_owned()), None));
    assert_eq!(part("Items"), (None, None));
    assert_eq!(part("Branches"), (None, None), "a search, a reset and a replacement of all are no parts");
    let destroys = |signature: &str| {
        plan.operations.iter().find(|one| one.signature == signature).expect("an operation").destroys
    };
    assert!(destroys("PUT /branches/{name}") && !destroys("POST /v2/keys.createKey"));
}

fn with_body(id: &str) -> serde_json::Value {
    let names = serde_json::json!({"type": "array", "items": {"type": "string"}});
    let mut operation = answer(serde_json::json!({}));
    operation["operationId"] = id.into();
    operation["requestBody"] = serde_json::json!({"content": {"application/json": {"schema": names}}});
    operation
}

/// A chain of references is as long as it likes; walking each of its links to the end would take hours.
#[test]
fn a_chain_of_references_is_walked_once() {
    let count = 30_000;
    let link = |number: usize| {
        let name = format!("#/components/schemas/S{}", number + 1);
        (format!("S{number}"), serde_json::json!({"$ref": name}))
    };
    let mut schemas: serde_json::Map<String, serde_json::Value> = (0..count).map(link).collect();
    schemas.insert(format!("S{count}"), thing());
    let mut document = serde_json::json!({"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {
        "/things": {"get": list("S0")},
    }, "components": {"schemas": schemas}});
    let reading = read_bytes(document.to_string().as_bytes(), None, None).unwrap();
    assert!(reading.warnings.is_empty());
    let plan = plan(&reading.spec, &Options::default());
    let columns = &plan.resources[0].list.as_ref().expect("a list").columns;
    assert_eq!(columns.len(), 2, "the fields of the last link");
    // The same for a chain that ends nowhere, and for one that bites its tail.
    document["components"]["schemas"][format!("S{count}")] =
        serde_json::json!({"$ref": "#/components/schemas/Gone"});
    let broken = read_bytes(document.to_string().as_bytes(), None, None).unwrap();
    assert!(broken.warnings.len() > count, "a warning for each link");
    document["components"]["schemas"][format!("S{count}")] =
        serde_json::json!({"$ref": "#/components/schemas/S0"});
    let endless = read_bytes(document.to_string().as_bytes(), None, None).unwrap();
    assert!(endless.warnings.len() > count);
}
