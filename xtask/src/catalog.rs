//! Makes the built-in list of models from our facts, and our facts anew from the public model data.

use std::path::Path;

/// `public`: a file of the public data to take the facts from; without it the facts stay as they are.
pub fn make(public: Option<&str>) -> Result<(), String> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/llm/data");
    let (facts, list) = (data.join("models.json"), data.join("catalog.txt"));
    let source = public.map_or(facts.as_path(), Path::new);
    let told = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let json = std::fs::read_to_string(source).map_err(|error| told(source, &error))?;
    let known = llm::catalog::facts(&json).map_err(|error| told(source, &error))?;
    let rows = llm::catalog::import(&known).map_err(|error| told(source, &error))?;
    std::fs::write(&facts, known).map_err(|error| told(&facts, &error))?;
    std::fs::write(&list, rows).map_err(|error| told(&list, &error))
}
