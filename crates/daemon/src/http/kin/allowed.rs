//! The options that a run may set, of its own session and of a child. Everything else is refused.

use crate::define::definition::Definition;
use pinfold_api::request::NewSession;
use pinfold_api::{ErrorBody, ErrorKind, units};

/// Whose option a run sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// Its own session's.
    Own,
    /// A child's.
    Child,
}

/// The rule for one option of `set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetRule {
    /// A run may set it of itself and of its children.
    Free,
    /// A run may lower it of itself; a child has at most what its parent has.
    Limit,
    /// A run may set it of its children.
    OfChild,
    /// Only a person may set it.
    OfPerson,
}

/// A row for each of these options: its name, whether it is given, and its rule.
macro_rules! rows {
    ($($field:ident $rule:ident,)+) => { [$((stringify!($field), $field.is_some(), $rule),)+] };
}

/// Each option of a request, whether it is given, and its rule. A new field stops the build here: options that
/// become part of a command line, such as the vendor's own, belong with `command`.
pub(super) fn rules(request: &NewSession) -> [(&'static str, bool, SetRule); 22] {
    use SetRule::{Free, Limit, OfChild, OfPerson};
    let NewSession {
        name: _,
        agent,
        vendor_session,
        new_conversation,
        dir,
        mode,
        memory,
        idle,
        stop_grace,
        budget,
        turn_time,
        pty,
        input,
        turns,
        contended_if,
        parent,
        tags,
        env,
        dir_lock,
        beside,
        force,
        command,
        worktree,
        caller_dir: _,
        caller_env: _,
        caller_umask: _,
    } = request;
    rows! {
        agent OfPerson, vendor_session OfPerson, new_conversation OfPerson,
        dir OfChild, mode OfChild, memory Limit, idle Free, stop_grace Free, budget Limit, turn_time Limit,
        pty OfPerson, input OfPerson, turns OfPerson, contended_if OfPerson, parent OfPerson, tags Free,
        env OfChild, dir_lock OfPerson, beside OfPerson, force OfPerson, command OfPerson, worktree OfPerson,
    }
}

/// Whether a run of an agent may set the options that a request names; [`within`] compares limits.
pub(super) fn may_set(agent: &str, whose: Whose, request: &NewSession) -> Result<(), ErrorBody> {
    let allowed = |rule| match (rule, whose) {
        (SetRule::Free | SetRule::Limit, Whose::Own | Whose::Child) | (SetRule::OfChild, Whose::Child) => {
            true
        }
        (SetRule::OfChild, Whose::Own) | (SetRule::OfPerson, Whose::Own | Whose::Child) => false,
    };
    let refused = rules(request).into_iter().find(|(_, given, rule)| *given && !allowed(*rule));
    let Some((field, ..)) = refused else { return Ok(()) };
    let of = match whose {
        Whose::Own => "its own session",
        Whose::Child => "a child",
    };
    Err(not_permitted(format!("a run may not set `{field}` of {of}")).hint(way_out("set", agent)))
}

/// Whether the limits that a run changes in its own session are lower than before.
pub(super) fn is_lower(agent: &str, wanted: &Definition, before: &Definition) -> Result<(), ErrorBody> {
    let Some((field, wanted, most)) = first_above(wanted, before, None) else { return Ok(()) };
    let message = format!("a run may not raise `{field}` of its own session from {most} to {wanted}");
    Err(not_permitted(message).hint(way_out("set", agent)))
}

/// Whether a child gets at most what its parent has; limits that it had `before` are kept.
pub(super) fn within(
    act: &str,
    wanted: &Definition,
    before: Option<&Definition>,
    parent: &Definition,
) -> Result<(), ErrorBody> {
    let Some((field, wanted, most)) = first_above(wanted, parent, before) else { return Ok(()) };
    let message = format!("a child has at most its parent's `{field}`, {most}: {wanted} is above that");
    Err(not_permitted(message).hint(way_out(act, &parent.agent)))
}

/// The first limit that is above another one and that was not so before: its name, and both in words.
fn first_above(
    wanted: &Definition,
    most: &Definition,
    before: Option<&Definition>,
) -> Option<(&'static str, String, String)> {
    let kept = before.map(limits);
    let each = limits(wanted).into_iter().zip(limits(most)).enumerate();
    let mut above = each.filter(|(at, (wanted, most))| {
        let is_kept = kept.as_ref().is_some_and(|kept| kept[*at].value == wanted.value);
        wanted.is_above(most) && !is_kept
    });
    above.next().map(|(_, (wanted, most))| (wanted.field, wanted.text, most.text))
}

/// What a session may use.
struct Limit {
    field: &'static str,
    /// `None` is no limit.
    value: Option<u128>,
    text: String,
}

impl Limit {
    fn is_above(&self, most: &Limit) -> bool {
        match (self.value, most.value) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(own), Some(most)) => own > most,
        }
    }
}

fn limits(definition: &Definition) -> [Limit; 3] {
    let of = |field, value: Option<u128>, text: Option<String>| {
        let text = text.unwrap_or_else(|| "no limit".to_owned());
        Limit { field, value, text }
    };
    let Definition { budget, turn_time, memory, .. } = definition;
    [
        of("budget", budget.map(|budget| budget.0.into()), budget.map(|budget| units::money_text(budget.0))),
        of(
            "turn_time",
            turn_time.map(|time| time.0.as_millis()),
            turn_time.map(|time| units::duration_text(time.0)),
        ),
        of("memory", memory.map(Into::into), memory.map(units::size_text)),
    ]
}

/// Who may do it, and which word of `may` lets a run of this agent.
pub(super) fn way_out(act: &str, agent: &str) -> String {
    format!("a person may; `may = [\"{act}\"]` under [agents.{agent}] in config.toml lets its runs")
}

fn not_permitted(message: String) -> ErrorBody {
    ErrorBody::new(ErrorKind::NotPermitted, message)
}
