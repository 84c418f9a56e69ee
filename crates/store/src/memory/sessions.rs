//! Sessions: names are unique among those that are not archived.

use super::contradiction::{Applied, Contradiction};
use super::tables::{SessionRow, Tables};
use crate::commit_error::CommitError;
use crate::rows::{Cursor, Message};
use crate::step::NewSession;
use crate::ulid::SessionId;
use crate::usage::{Spent, Taken};
use pinfold_core::Wall;

pub(super) fn create(
    tables: &mut Tables,
    new: &NewSession,
    core: &str,
    archived_at: Option<Wall>,
) -> Applied {
    if tables.sessions.contains_key(&new.id) {
        return Err(Contradiction::SessionThere(new.id).into());
    }
    if let Some(parent) = new.parent.filter(|parent| !tables.sessions.contains_key(parent)) {
        return Err(Contradiction::NoSession(parent).into());
    }
    if archived_at.is_none() && tables.named(&new.name).is_some() {
        return Err(CommitError::NameTaken { name: new.name.clone() });
    }
    let position = tables.sessions.values().map(|row| row.position).max().unwrap_or(0) + 1;
    let row = SessionRow {
        name: new.name.clone(),
        definition: new.definition.clone(),
        core: core.to_owned(),
        created_at: new.created_at,
        archived_at,
        parent: new.parent,
        position,
    };
    tables.put_session(new.id, Some(row));
    Ok(())
}

pub(super) fn update(tables: &mut Tables, id: SessionId, core: &str, archived_at: Option<Wall>) -> Applied {
    let before = tables.sessions.get(&id).ok_or(CommitError::NoSuchSession { id })?;
    let restored = archived_at.is_none() && before.archived_at.is_some();
    if restored && tables.named(&before.name).is_some() {
        return Err(CommitError::NameTaken { name: before.name.clone() });
    }
    let row = SessionRow { core: core.to_owned(), archived_at, ..before.clone() };
    tables.put_session(id, Some(row));
    Ok(())
}

pub(super) fn define(tables: &mut Tables, id: SessionId, definition: &str) -> Applied {
    let before = tables.sessions.get(&id).ok_or(CommitError::NoSuchSession { id })?;
    let definition = serde_json::from_str(definition).map_err(Contradiction::Definition)?;
    let row = SessionRow { definition, ..before.clone() };
    tables.put_session(id, Some(row));
    Ok(())
}

pub(super) fn rename(tables: &mut Tables, id: SessionId, name: &str) -> Applied {
    let before = tables.sessions.get(&id).ok_or(CommitError::NoSuchSession { id })?;
    let taken = tables.named(name).is_some() && before.name != name;
    if before.archived_at.is_none() && taken {
        return Err(CommitError::NameTaken { name: name.to_owned() });
    }
    let row = SessionRow { name: name.to_owned(), ..before.clone() };
    tables.put_session(id, Some(row));
    Ok(())
}

pub(super) fn fold(tables: &mut Tables, cursor: &Cursor) -> Applied {
    if !tables.sessions.contains_key(&cursor.session) {
        return Err(CommitError::NoSuchSession { id: cursor.session });
    }
    tables.put_cursor(cursor.session, Some(cursor.clone()));
    Ok(())
}

/// Notes what a turn used, with the present name of the session and with its message.
pub(super) fn spent(tables: &mut Tables, spent: &Spent) -> Applied {
    let Some(row) = tables.sessions.get(&spent.session) else {
        return Err(CommitError::NoSuchSession { id: spent.session });
    };
    let name = Some(row.name.clone());
    tables.add_usage(spent.clone(), name);
    let stand = spent.message.and_then(|message| tables.stands.get(&message).copied());
    let message = stand.and_then(|stand| tables.messages.get(&stand).cloned().map(|row| (stand, row)));
    if let Some((stand, message)) = message {
        let before = message.taken.clone().unwrap_or_default();
        let model = spent.model.clone().or(before.model);
        let taken = Some(Taken { figures: before.figures.plus(spent.figures), model });
        tables.put_message(stand, Some(Message { taken, ..message }));
    }
    Ok(())
}

pub(super) fn remove(tables: &mut Tables, id: SessionId) -> Applied {
    if !tables.sessions.contains_key(&id) {
        return Err(CommitError::NoSuchSession { id });
    }
    let stands: Vec<i64> = tables.messages_of(id).map(|(place, _)| place).collect();
    stands.into_iter().for_each(|place| tables.put_message((id, place), None));
    let numbers: Vec<_> = tables.runs_of(id).map(|run| run.number).collect();
    numbers.into_iter().for_each(|number| tables.put_run((id, number), None));
    let spent: Vec<_> = tables.spent.keys().filter(|(session, _)| *session == id).cloned().collect();
    spent.into_iter().for_each(|key| tables.put_spent(key, None));
    let children = tables.sessions.iter().filter(|(_, row)| row.parent == Some(id));
    let children: Vec<_> = children.map(|(child, row)| (*child, row.clone())).collect();
    for (child, row) in children {
        tables.put_session(child, Some(SessionRow { parent: None, ..row }));
    }
    tables.put_cursor(id, None);
    tables.put_session(id, None);
    Ok(())
}
