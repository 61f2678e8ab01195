//! An interface as files to take along: a Vite project in a ZIP file, one HTML page, or its module.

use apiui::check::{PageOptions, html_page};
use apiui::print::plan_of;
use axum::http::StatusCode;
use serde::Deserialize;
use web::ApiError;

use crate::studio::Studio;
use crate::zip;

#[derive(Deserialize)]
pub(crate) struct ExportInput {
    format: Format,
    #[serde(default)]
    version: Option<u64>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Format {
    Vite,
    Html,
    Jsx,
}

pub(crate) struct Exported {
    pub name: String,
    pub content_type: &'static str,
    pub bytes: Vec<u8>,
}

impl Studio {
    pub(crate) async fn export(&self, tab: &str, input: ExportInput) -> Result<Exported, ApiError> {
        let nothing = || ApiError::conflict("There is no interface to export yet.");
        let current = self.model().tab(tab).ok_or_else(crate::studio::no_tab)?.current;
        let code = self.code(tab, input.version.or(current).ok_or_else(nothing)?).await?;
        let spec = self.spec(tab).await?;
        let title = spec.metadata.title.clone();
        let (react, project_files) = (self.react, self.project_files);
        let made = tokio::task::spawn_blocking(move || match input.format {
            Format::Jsx => Ok(Exported {
                name: "App.jsx".to_owned(),
                content_type: "text/javascript; charset=utf-8",
                bytes: code.into_bytes(),
            }),
            Format::Html => page(&code, &title, react),
            Format::Vite => {
                let plan = plan_of(&code).map_err(|error| {
                    let message = format!("This version cannot become a project: {error}");
                    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message)
                        .hint("Export it as one page.")
                })?;
                let name = slug(&title);
                let mut files = project_files(&name);
                files.extend(apiui::project::files(&spec, &plan));
                let bytes = zip::archive(&name, &files);
                Ok(Exported { name: format!("{name}.zip"), content_type: "application/zip", bytes })
            }
        });
        made.await.map_err(|_| ApiError::internal("The export broke off."))?
    }
}

fn page(code: &str, title: &str, react: Option<&'static str>) -> Result<Exported, ApiError> {
    let react = react.ok_or_else(|| {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "This build has no React for a page.")
            .hint("Build the program with `make build`.")
    })?;
    let flows = plan_of(code).map(|plan| plan.schemes).unwrap_or_default();
    let token_urls =
        flows.iter().flat_map(|scheme| &scheme.flows).map(|flow| flow.token_url.clone()).collect();
    let options = PageOptions { title: title.to_owned(), language: "en".to_owned(), token_urls };
    let page = html_page(code, react, &options).map_err(|refusals| {
        let first = refusals.first().map(ToString::to_string).unwrap_or_default();
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", format!("The code was refused: {first}"))
    })?;
    let name = format!("{}.html", slug(title));
    Ok(Exported { name, content_type: "text/html; charset=utf-8", bytes: page.into_bytes() })
}

/// A folder's and package's name.
fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let joined: String = words.collect::<Vec<_>>().join("-").to_ascii_lowercase().chars().take(40).collect();
    format!("{}-ui", if joined.is_empty() { "api" } else { joined.trim_end_matches('-') })
}
