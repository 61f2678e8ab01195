//! Which tools fit a query: words of the query in names, descriptions and parameters, rare words first. Pure.

use std::collections::HashMap;

use domain::tool::ToolSpec;

const NAME_WEIGHT: f64 = 4.0;
const SERVER_WEIGHT: f64 = 2.0;
const DESCRIPTION_WEIGHT: f64 = 1.0;
const PARAMETER_WEIGHT: f64 = 0.5;
/// A word that begins like another counts less than the word itself.
const PREFIX_WEIGHT: f64 = 0.5;
/// Shorter words are compared as a whole.
const MIN_PREFIX: usize = 4;

/// The indexes of the tools that fit, best first. A tool whose full name is in the query comes before all others.
pub(super) fn rank(specs: &[&ToolSpec], query: &str) -> Vec<usize> {
    let documents: Vec<HashMap<String, f64>> = specs.iter().map(|spec| weighted_words(spec)).collect();
    let words = words_of(query);
    let mut scores: Vec<(usize, f64)> = (0..specs.len()).map(|at| (at, 0.0)).collect();
    for word in &words {
        let fits: Vec<f64> = documents.iter().map(|document| fit(document, word)).collect();
        let count = fits.iter().filter(|fit| **fit > 0.0).count();
        let rarity = (1.0 + specs.len() as f64 / count.max(1) as f64).ln();
        scores.iter_mut().zip(fits).for_each(|((_, score), fit)| *score += fit * rarity);
    }
    let named: Vec<&str> = query.split(|it: char| it.is_whitespace() || it == ',').collect();
    for (at, score) in &mut scores {
        let spec = specs[*at];
        if named.iter().any(|name| *name == spec.offered_name() || *name == spec.name) {
            *score = f64::MAX;
        }
    }
    scores.retain(|(_, score)| *score > 0.0);
    scores.sort_by(|(one, score), (other, best)| best.total_cmp(score).then(one.cmp(other)));
    scores.into_iter().map(|(at, _)| at).collect()
}

/// How well a word fits a tool.
fn fit(document: &HashMap<String, f64>, word: &str) -> f64 {
    if let Some(weight) = document.get(word) {
        return *weight;
    }
    let is_near = |known: &str| {
        let (short, long) = if known.len() < word.len() { (known, word) } else { (word, known) };
        short.chars().count() >= MIN_PREFIX && long.starts_with(short)
    };
    let near = document.iter().filter(|(known, _)| is_near(known)).map(|(_, weight)| *weight);
    near.fold(0.0, f64::max) * PREFIX_WEIGHT
}

/// The words of a tool, each with the weight of the best place where it stands.
fn weighted_words(spec: &ToolSpec) -> HashMap<String, f64> {
    let mut words: HashMap<String, f64> = HashMap::new();
    let mut add = |text: &str, weight: f64| {
        for word in words_of(text) {
            let known = words.entry(word).or_default();
            *known = known.max(weight);
        }
    };
    add(&spec.name, NAME_WEIGHT);
    add(&spec.server, SERVER_WEIGHT);
    add(&spec.description, DESCRIPTION_WEIGHT);
    let parameters = spec.input_schema["properties"].as_object();
    for (name, schema) in parameters.into_iter().flatten() {
        add(name, PARAMETER_WEIGHT);
        add(schema["description"].as_str().unwrap_or_default(), PARAMETER_WEIGHT);
    }
    words
}

/// Words in lower case, without the `s` of a plural; `createIssue` and `create_issue` are two words each.
fn words_of(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in text.chars() {
        let ends_word = !character.is_alphanumeric() || (was_lower && character.is_uppercase());
        if ends_word && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        was_lower = character.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
    }
    for word in &mut words {
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
    }
    words.retain(|word| word.chars().count() > 1);
    words.sort();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use domain::tool::ToolEffect;
    use domain::tool_call::Origin;
    use serde_json::json;

    use super::*;

    fn spec(server: &str, name: &str, description: &str, parameter: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            server: server.into(),
            origin: Origin::Mcp,
            description: description.into(),
            input_schema: json!({"type": "object", "properties": {parameter: {"type": "string"}}}),
            effect: ToolEffect::Other,
        }
    }

    #[test]
    fn the_tool_that_a_person_would_choose_comes_first() {
        let specs = [
            spec("github", "create_issue", "Create a new issue in a repository", "title"),
            spec("github", "listPullRequests", "List pull requests of a repository", "state"),
            spec("github", "get_issue", "Get details of an issue", "number"),
            spec("postgres", "query", "Run a read-only SQL query", "sql"),
            spec("slack", "post_message", "Post a message to a channel", "channel"),
        ];
        let specs: Vec<&ToolSpec> = specs.iter().collect();
        let best = |query: &str| rank(&specs, query).first().map(|at| specs[*at].name.clone());
        for (query, name) in [
            ("create github issue", "create_issue"),
            ("pull request", "listPullRequests"),
            ("issues details", "get_issue"),
            ("database SQL", "query"),
            ("send a message to slack channels", "post_message"),
            ("please github__get_issue", "get_issue"),
            ("repos", "create_issue"),
        ] {
            assert_eq!(best(query).as_deref(), Some(name), "{query}");
        }
        assert_eq!(best("weather"), None);
        assert_eq!(best("!!"), None);
    }
}
