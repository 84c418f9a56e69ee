//! State that survives a restart of the UI, in the home and readable only by its user: the selection, groups,
//! pins, and which turns were looked at.

use super::super::model::{Model, Pane, WatchedScreen};
use super::super::order::Grouping;
use pinfold_daemon::Home;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

fn place(home: &Home) -> PathBuf {
    home.state.join("tui.json")
}

/// Restores the saved state; a file that cannot be read is ignored.
pub(super) fn read(home: &Home, model: &mut Model) {
    let text = std::fs::read(place(home)).unwrap_or_default();
    let Ok(kept) = serde_json::from_slice::<Value>(&text) else { return };
    let words = |name: &str| -> Vec<String> {
        let all = kept[name].as_array().into_iter().flatten();
        all.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let wanted = &mut model.list.wanted;
    wanted.pins = words("pins").into_iter().collect();
    wanted.folded = words("folded").into_iter().collect();
    wanted.archived = kept["archived"].as_bool().unwrap_or(false);
    let grouping = kept["group"].as_str().unwrap_or_default();
    wanted.grouping = Grouping::ALL.into_iter().find(|one| one.word() == grouping).unwrap_or_default();
    let looked = kept["looked"].as_object().into_iter().flatten();
    wanted.looked = looked.filter_map(|(id, count)| Some((id.clone(), count.as_u64()?))).collect();
    model.list.selected = kept["selected"].as_str().map(str::to_owned);
    match kept["pane"].as_str() {
        Some("hidden") => model.pane = Pane::Hidden,
        Some("screen") => model.pane = Pane::Screen(WatchedScreen::default()),
        _ => {}
    }
}

/// Saves the state: a new file replaces the old one, so that a reader sees one of them in full.
pub(super) fn write(home: &Home, model: &Model) -> std::io::Result<()> {
    let wanted = &model.list.wanted;
    let pane = match model.pane {
        Pane::Hidden => "hidden",
        Pane::Detail(_) => "details",
        Pane::Screen(_) => "screen",
    };
    let kept = json!({
        "selected": model.list.selected,
        "group": wanted.grouping.word(),
        "folded": wanted.folded,
        "pins": wanted.pins,
        "archived": wanted.archived,
        "looked": wanted.looked,
        "pane": pane,
    });
    let place = place(home);
    let new = place.with_extension(format!("json.{}", std::process::id()));
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .custom_flags(no_link)
        .open(&new)?;
    file.write_all(kept.to_string().as_bytes())?;
    std::fs::rename(new, place)
}
