//! Whether a request of a process that is not a person is let through, by what it is to the session that it names.

use crate::caller::{Act, By, Caller, Kept, Kind, Pass, Relation, permits};
use crate::engine::{Known, View, WhyNot};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::caller::CallerStanding;
use std::sync::Arc;

/// What a request wants of whom.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) act: Act,
    /// The verb, for people.
    pub(crate) verb: &'static str,
    /// The session that it names.
    pub(crate) session: Option<String>,
}

/// Lets a request of a caller through who is not a person, or says why not.
pub(super) fn admit(view: View<'_>, caller: &Arc<Caller>, wanted: &Wanted) -> Result<Pass, ErrorBody> {
    let own = owner_of(view, &caller.standing);
    let named = own.map(|own| (own.id(), own.name().to_owned()));
    let by = By::new(Arc::clone(caller), named);
    let Some(kind) = kind(view, &caller.standing, own) else { return Ok(Pass::of(by, None)) };
    let widened = own.is_some_and(|own| view.may(&own.definition().agent).contains(&wanted.act));
    if kind == Kind::Run && widened {
        return Ok(Pass::of(by, None));
    }
    let relation = match (&wanted.session, own) {
        (_, None) => Relation::Other,
        (None, Some(_)) => Relation::Itself,
        (Some(name), Some(own)) => relation(own, meant(view, name, wanted.act)?),
    };
    if !permits(wanted.act, kind, relation) {
        let refused = ErrorBody::new(ErrorKind::NotPermitted, refusal(&caller.standing, wanted, kind, own));
        return Err(refused.hint(way_out(wanted.act, kind, own)));
    }
    Ok(Pass::of(by, own.map(|own| kept(view, own, kind))))
}

fn kept(view: View<'_>, own: Known<'_>, kind: Kind) -> Kept {
    let children = view.children(own.id()).map(Known::id).collect();
    let parent = own.definition().parent_id;
    Kept { own: own.id(), parent, children, confined: kind == Kind::Confined }
}

/// The session whose run a process belongs to: that of the nearest shim of this home above it.
fn owner_of<'a>(view: View<'a>, standing: &CallerStanding) -> Option<Known<'a>> {
    let of_shim = |pid: &u32| view.sessions().find(|known| known.shim_pid() == Some(*pid));
    standing.shims.iter().find_map(of_shim)
}

/// What kind of caller it is; nothing for a person, or who counts as one by the configuration.
fn kind(view: View<'_>, standing: &CallerStanding, own: Option<Known<'_>>) -> Option<Kind> {
    let (agent, name) = own.map_or(("", ""), |own| (own.definition().agent.as_str(), own.name()));
    match (standing.is_confined(), standing.shims.is_empty()) {
        (true, _) if !view.lets_confined(agent, name) => Some(Kind::Confined),
        (_, false) => Some(Kind::Run),
        (_, true) => None,
    }
}

fn meant<'a>(view: View<'a>, name: &str, act: Act) -> Result<Known<'a>, WhyNot> {
    // The same one that the request itself will find.
    let archived = [Act::Restore, Act::Remove].contains(&act);
    let id = if archived { view.find_archived(name) } else { view.find(name) }?;
    view.session(id).ok_or(WhyNot::Gone)
}

/// Who the caller is, what it may, and that this is not it.
fn refusal(standing: &CallerStanding, wanted: &Wanted, kind: Kind, own: Option<Known<'_>>) -> String {
    let who = match (kind, own) {
        (Kind::Confined, _) => {
            let marks: Vec<String> = standing.confined.iter().map(ToString::to_string).collect();
            format!("you are confined ({})", marks.join(", "))
        }
        (Kind::Run, Some(own)) => format!("you are part of a run of session `{}`", own.name()),
        (Kind::Run, None) => "you are part of a run that is not of this home".to_owned(),
    };
    let on = wanted.session.as_ref().map(|name| format!(" of `{name}`")).unwrap_or_default();
    if (wanted.act, kind) == (Act::Answer, Kind::Run) {
        let rule = "what an agent asks for is for a person to answer: no run answers itself or another one";
        return format!("{who}: `{}`{on} is not allowed ({rule})", wanted.verb);
    }
    let (subject, rule) = match kind {
        Kind::Confined => {
            ("a confined process", "may read its own session, and send to it and to its parent")
        }
        Kind::Run => (
            "a run",
            "may read and send to itself, its parent and its children, and act on itself and its children",
        ),
    };
    format!("{who}: `{}`{on} is not allowed ({subject} {rule})", wanted.verb)
}

/// What would allow it.
fn way_out(act: Act, kind: Kind, own: Option<Known<'_>>) -> String {
    match (kind, own, act.word()) {
        (Kind::Run, Some(own), Some(word)) => {
            let agent = &own.definition().agent;
            format!("a person may; `may = [\"{word}\"]` under [agents.{agent}] in config.toml lets its runs")
        }
        (Kind::Run, _, _) => "call it outside of any run".to_owned(),
        (Kind::Confined, _, _) => {
            "call it outside of the sandbox; `confined = \"allow\"` under [policy] in config.toml lets it"
                .to_owned()
        }
    }
}

fn relation(own: Known<'_>, other: Known<'_>) -> Relation {
    match () {
        () if own.id() == other.id() => Relation::Itself,
        () if own.definition().parent_id == Some(other.id()) => Relation::Parent,
        () if other.definition().parent_id == Some(own.id()) => Relation::Child,
        () => Relation::Other,
    }
}

#[cfg(test)]
mod tests;
