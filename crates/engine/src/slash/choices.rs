//! Commands that choose something for the chat: its title, how hard the model thinks, whether calls are asked about.
//!
//! Invariant: a choice is a fact of the chat, on the disk before the answer.

use domain::Failure;
use domain::command::SessionSettings;
use domain::event::Fact;

use crate::session::Session;
use crate::turn::start;

/// A title is one line of this many characters at most.
const MAX_TITLE: usize = 100;

pub(super) async fn rename(session: &Session, title: &str) -> Result<String, Failure> {
    let title: String =
        title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_TITLE).collect();
    if title.is_empty() {
        return Err(
            Failure::user("A title is missing.").hint("Write it behind the name: `/rename Parser bugs`.")
        );
    }
    change(session, SessionSettings { title: Some(title.clone()), ..SessionSettings::default() }).await?;
    Ok(format!("This chat is called \"{title}\" now."))
}

/// `/effort`, `/effort high`, `/effort default`.
pub(super) async fn effort(session: &Session, wanted: Option<&str>) -> Result<String, Failure> {
    let info = start::choose_model(session)?.info();
    if info.variants.is_empty() {
        return Ok(format!("{} has no levels of effort to choose from.", info.id));
    }
    let levels = info.variants.join(", ");
    let Some(wanted) = wanted else {
        let now = session.state().settings().variant.clone().filter(|variant| !variant.is_empty());
        let now = now.unwrap_or_else(|| "default".to_owned());
        return Ok(format!(
            "Now: {now}\n\n{} has: {levels}. `/effort high` chooses one, `/effort default` none.",
            info.id
        ));
    };
    let variant = if wanted == "default" { String::new() } else { wanted.to_lowercase() };
    if !variant.is_empty() && !info.variants.contains(&variant) {
        return Err(Failure::user(format!("{} has no effort {wanted}.", info.id))
            .hint(format!("Choose one of these: {levels}, default.")));
    }
    change(session, SessionSettings { variant: Some(variant), ..SessionSettings::default() }).await?;
    Ok(format!("From the next answer on the effort is {wanted}."))
}

/// `/trust`, `/trust on`, `/trust off`.
pub(super) async fn trust(session: &Session, wanted: Option<&str>) -> Result<String, Failure> {
    let trust = match wanted {
        Some("on") => true,
        Some("off") => false,
        Some(_) => return Err(Failure::user("`/trust` takes `on` or `off`.")),
        None => {
            let calls = match session.is_trusted() {
                true => {
                    "The calls of this chat run without questions, except where a rule or a danger asks. `/trust off` ends it."
                }
                false => {
                    "The calls of this chat are asked about as the rules say. `/trust on` lets them run without questions."
                }
            };
            let folder = match session.workspace.is_trusted {
                true => "You have trusted this folder: its own settings take full effect.",
                false => {
                    "You have not trusted this folder: `dragoman trust --show .` says what trust would let in."
                }
            };
            return Ok(format!("{calls}\n\n{folder}"));
        }
    };
    change(session, SessionSettings { trust: Some(trust), ..SessionSettings::default() }).await?;
    Ok(match trust {
        true => "The calls of this chat run without questions from now on. Deny rules hold all the same."
            .to_owned(),
        false => "The calls of this chat are asked about again, as the rules say.".to_owned(),
    })
}

async fn change(session: &Session, change: SessionSettings) -> Result<(), Failure> {
    session.commit(vec![Fact::SessionChanged { change }]).on_disk().await.map(drop)
}
