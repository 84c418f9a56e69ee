//! Whether a request from a process that is not a person is admitted, depending on its relation to the
//! session it names.

use crate::caller::{Act, By, Caller, CallerKind, CallerLimits, Pass, SessionRelation, permits};
use crate::engine::{EngineView, SessionRef, WhyNot};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::caller::CallerStanding;
use std::sync::Arc;

/// What a request asks for, and of which session.
#[derive(Debug, Clone)]
pub(crate) struct AdmissionRequest {
    pub(crate) act: Act,
    /// The verb, as people know it.
    pub(crate) verb: &'static str,
    /// The session that the request names.
    pub(crate) session: Option<String>,
}

/// Admits a request from a caller that is not a person, or says why not.
pub(super) fn admit(
    view: EngineView<'_>,
    caller: &Arc<Caller>,
    wanted: &AdmissionRequest,
) -> Result<Pass, ErrorBody> {
    let own = owner_of(view, &caller.standing);
    let named = own.map(|own| (own.id(), own.name().to_owned()));
    let by = By::new(Arc::clone(caller), named);
    let Some(kind) = kind(view, &caller.standing, own) else { return Ok(Pass::of(by, None)) };
    let widened = own.is_some_and(|own| view.may(&own.definition().agent).contains(&wanted.act));
    if kind == CallerKind::Run && widened {
        return Ok(Pass::of(by, None));
    }
    let relation = match (&wanted.session, own) {
        (_, None) => SessionRelation::Other,
        (None, Some(_)) => SessionRelation::Itself,
        (Some(name), Some(own)) => relation(own, meant(view, name, wanted.act)?),
    };
    if !permits(wanted.act, kind, relation) {
        let refused = ErrorBody::new(ErrorKind::NotPermitted, refusal(&caller.standing, wanted, kind, own));
        return Err(refused.hint(way_out(wanted.act, kind, own)));
    }
    Ok(Pass::of(by, own.map(|own| kept(view, own, kind))))
}

fn kept(view: EngineView<'_>, own: SessionRef<'_>, kind: CallerKind) -> CallerLimits {
    let children = view.children(own.id()).map(SessionRef::id).collect();
    let parent = own.definition().parent_id;
    CallerLimits { own: own.id(), parent, children, confined: kind == CallerKind::Confined }
}

/// The session whose run a process belongs to: that of the nearest shim of this home above it.
fn owner_of<'a>(view: EngineView<'a>, standing: &CallerStanding) -> Option<SessionRef<'a>> {
    let of_shim = |pid: &u32| view.sessions().find(|known| known.shim_pid() == Some(*pid));
    standing.shims.iter().find_map(of_shim)
}

/// What kind of caller it is; `None` for a person, or for a caller that counts as one by the configuration.
fn kind(view: EngineView<'_>, standing: &CallerStanding, own: Option<SessionRef<'_>>) -> Option<CallerKind> {
    let (agent, name) = own.map_or(("", ""), |own| (own.definition().agent.as_str(), own.name()));
    match (standing.is_confined(), standing.shims.is_empty()) {
        (true, _) if !view.lets_confined(agent, name) => Some(CallerKind::Confined),
        (_, false) => Some(CallerKind::Run),
        (_, true) => None,
    }
}

fn meant<'a>(view: EngineView<'a>, name: &str, act: Act) -> Result<SessionRef<'a>, WhyNot> {
    // The same session that the request itself will find.
    let archived = [Act::Restore, Act::Remove].contains(&act);
    let id = if archived { view.find_archived(name) } else { view.find(name) }?;
    view.session(id).ok_or(WhyNot::Gone)
}

/// Who the caller is, what it may do, and that this is not allowed.
fn refusal(
    standing: &CallerStanding,
    wanted: &AdmissionRequest,
    kind: CallerKind,
    own: Option<SessionRef<'_>>,
) -> String {
    let who = match (kind, own) {
        (CallerKind::Confined, _) => {
            let marks: Vec<String> = standing.confined.iter().map(ToString::to_string).collect();
            format!("you are confined ({})", marks.join(", "))
        }
        (CallerKind::Run, Some(own)) => format!("you are part of a run of session `{}`", own.name()),
        (CallerKind::Run, None) => "you are part of a run that is not of this home".to_owned(),
    };
    let on = wanted.session.as_ref().map(|name| format!(" of `{name}`")).unwrap_or_default();
    if (wanted.act, kind) == (Act::Answer, CallerKind::Run) {
        let rule = "what an agent asks for is for a person to answer: no run answers itself or another one";
        return format!("{who}: `{}`{on} is not allowed ({rule})", wanted.verb);
    }
    let (subject, rule) = match kind {
        CallerKind::Confined => {
            ("a confined process", "may read its own session, and send to it and to its parent")
        }
        CallerKind::Run => (
            "a run",
            "may read and send to itself, its parent and its children, and act on itself and its children",
        ),
    };
    format!("{who}: `{}`{on} is not allowed ({subject} {rule})", wanted.verb)
}

/// What would allow it.
fn way_out(act: Act, kind: CallerKind, own: Option<SessionRef<'_>>) -> String {
    match (kind, own, act.word()) {
        (CallerKind::Run, Some(own), Some(word)) => {
            let agent = &own.definition().agent;
            format!("a person may; `may = [\"{word}\"]` under [agents.{agent}] in config.toml lets its runs")
        }
        (CallerKind::Run, _, _) => "call it outside of any run".to_owned(),
        (CallerKind::Confined, _, _) => {
            "call it outside of the sandbox; `confined = \"allow\"` under [policy] in config.toml lets it"
                .to_owned()
        }
    }
}

fn relation(own: SessionRef<'_>, other: SessionRef<'_>) -> SessionRelation {
    match () {
        () if own.id() == other.id() => SessionRelation::Itself,
        () if own.definition().parent_id == Some(other.id()) => SessionRelation::Parent,
        () if other.definition().parent_id == Some(own.id()) => SessionRelation::Child,
        () => SessionRelation::Other,
    }
}

#[cfg(test)]
mod tests;
