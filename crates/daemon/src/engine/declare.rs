//! Several sessions created, changed and archived at once: all of it becomes durable in one transaction, or
//! none of it.

use super::declaration::{Declaration, DeclaredChange, DeclaredNew, NotDeclared, Outline, VariablesChange};
use super::{Engine, WhyNot};
use crate::caller::By;
use crate::crash;
use crate::define::definition::Definition;
use crate::engine::command::EngineCommand;
use crate::engine::input::{Committer, Create, Define, LoopInput};
use crate::engine::sessions::no_folder;
use pinfold_core::event::Ask;
use pinfold_core::{Event, State};
use pinfold_store::{Batch, Facts, Outcome, SessionId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A session, which may not exist yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    /// The new session at this place of the request.
    New(usize),
    There(SessionId),
}

/// The parents that a declaration names, as they were found.
#[derive(Debug, Default)]
pub(super) struct Parents {
    of_new: Vec<Option<Member>>,
    of_changed: BTreeMap<SessionId, Member>,
}

/// Batches of several sessions that are committed as one.
#[derive(Default)]
pub(super) struct CommonBatch {
    batch: Batch,
    of: Vec<Option<Committer>>,
}

impl CommonBatch {
    pub(super) fn add(&mut self, of: Option<Committer>, batch: Batch) {
        self.batch.append(batch);
        self.of.push(of);
    }
}

impl Engine {
    /// Checks a declaration, makes the folders of its new sessions one by one, checks it again, and commits.
    pub(super) fn declare(&mut self, mut declaration: Box<Declaration>) {
        if let Some(error) = declaration.not_made.take() {
            return self.not_declared(*declaration, no_folder(&error).into());
        }
        let (made, new) = (declaration.folders.len(), declaration.creates.len());
        let checked = match made == 0 || made == new {
            true => self.check_outline(&declaration.outline()),
            false => Ok(Parents::default()),
        };
        match checked {
            Err(no) => self.not_declared(*declaration, no),
            Ok(_) if made < new => self.make_next_folder(declaration),
            Ok(parents) => self.declare_together(*declaration, &parents),
        }
    }

    fn make_next_folder(&mut self, mut declaration: Box<Declaration>) {
        let id = SessionId(self.new_id());
        let handle = self.handle.clone();
        let told = move |made| {
            match made {
                Ok(()) => declaration.folders.push(id),
                Err(error) => declaration.not_made = Some(error),
            }
            handle.command(EngineCommand::Declare(declaration));
        };
        self.ports.files.make_session(self.home.session(id), Box::new(told));
    }

    fn not_declared(&self, declaration: Declaration, no: NotDeclared) {
        let new = declaration.creates.iter().map(|new| &new.definition);
        let changed = declaration.changes.iter().filter(|change| change.given == VariablesChange::Changed);
        new.chain(changed.map(|change| &change.definition))
            .for_each(|definition| self.forget_given(definition));
        declaration.folders.iter().for_each(|id| self.ports.files.remove_empty(self.home.session(*id)));
        _ = declaration.reply.send(Err(no));
    }

    /// Checks what depends on other sessions, and finds the parents.
    pub(super) fn check_outline(&self, outline: &Outline) -> Result<Parents, NotDeclared> {
        self.can_record()?;
        self.has_place_for(outline.creates.len())?;
        let mut new = BTreeMap::new();
        for (at, (name, _)) in outline.creates.iter().enumerate() {
            self.is_free(name).map_err(NotDeclared::of(name))?;
            if new.insert(name.as_str(), at).is_some() {
                return Err(NotDeclared::of(name)(WhyNot::Exists { name: name.clone() }));
            }
        }
        for (id, name, _) in &outline.changes {
            let known = self.sessions.get(id).filter(|known| known.session.state() != State::Archived);
            known.ok_or(WhyNot::Gone).map_err(NotDeclared::of(name))?;
        }
        self.parents_in(outline, &new)
    }

    fn parents_in(&self, outline: &Outline, new: &BTreeMap<&str, usize>) -> Result<Parents, NotDeclared> {
        let mut parents = Parents::default();
        for (name, parent) in &outline.creates {
            let found = parent.as_ref().map(|parent| self.member(outline, new, parent)).transpose();
            parents.of_new.push(found.map_err(NotDeclared::of(name))?);
        }
        for (id, name, parent) in &outline.changes {
            let Some(parent) = parent else { continue };
            let found = self.member(outline, new, parent).map_err(NotDeclared::of(name))?;
            parents.of_changed.insert(*id, found);
        }
        let all = outline.creates.iter().enumerate();
        let all = all.map(|(at, (name, parent))| (Member::New(at), name, parent));
        let changed = outline.changes.iter().map(|(id, name, parent)| (Member::There(*id), name, parent));
        for (member, name, parent) in all.chain(changed) {
            let Some(wanted) = parent.clone() else { continue };
            if self.line_above(&parents, member).any(|above| above == member) {
                return Err(NotDeclared::of(name)(WhyNot::ParentBelow { wanted }));
            }
        }
        Ok(parents)
    }

