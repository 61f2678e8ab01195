//! Specifications that are written in unusual ways, each as small as the point it makes.

use apiui::plan::{Column, Display, Options, Plan, Resource, plan};
use apiui::read::read_bytes;
use serde_json::{Value, json};

fn planned(paths: Value, schemas: Value) -> Plan {
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "Odd", "version": "1"},
        "paths": paths, "components": {"schemas": schemas},
    });
    let reading = read_bytes(document.to_string().as_bytes(), None, None).expect("usable");
    plan(&reading.spec, &Options::default())
}

fn resource<'p>(plan: &'p Plan, title: &str) -> &'p Resource {
    let titles: Vec<&str> = plan.resources.iter().map(|resource| resource.title.as_str()).collect();
    plan.resources.iter().find(|resource| resource.title == title).unwrap_or_else(|| panic!("{titles:?}"))
}

fn columns(properties: Value) -> Vec<Column> {
    let item = json!({"type": "object", "properties": properties});
    let plan =
        planned(json!({"/things": {"get": answer(json!({"type": "array", "items": item}))}}), json!({}));
    resource(&plan, "Things").list.clone().expect("a list").columns
}

fn answer(schema: Value) -> Value {
    json!({"responses": {"200": {"description": "ok", "content": {"application/json": {"schema": schema}}}}})
}

fn with_parameters(mut operation: Value, parameters: Value) -> Value {
    operation["parameters"] = parameters;
    operation
}

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
}

fn users() -> Value {
    json!({"User": {"type": "object", "properties": {"id": {"type": "string"}, "name": {"type": "string"}}}})
}

#[test]
fn a_time_or_a_token_is_not_filled_with_the_id_of_the_last_row() {
    let paging = |parameter: Value| {
        let list = json!({"type": "array", "items": {"$ref": "#/components/schemas/User"}});
        let paths = json!({"/users": {"get": with_parameters(answer(list), json!([parameter]))}});
        resource(&planned(paths, users()), "Users").list.clone().expect("a list").paging
    };
    let text = |name: &str, format: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "format": format}});
    assert_eq!(paging(text("since", "date-time")), None);
    assert_eq!(paging(text("since", "")), None);
    assert_eq!(paging(text("from", "")), None);
    assert_eq!(paging(text("token", "")), None);
    assert_eq!(paging(text("starting_after", "")).expect("paged").from_last, "id");
    let number = json!({"name": "since", "in": "query", "schema": {"type": "integer"}});
    assert_eq!(paging(number).expect("paged").from_last, "id");
}

#[test]
fn a_call_by_name_is_a_list_and_its_detail_has_a_key() {
    let user = json!({"$ref": "#/components/schemas/User"});
    let envelope = json!({"type": "object", "properties": {
        "ok": {"type": "boolean"}, "members": {"type": "array", "items": user}, "warnings": {"type": "string"},
    }});
    let one = json!({"type": "object", "properties": {"ok": {"type": "boolean"}, "user": user}});
    let key = json!([{"name": "user", "in": "query", "required": true, "schema": {"type": "string"}}]);
    let plan = planned(
        json!({
            "/v2/users.list": {"get": answer(envelope)},
            "/v2/users.info": {"get": with_parameters(answer(one), key)},
            "/v2/users.create": {"post": answer(json!({}))},
        }),
        users(),
    );
    let users = resource(&plan, "Users");
    let list = users.list.as_ref().expect("a list");
    assert_eq!((list.operation, list.items.as_slice()), (0, &["members".to_owned()][..]));
    assert_eq!((users.detail, users.creates), (Some(1), Some(2)));
    let keys: Vec<_> =
        users.keys.iter().map(|key| (key.parameter.as_str(), key.field.as_str(), key.guessed)).collect();
    assert_eq!(keys, [("user", "id", false)]);
}

#[test]
fn versions_of_a_thing_are_one_resource_that_uses_the_newest() {
    let list = || answer(json!({"type": "array", "items": {"$ref": "#/components/schemas/User"}}));
    let item = || answer(json!({"$ref": "#/components/schemas/User"}));
    let tenant = || json!([path_parameter("tenantId")]);
    let both = json!([path_parameter("tenantId"), path_parameter("userId")]);
    let plan = planned(
        json!({
            "/v1/tenants/{tenantId}/users": {"get": with_parameters(list(), tenant())},
            "/v2/tenants/{tenantId}/users": {"get": with_parameters(list(), tenant())},
            "/v2/tenants/{tenantId}/users/{userId}": {"get": with_parameters(item(), both)},
            "/v1/{id}": {"get": with_parameters(item(), json!([path_parameter("id")]))},
        }),
        users(),
    );
    let users = resource(&plan, "Users");
    let signature = |index: usize| plan.operations[index].signature.as_str();
    assert_eq!(signature(users.list.as_ref().expect("a list").operation), "GET /v2/tenants/{tenantId}/users");
    assert_eq!(users.detail.map(signature), Some("GET /v2/tenants/{tenantId}/users/{userId}"));
    assert_eq!(users.operations.len(), 3);
}

#[test]
fn columns_have_distinct_names_and_moments_are_dates() {
    let found = columns(json!({
        "URL": {"type": "string"}, "url": {"type": "string"}, "CVEs": {"type": "string"},
        "last_login": {"type": "integer", "description": "Unix timestamp (seconds since the epoch)."},
        "startTime": {"type": "integer"}, "createdAt": {"type": "string"}, "size": {"type": "integer"},
    }));
    let shown = |field: &str| {
        let column = found.iter().find(|column| column.field == field).expect(field);
        (column.label.clone(), column.display)
    };
    assert_eq!(shown("URL").0, "URL");
    assert_eq!(shown("url").0, "url");
    assert_eq!(shown("CVEs").0, "CVEs");
    for field in ["last_login", "startTime", "createdAt"] {
        assert_eq!(shown(field).1, Display::Datetime, "{field}");
    }
    assert_eq!(shown("size").1, Display::Number);
}

/// The fields of this type stand in the order of the alphabet, as many schemas have them.
#[test]
fn lists_of_graphql_begin_with_what_people_look_for() {
    let schema = r"
        scalar DateTime
        type Query { issues(after: String, before: String, first: Int, last: Int, team: String): IssueConnection! }
        type IssueConnection { nodes: [Issue!]! pageInfo: PageInfo! }
        type PageInfo { endCursor: String hasNextPage: Boolean! }
        type User { email: String id: ID! name: String! }
        enum State { open done }
        type Issue {
            archived: Boolean
            assignee: User
            boardOrder: Float
            branchName: String
            createdAt: DateTime
            customTicketCount: Int
            description: String
            dueDate: DateTime
            estimate: Float
            id: ID!
            state: State
            title: String!
            url: String
        }";
    let reading = apiui::read::read_bytes(schema.as_bytes(), Some("schema.graphql"), None).expect("a schema");
    let plan = apiui::plan::plan(&reading.spec, &apiui::plan::Options::default());
    let list = plan.resources.iter().find_map(|resource| resource.list.as_ref()).expect("a list");
    let shown: Vec<&str> =
        list.columns.iter().filter(|column| !column.hidden).map(|column| column.field.as_str()).collect();
    assert_eq!(shown[0], "title", "{shown:?}");
    for field in ["state", "assignee.name", "dueDate", "estimate"] {
        assert!(shown[..5].contains(&field), "{field} is among the first: {shown:?}");
    }
    assert!(!shown[..5].contains(&"id"), "{shown:?}");
    let paging = list.paging.as_ref().expect("paging");
    assert_eq!((paging.parameter.as_str(), paging.size_parameter.as_str()), ("after", "first"));
}
