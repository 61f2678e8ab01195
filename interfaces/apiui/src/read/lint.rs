//! What is doubtful in a specification that can be read: slips that a linter would report.
//!
//! Owns warnings only. Works on the normalized form, so that it holds for every dialect.

use super::operation::path_parameters;
use super::refs::escape_segment;
use crate::problem::{Problem, ProblemKind, ProblemLocation};
use crate::spec::{Endpoint, Location, Spec};
use std::collections::{HashMap, HashSet};

/// The most warnings of one kind that are reported.
const MAX_WARNINGS: usize = 200;

pub(super) fn lint(spec: &Spec) -> Vec<Problem> {
    let schemes: HashSet<&str> = spec.security_schemes.iter().map(|scheme| scheme.name.as_str()).collect();
    let mut ids: HashMap<&str, &Endpoint> = HashMap::new();
    let mut shapes: HashMap<(String, &str), &str> = HashMap::new();
    let mut found = Vec::new();
    for endpoint in &spec.endpoints {
        if let Some(id) = endpoint.operation_id.as_deref()
            && let Some(first) = ids.insert(id, endpoint)
        {
            let message = format!("The operationId `{id}` is also that of {} {}.", first.method, first.path);
            found.push(doubt(endpoint, "/operationId", message, "Give each operation an id of its own."));
        }
        if let Some(first) = shapes.insert((shape(&endpoint.path), &endpoint.method), &endpoint.path)
            && first != endpoint.path
        {
            let message = format!("This path differs from `{first}` only in the names of its parameters.");
            found.push(doubt(endpoint, "", message, "Describe each address once."));
        }
        parameters(endpoint, &mut found);
        for name in endpoint.security_requirements.iter().filter(|name| !schemes.contains(name.as_str())) {
            let message = format!("The security scheme `{name}` is not defined.");
            found.push(doubt(
                endpoint,
                "/security",
                message,
                "Define it among the security schemes, or correct its name.",
            ));
        }
        let has_success =
            endpoint.responses.keys().any(|status| status.starts_with(['2', '3']) || status == "default");
        if !has_success {
            let message =
                "No successful response is described, so the answer is shown as it comes.".to_owned();
            found.push(doubt(
                endpoint,
                "/responses",
                message,
                "Describe the response with status 200, or another 2xx.",
            ));
        }
    }
    found.truncate(MAX_WARNINGS);
    found
}

fn parameters(endpoint: &Endpoint, found: &mut Vec<Problem>) {
    let named: HashSet<&str> = path_parameters(&endpoint.path).collect();
    for parameter in endpoint.parameters.iter().filter(|parameter| parameter.location == Location::Path) {
        if !named.contains(parameter.name.as_str()) {
            let message = format!("The path parameter `{}` does not appear in the path.", parameter.name);
            found.push(doubt(
                endpoint,
                "/parameters",
                message,
                "Write it in the path in braces, or remove it.",
            ));
        } else if parameter.schema.is_none() && parameter.description.is_none() {
            let message =
                format!("The path parameter `{}` is not described; it is taken to be text.", parameter.name);
            found.push(doubt(
                endpoint,
                "/parameters",
                message,
                "Add it to `parameters` with `in: path` and a schema.",
            ));
        }
    }
}

/// The path with its parameters nameless.
fn shape(path: &str) -> String {
    let mut shape = String::new();
    let mut is_inside = false;
    for c in path.chars() {
        is_inside = (is_inside && c != '}') || c == '{';
        if !is_inside || c == '{' {
            shape.push(c);
        }
    }
    shape
}

fn doubt(endpoint: &Endpoint, rest: &str, message: String, advice: &str) -> Problem {
    let pointer =
        format!("/paths/{}/{}{rest}", escape_segment(&endpoint.path), endpoint.method.to_lowercase());
    Problem::warning(ProblemKind::Doubtful, ProblemLocation::pointer(pointer), message, advice)
}