    fn member(&self, outline: &Outline, new: &BTreeMap<&str, usize>, wanted: &str) -> Result<Member, WhyNot> {
        if let Some(at) = new.get(wanted) {
            return Ok(Member::New(*at));
        }
        let id = self.find(wanted).map_err(|why| WhyNot::NoParent(Box::new(why)))?;
        match outline.archives.contains(&id) {
            true => Err(WhyNot::ParentPruned { wanted: wanted.to_owned() }),
            false => Ok(Member::There(id)),
        }
    }

    /// The ancestors as they are going to be. Bounded by the number of sessions, whatever a record says.
    fn line_above<'a>(&'a self, parents: &'a Parents, of: Member) -> impl Iterator<Item = Member> + 'a {
        let above = move |member: &Member| match member {
            Member::New(at) => parents.of_new.get(*at).copied().flatten(),
            Member::There(id) => {
                let stored = || self.sessions.get(id)?.definition.parent_id.map(Member::There);
                parents.of_changed.get(id).copied().or_else(stored)
            }
        };
        std::iter::successors(above(&of), above).take(self.sessions.len() + parents.of_new.len())
    }

    /// Creates the new sessions, parents first: a record may only name a parent that exists.
    fn create_all(
        &mut self,
        creates: Vec<DeclaredNew>,
        ids: &[SessionId],
        parents: &Parents,
        by: Option<&Arc<By>>,
    ) {
        let mut ordered: Vec<(usize, usize, DeclaredNew)> = Vec::new();
        for (at, new) in creates.into_iter().enumerate() {
            ordered.push((self.line_above(parents, Member::New(at)).count(), at, new));
        }
        ordered.sort_by_key(|(depth, at, _)| (*depth, *at));
        for (_, at, DeclaredNew { name, mut definition, broken, .. }) in ordered {
            let Some(id) = ids.get(at) else { continue };
            if let Some(parent) = parents.of_new.get(at).copied().flatten() {
                self.give_parent(&mut definition, parent, ids);
            }
            let (text, reply) = (name.as_str().to_owned(), oneshot::channel().0);
            self.store_new(*id, text, Create { name, definition, broken, by: by.cloned(), reply });
        }
    }

    /// Names a parent, which exists by now, in a definition.
    fn give_parent(&self, definition: &mut Definition, parent: Member, new: &[SessionId]) {
        let id = match parent {
            Member::New(at) => new.get(at).copied(),
            Member::There(id) => Some(id),
        };
        let named = id.and_then(|id| Some((self.sessions.get(&id)?.name.clone(), id)));
        (definition.parent, definition.parent_id) = named.unzip();
    }

    fn declare_together(&mut self, declaration: Declaration, parents: &Parents) {
        crash::point("declare.folders");
        let Declaration { creates, changes, archives, by, reply, folders, .. } = declaration;
        // Only new sessions can be taken back: a change waits until the disk takes it.
        let impatient = changes.is_empty() && archives.is_empty();
        self.together.replace(Some(CommonBatch::default()));
        self.create_all(creates, &folders, parents, by.as_ref());
        for DeclaredChange { id, mut definition, given, .. } in changes {
            if let Some(parent) = parents.of_changed.get(&id) {
                self.give_parent(&mut definition, *parent, &folders);
            }
            self.define(id, Define { base: None, definition, given, by: by.clone() }, oneshot::channel().0);
        }
        for id in archives {
            let facts = Facts { by: by.as_ref().map(|by| by.words()), ..Facts::default() };
            self.happened(id, &Event::Asked(Ask::Archive), &facts, None);
        }
        let Some(CommonBatch { mut batch, of }) = self.together.take() else { return };
        batch.impatient &= impatient;
        crash::point("declare.gathered");
        let handle = self.handle.clone();
        let told = move |outcome: Outcome| {
            crash::point("declare.committed");
            // Each session hears of its part before the client hears of the whole.
            for of in of {
                handle.tell(LoopInput::Committed { of, outcome: outcome.clone() });
            }
            _ = reply.send(outcome.map(|_| folders).map_err(|error| {
                let problem = crate::error_chain::chain(&error);
                handle.refusal().unwrap_or(WhyNot::NothingRecorded { problem }).into()
            }));
        };
        self.ports.journal.commit(batch, None, Box::new(told));
    }
}
