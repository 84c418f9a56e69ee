//! One frame as text, without a terminal: for scripts, pictures and screen readers.

use super::super::effect::{Effect, UiInput, UiRequest};
use super::super::keymap::Keymap;
use super::super::model::{ConnectionState, Model};
use super::super::sessions::read;
use super::super::update::update;
use super::super::view::{Theme, text, view};
use super::{here, work};
use crate::daemon::Daemon;
use crate::home;
use crate::output::{Failure, Kind};
use pinfold_api::{endpoint, query};
use pinfold_kernel::clock::wall_ms;

/// The lines that the UI would show first on a terminal of this many columns and rows.
pub(crate) fn frame(daemon: &Daemon, size: (u16, u16)) -> Result<Vec<String>, Failure> {
    let home = home::home(&daemon.global)?;
    let client = daemon.client()?;
    let keymap = Keymap::of(&std::collections::BTreeMap::new());
    let keymap = keymap.map_err(|_| Failure::new(Kind::Failed, "the table of keys is not valid"))?;
    let mut model = Model::new(size, keymap, here(&home, Vec::new()));
    let mut kind = String::new();
    let mut effects = Vec::new();
    let lines = client.patient_lines(&endpoint::Feed::call(&query::Feed::default()))?;
    for line in lines {
        let line = line.map_err(|error| Failure::from_error(Kind::Unavailable, &error))?;
        if let Some(event) = line.strip_prefix("event:") {
            event.trim().clone_into(&mut kind);
        } else if let Some(news) = line.strip_prefix("data:").and_then(|data| read(&kind, data.trim())) {
            effects.extend(update(&mut model, UiInput::Feed(news), wall_ms()));
        }
        if model.link == ConnectionState::Up && model.sessions.revision.is_some() {
            break;
        }
    }
    for effect in effects {
        if let Effect::Ask(request @ UiRequest::Detail { .. }) = effect {
            let answer = work::answer(&client, &daemon.global, request);
            update(&mut model, UiInput::Answered(answer), wall_ms());
        }
    }
    Ok(text(&view(&model, Theme { light: false, rich: false })))
}
