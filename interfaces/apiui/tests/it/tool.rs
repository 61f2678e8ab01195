//! An API as a tool: every operation of every specification has arguments that fit, and a request.

use apiui::plan::{BodyKind, Operation, Options, Plan, plan};
use apiui::tool::{Credential, describe, example, find, request, search};
use serde_json::json;

use crate::check::own_specifications;
use crate::shared::read_file;

const SERVER: &str = "https://api.example.com";

/// Bodies with files cannot be sent; the request says so.
fn takes_files(operation: &Operation) -> bool {
    let body = operation.body.as_ref().filter(|body| body.required);
    body.is_some_and(|body| matches!(body.kind, BodyKind::Multipart | BodyKind::File))
        || operation.inputs.iter().any(|input| input.required && format!("{:?}", input.kind) == "File")
}

fn check_all(name: &str, plan: &Plan) {
    for (index, operation) in plan.operations.iter().enumerate() {
        let signature = &operation.signature;
        let arguments = example(plan, operation);
        match request(plan, index, SERVER, &arguments, &[]) {
            Ok(built) => {
                assert!(
                    built.url.starts_with(SERVER) && !built.url.contains(['{', '}', ' ']),
                    "{name}: {}",
                    built.url
                );
            }
            Err(problem) => assert!(
                takes_files(operation) || problem.contains("file"),
                "{name}: {signature}: {problem}\n{arguments}"
            ),
        }
        let told = describe(plan, index);
        assert_eq!(told["operation"], json!(signature));
    }
}

#[test]
fn every_operation_has_arguments_that_fit() {
    for path in own_specifications() {
        let Ok(reading) = read_file(&path) else { continue };
        check_all(&path.display().to_string(), &plan(&reading.spec, &Options::default()));
    }
}

#[test]
fn every_operation_of_the_shared_specifications_has_arguments_that_fit() {
    let Some(shared) = crate::shared::folder() else { return };
    for folder in ["openapi3", "openapi31", "swagger2", "graphql"] {
        for entry in std::fs::read_dir(shared.join(folder)).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                continue;
            }
            let Ok(reading) = read_file(&entry.path()) else { continue };
            check_all(&entry.path().display().to_string(), &plan(&reading.spec, &Options::default()));
        }
    }
}

fn bookshop() -> Plan {
    plan(&crate::own::read("bookshop.yaml").spec, &Options::default())
}

#[test]
fn words_find_the_operation() {
    let plan = bookshop();
    for (words, signature) in [
        ("list books", "GET /books"),
        ("delete a book", "DELETE /books/{bookId}"),
        ("place an order", "POST /orders"),
        ("reviews of a book", "GET /books/{bookId}/reviews"),
        ("change a book", "PATCH /books/{bookId}"),
    ] {
        let first = search(&plan, words, 3)[0];
        assert_eq!(plan.operations[first].signature, signature, "{words}");
    }
}

#[test]
fn a_request_is_exact_and_shows_no_secret() {
    let plan = bookshop();
    let credentials = [Credential { scheme: 0, secret: "hunter2hunter2".to_owned() }];
    let build = |name: &str, arguments| {
        request(&plan, find(&plan, name).expect("an operation"), SERVER, &arguments, &credentials)
    };
    let built = build("GET /books", json!({"genre": "poetry", "in_stock": true})).expect("a request");
    assert_eq!(built.url, "https://api.example.com/books?genre=poetry&in_stock=true");
    assert!(built.headers.iter().any(|(_, value)| value == "Bearer hunter2hunter2"), "{:?}", built.headers);
    assert!(
        !built.shown.contains("hunter2") && built.shown.contains("Authorization: •••"),
        "{}",
        built.shown
    );
    assert!(built.secrets.contains(&"hunter2hunter2".to_owned()), "answers that repeat it are masked");
    let built = build("DELETE /books/{bookId}", json!({"bookId": 5})).expect("a request");
    assert_eq!((built.method.as_str(), built.url.as_str()), ("DELETE", "https://api.example.com/books/5"));
    for (name, arguments, told) in [
        ("GET /books", json!({"genre": "western"}), "one of"),
        ("GET /books", json!({"colour": "red"}), "takes no argument"),
        ("DELETE /books/{bookId}", json!({}), "required"),
        ("DELETE /books/{bookId}", json!({"bookId": "five"}), "whole number"),
        ("POST /books", json!({"body": {"title": "x"}}), "“body.price” is required"),
    ] {
        let problem = build(name, arguments).expect_err("it does not fit");
        assert!(problem.contains(told), "{problem}");
    }
}
