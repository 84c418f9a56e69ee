//! The error for data that did not reach stdout, for example because the disk is full.

use crate::output::{Failure, Kind};
use crate::verbs::Verb;
use std::io;

/// The error of a verb that succeeded but could not print its data. It shows what was done all the same, so
/// that nobody repeats it.
pub(crate) fn failure(verb: Option<&Verb>, error: &io::Error) -> Failure {
    let lost = |done: &str| Failure::new(Kind::Failed, format!("{done}stdout cannot be written: {error}"));
    match verb.map_or(Effect::None, effect) {
        Effect::None => lost(""),
        Effect::Created => {
            lost("the session was created, but ").hint("do not create it again: `pinfold ls` shows it")
        }
        Effect::Queued => lost("the message was queued, but ")
            .hint("do not send it again: `pinfold inbox SESSION` shows it"),
        Effect::Done => lost("the command succeeded, but "),
    }
}

/// What a verb leaves behind, apart from its output.
enum Effect {
    /// Nothing: the output is all there is.
    None,
    /// A session.
    Created,
    /// A message.
    Queued,
    /// Something else.
    Done,
}

fn effect(verb: &Verb) -> Effect {
    match verb {
        Verb::New(_) => Effect::Created,
        Verb::Send(_) => Effect::Queued,
        Verb::Status(_)
        | Verb::Ls(_)
        | Verb::Show(_)
        | Verb::Tree(_)
        | Verb::Tui(_)
        | Verb::Why(_)
        | Verb::Search(_)
        | Verb::Inbox(_)
        | Verb::Logs(_)
        | Verb::Events(_)
        | Verb::Export(_)
        | Verb::Wait(_)
        | Verb::Accounts(_)
        | Verb::Agents(_)
        | Verb::Locks(_)
        | Verb::Usage(_)
        | Verb::Metrics(_)
        | Verb::Who(_)
        | Verb::Completions(_)
        | Verb::Complete(_)
        | Verb::Man(_)
        | Verb::Help(_)
        | Verb::Version(_) => Effect::None,
        Verb::Up(_)
        | Verb::Down(_)
        | Verb::Demo(_)
        | Verb::Run(_)
        | Verb::Set(_)
        | Verb::Attach(_)
        | Verb::Interrupt(_)
        | Verb::Answer(_)
        | Verb::Start(_)
        | Verb::Stop(_)
        | Verb::Restart(_)
        | Verb::Archive(_)
        | Verb::Restore(_)
        | Verb::Purge(_)
        | Verb::Rm(_)
        | Verb::Apply(_)
        | Verb::Reload(_)
        | Verb::Service(_)
        | Verb::Rename(_)
        | Verb::Backup(_)
        | Verb::RestoreBackup(_)
        | Verb::Lock(_)
        | Verb::Unlock(_) => Effect::Done,
    }
}
