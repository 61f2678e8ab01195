//! A whole OpenAPI 3 or Swagger 2.0 document → `Spec`.
//!
//! Owns the order of work and the verdict whether the document can be used. A document with a fault is used
//! without the faulty part, which is a warning, unless nothing whole would be left.

use super::dialect::{Dialect, servers};
use super::operation::{self, Context, METHODS};
use super::reading::no_operations;
use super::refs::Documents;
use super::schema::Schemas;
use super::value::{entries, list, text, text_of};
use super::{Load, Reading, Unusable, security, swagger2};
use crate::problem::{Problem, ProblemKind, ProblemLocation, Severity};
use crate::spec::{Endpoint, Format, Metadata, Server, Spec, Webhook};
use serde_json::Value;
use std::borrow::Cow;

pub(super) fn read(
    value: Cow<'_, Value>,
    dialect: Dialect,
    location: Option<&str>,
    load: Option<&mut Load>,
) -> Result<Reading, Unusable> {
    check_structure(&value, dialect)?;
    let (documents, mut problems) = Documents::load(value, location, load);
    let mut schemas = Schemas::new(&documents);
    schemas.register(if dialect == Dialect::Swagger2 { "/definitions" } else { "/components/schemas" });
    let (endpoints, broken) = endpoints(&mut schemas, dialect);
    let webhooks = webhooks(&mut schemas);
    let (models, found) = schemas.finish();
    problems.extend(found);
    if endpoints.is_empty() && webhooks.is_empty() {
        return Err(no_operations(
            ProblemLocation::pointer("/paths"),
            "The specification describes no operation.",
        )
        .into());
    }
    if broken > 0 && broken == endpoints.len() {
        return Err(nothing_whole(problems));
    }
    let root = documents.root();
    let mut spec = Spec {
        format: if dialect == Dialect::Swagger2 { Format::Swagger2 } else { Format::Openapi3 },
        metadata: metadata(root),
        endpoints,
        webhooks,
        models,
        tags: security::tags(root),
        ..Spec::default()
    };
    spec.security_schemes = match dialect {
        Dialect::Swagger2 => security::schemes(entries(root, "securityDefinitions"), root),
        Dialect::Openapi3 => {
            security::schemes(root.get("components").and_then(|all| entries(all, "securitySchemes")), root)
        }
    };
    spec.servers = if dialect == Dialect::Swagger2 { swagger2::servers(root) } else { servers(root) };
    spec.metadata.base_url = spec.servers.first().map(concrete);
    note_assumptions(&mut spec, root, &problems);
    problems.extend(super::lint::lint(&spec));
    Ok(Reading { spec, warnings: problems })
}

fn check_structure(root: &Value, dialect: Dialect) -> Result<(), Problem> {
    let structure = |pointer: &str, message: &str, advice: &str| {
        Err(Problem::error(ProblemKind::Structure, ProblemLocation::pointer(pointer), message, advice))
    };
    let version = root.get("openapi").and_then(text_of).unwrap_or_default();
    let may_lack_paths = dialect == Dialect::Openapi3 && !version.starts_with("3.0") && version != "3";
    match root.get("paths") {
        Some(Value::Object(_)) => Ok(()),
        Some(_) => structure(
            "/paths",
            "`paths` is not an object.",
            "Let `paths` map each path, such as `/items`, to its operations.",
        ),
        None if may_lack_paths && (root.get("webhooks").is_some() || root.get("x-webhooks").is_some()) => {
            Ok(())
        }
        None => structure(
            "",
            "The required `paths` is missing, so there is no operation to show.",
            "Add `paths` with at least one operation; if this is a file of shared components, send the document that refers to it.",
        ),
    }
}

fn endpoints<'d>(schemas: &mut Schemas<'d>, dialect: Dialect) -> (Vec<Endpoint>, usize) {
    let documents = schemas.documents;
    let root = documents.root();
    let (mut endpoints, mut broken) = (Vec::new(), 0);
    for (path, item) in entries(root, "paths").into_iter().flatten() {
        if path.starts_with("x-") {
            continue;
        }
        let mut read_item = |schemas: &mut Schemas<'d>, item: &'d Value| {
            let context = Context { dialect, root, path, shared_parameters: list(item, "parameters") };
            for method in METHODS {
                let Some(value) = item.get(method).filter(|value| value.is_object()) else { continue };
                let (mut endpoint, is_broken) =
                    schemas.within([method], |schemas| operation::read(schemas, &context, method, value));
                if endpoint.servers.is_empty() {
                    endpoint.servers = servers(item);
                }
                broken += usize::from(is_broken);
                endpoints.push(endpoint);
            }
        };
        schemas.within(["paths", path.as_str()], |schemas| {
            read_item(schemas, item);
            // A path item may be a reference with operations of its own beside it.
            if let Some(reference) = item.get("$ref").and_then(Value::as_str)
                && let Some(spot) = schemas.follow(reference)
            {
                schemas.elsewhere(&spot, |schemas| read_item(schemas, spot.value));
            }
        });
    }
    (endpoints, broken)
}

fn webhooks<'d>(schemas: &mut Schemas<'d>) -> Vec<Webhook> {
    let documents = schemas.documents;
    let mut found = Vec::new();
    for key in ["webhooks", "x-webhooks"] {
        for (name, item) in entries(documents.root(), key).into_iter().flatten() {
            found.extend(schemas.within([key, name.as_str()], |s| operation::incoming(s, name, None, item)));
        }
    }
    found
}

fn metadata(root: &Value) -> Metadata {
    let info = root.get("info").unwrap_or(&Value::Null);
    Metadata {
        title: text(info, "title").unwrap_or_else(|| "Untitled API".to_owned()),
        version: text(info, "version").unwrap_or_default(),
        description: text(info, "description").or_else(|| text(info, "summary")),
        base_url: None,
    }
}

/// A server's address with the defaults of its variables.
fn concrete(server: &Server) -> String {
    let mut url = server.url.clone();
    for variable in &server.variables {
        url = url.replace(&format!("{{{}}}", variable.name), &variable.default);
    }
    url
}

fn note_assumptions(spec: &mut Spec, root: &Value, problems: &[Problem]) {
    let version = root.get("openapi").and_then(text_of).unwrap_or_default();
    if version.starts_with("3.2") {
        spec.assumptions.push("OpenAPI 3.2 was read as 3.1.".to_owned());
    }
    if spec.servers.is_empty() {
        spec.assumptions
            .push("The specification names no server, so requests go to the page's own address.".to_owned());
    }
    if !problems.is_empty() {
        let count = problems.len();
        let (noun, verb) = if count == 1 { ("reference", "leads") } else { ("references", "lead") };
        spec.assumptions.push(format!(
            "{count} {noun} {verb} nowhere; values there are taken as free-form (first: {}).",
            problems[0].place
        ));
    }
}

fn nothing_whole(problems: Vec<Problem>) -> Unusable {
    let problems =
        problems.into_iter().map(|problem| Problem { severity: Severity::Error, ..problem }).collect();
    Unusable { problems }
}
