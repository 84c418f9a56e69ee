//! What one request is let through with: whose it is, and what of the engine it may see and touch.

use super::rule::{Act, Kind, Relation, permits};
use super::{By, Caller};
use crate::engine::Engine;
use crate::engine::session::Tracked;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::caller::Standing;
use pinfold_store::SessionId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A request that was let through.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pass {
    /// Who asks; nothing in what the daemon does by itself.
    pub(crate) by: Option<Arc<By>>,
    /// What it is kept to; nothing for a person.
    kept: Option<Arc<Kept>>,
}

/// What a run is kept to.
#[derive(Debug)]
struct Kept {
    own: SessionId,
    parent: Option<SessionId>,
    children: BTreeSet<SessionId>,
    confined: bool,
}

impl Pass {
    /// That of a person.
    pub(crate) fn of_person(caller: Arc<Caller>) -> Pass {
        Pass { by: Some(Arc::new(By::new(caller, None))), kept: None }
    }

    /// Whether a session may be shown in a list.
    pub(crate) fn shows(&self, id: SessionId) -> bool {
        self.kept.as_ref().is_none_or(|kept| match kept.confined {
            true => kept.own == id,
            false => kept.touches(id) || kept.parent == Some(id),
        })
    }

    /// Whether it may be acted on by what takes many.
    pub(crate) fn touches(&self, id: SessionId) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.touches(id))
    }

    /// The session that it acts for, where it is kept to that.
    pub(crate) fn own(&self) -> Option<SessionId> {
        self.kept.as_ref().map(|kept| kept.own)
    }

    /// Whether it is kept to anything.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }
}

impl Kept {
    fn touches(&self, id: SessionId) -> bool {
        self.own == id || self.children.contains(&id)
    }
}

/// What a request wants of whom.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) act: Act,
    /// The verb, for people.
    pub(crate) verb: &'static str,
    /// The session that it names.
    pub(crate) session: Option<String>,
}

impl Engine {
    /// Lets a request of somebody through who is not a person, or says why not.
    pub(crate) fn admit(&self, caller: &Arc<Caller>, wanted: &Wanted) -> Result<Pass, ErrorBody> {
        let own = self.owner_of(&caller.standing);
        let named = own.map(|own| (own.id, own.name.clone()));
        let by = Some(Arc::new(By::new(Arc::clone(caller), named)));
        let Some(kind) = self.kind(&caller.standing, own) else { return Ok(Pass { by, kept: None }) };
        let widened = own.is_some_and(|own| self.may(&own.definition.agent).contains(&wanted.act));
        if kind == Kind::Run && widened {
            return Ok(Pass { by, kept: None });
        }
        let relation = match (&wanted.session, own) {
            (_, None) => Relation::Other,
            (None, Some(_)) => Relation::Itself,
            (Some(name), Some(own)) => relation(own, self.meant(name, wanted.act)?),
        };
        if !permits(wanted.act, kind, relation) {
            let refused =
                ErrorBody::new(ErrorKind::NotPermitted, refusal(&caller.standing, wanted, kind, own));
            return Err(refused.hint(way_out(wanted.act, kind, own)));
        }
        Ok(Pass { by, kept: own.map(|own| Arc::new(self.kept(own, kind))) })
    }

    fn kept(&self, own: &Tracked, kind: Kind) -> Kept {
        let children = self.children(own.id).map(|child| child.id).collect();
        Kept { own: own.id, parent: own.definition.parent_id, children, confined: kind == Kind::Confined }
    }

    /// The session whose run a process belongs to: that of the nearest shim of this home above it.
    fn owner_of(&self, standing: &Standing) -> Option<&Tracked> {
        let of_shim = |pid: &u32| {
            let is_its = |tracked: &&Tracked| tracked.shim.as_ref().is_some_and(|shim| shim.pid == *pid);
            self.sessions.values().map(Box::as_ref).find(is_its)
        };
        standing.shims.iter().find_map(of_shim)
    }

    /// What kind of caller it is; nothing for a person, or who counts as one by the configuration.
    fn kind(&self, standing: &Standing, own: Option<&Tracked>) -> Option<Kind> {
        let (agent, name) = own.map_or(("", ""), |own| (own.definition.agent.as_str(), own.name.as_str()));
        match (standing.is_confined(), standing.shims.is_empty()) {
            (true, _) if !self.lets_confined(agent, name) => Some(Kind::Confined),
            (_, false) => Some(Kind::Run),
            (_, true) => None,
        }
    }

    fn meant(&self, name: &str, act: Act) -> Result<&Tracked, ErrorBody> {
        // The same one that the request itself will find.
        let archived = [Act::Restore, Act::Remove].contains(&act);
        let id = if archived { self.find_archived(name) } else { self.find(name) }?;
        self.sessions.get(&id).map(Box::as_ref).ok_or_else(crate::engine::gone)
    }
}

/// Who the caller is, what it may, and that this is not it.
fn refusal(standing: &Standing, wanted: &Wanted, kind: Kind, own: Option<&Tracked>) -> String {
    let who = match (kind, own) {
        (Kind::Confined, _) => {
            let marks: Vec<String> = standing.confined.iter().map(ToString::to_string).collect();
            format!("you are confined ({})", marks.join(", "))
        }
        (Kind::Run, Some(own)) => format!("you are part of a run of session `{}`", own.name),
        (Kind::Run, None) => "you are part of a run that is not of this home".to_owned(),
    };
    let (subject, rule) = match kind {
        Kind::Confined => {
            ("a confined process", "may read its own session, and send to it and to its parent")
        }
        Kind::Run => (
            "a run",
            "may read and send to itself, its parent and its children, and act on itself and its children",
        ),
    };
    let on = wanted.session.as_ref().map(|name| format!(" of `{name}`")).unwrap_or_default();
    format!("{who}: `{}`{on} is not allowed ({subject} {rule})", wanted.verb)
}

/// What would allow it.
fn way_out(act: Act, kind: Kind, own: Option<&Tracked>) -> String {
    match (kind, own, act.word()) {
        (Kind::Run, Some(own), Some(word)) => {
            let agent = &own.definition.agent;
            format!("a person may; `may = [\"{word}\"]` under [agents.{agent}] in config.toml lets its runs")
        }
        (Kind::Run, _, _) => "call it outside of any run".to_owned(),
        (Kind::Confined, _, _) => {
            "call it outside of the sandbox; `confined = \"allow\"` under [policy] in config.toml lets it"
                .to_owned()
        }
    }
}

fn relation(own: &Tracked, other: &Tracked) -> Relation {
    match () {
        () if own.id == other.id => Relation::Itself,
        () if own.definition.parent_id == Some(other.id) => Relation::Parent,
        () if other.definition.parent_id == Some(own.id) => Relation::Child,
        () => Relation::Other,
    }
}
