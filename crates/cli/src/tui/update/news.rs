//! Handles news of the feed: updates the sessions, and calls for attention when one begins to wait or fails.

use super::super::effect::Effect;
use super::super::model::{ConnectionState, Model, Pane};
use super::super::need::{PersonNeed, turns};
use super::super::sessions::{KnownSession, SessionsChange, SessionsNews};

/// Handles a piece of news.
pub(super) fn take(model: &mut Model, news: SessionsNews, effects: &mut Vec<Effect>) {
    if let SessionsNews::Away(why) = &news {
        if !matches!(model.link, ConnectionState::Away { .. }) {
            model.link = ConnectionState::Away { since: model.now, why: why.clone() };
        }
    } else {
        model.link = ConnectionState::Up;
    }
    model.sessions.now = model.now;
    match model.sessions.take(news) {
        SessionsChange::Nothing => return,
        SessionsChange::Whole => whole(model),
        SessionsChange::One { id, before } => one(model, &id, before.as_deref(), effects),
    }
    model.arrange();
}

/// After a full snapshot: what happened before the UI first looked counts as looked at, and calls for no attention.
fn whole(model: &mut Model) {
    let looked = &mut model.list.wanted.looked;
    looked.retain(|id, _| model.sessions.all.contains_key(id));
    for (id, known) in &model.sessions.all {
        looked.entry(id.clone()).or_insert_with(|| turns(known));
    }
    refresh(model, None);
}

fn one(model: &mut Model, id: &str, before: Option<&KnownSession>, effects: &mut Vec<Effect>) {
    refresh(model, Some(id));
    let Some(known) = model.sessions.get(id) else { return };
    if let Pane::Screen(screen) = &mut model.pane
        && screen.of.as_deref() == Some(id)
        && before.is_some_and(|before| before.told.session.run != known.told.session.run)
    {
        // Another run has another terminal.
        screen.of = None;
    }
    let looked = model.list.wanted.looked.get(id).copied();
    let need = PersonNeed::of(known, looked);
    let was = before.map(|before| PersonNeed::of(before, looked));
    let begins = was.is_some_and(|was| was != need) && matches!(need, PersonNeed::Asks | PersonNeed::Failed);
    if begins && !model.focused {
        let session = &known.told.session;
        let what = match (&session.request, need) {
            (Some(request), _) => format!("asks: {}", request.title),
            (None, PersonNeed::Failed) => "has failed".to_owned(),
            (None, _) => "waits for you".to_owned(),
        };
        effects.push(Effect::Call(format!("{} {what}", session.name)));
    }
    if looked.is_none() {
        let count = turns(known);
        model.list.wanted.looked.insert(id.to_owned(), count);
    }
}

/// Marks the details of a changed session for another request.
fn refresh(model: &mut Model, id: Option<&str>) {
    if let Pane::Detail(detail) = &mut model.pane
        && (id.is_none() || detail.of.as_deref() == id)
    {
        detail.stale = true;
    }
}
