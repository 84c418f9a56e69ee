//! What is wrong with a definition, in the words of the API, with what to do about it.

use crate::define::bad_definition::BadDefinition;
use crate::define::preset::{COMMAND, Protocol, VendorIdForm, protocol_word};
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::life::CannotStart;

const AGENTS: &str = "`pinfold agents` lists those that are; `command` runs any program";

impl From<BadDefinition> for ErrorBody {
    fn from(bad: BadDefinition) -> Self {
        match bad {
            BadDefinition::UnknownAgent { agent } => {
                config(format!("no agent `{agent}` is known")).hint(AGENTS)
            }
            BadDefinition::NoCommand { agent } => {
                let command = if agent == COMMAND { String::new() } else { format!(" --agent {agent}") };
                usage(format!("a session of agent `{agent}` needs a command"))
                    .hint(format!("pinfold new NAME{command} -- COMMAND..."))
            }
            BadDefinition::CommandTwice { agent } => usage(format!("agent `{agent}` brings its own command"))
                .hint("leave out --agent, or the command"),
            BadDefinition::ProtocolOnTerminal { agent } => {
                usage(format!("agent `{agent}` has a protocol of its own, which no terminal speaks"))
                    .hint("leave out --pty")
            }
            BadDefinition::NotSpoken { agent, protocol } => not_spoken(&agent, protocol),
            BadDefinition::NotFilled { agent, why } => config(format!("agent `{agent}`: {why}")),
            BadDefinition::NoPlaceForPrompt { agent } => no_place_for_prompt(&agent),
            BadDefinition::UnknownMode { word } => {
                usage(format!("mode `{word}` is not known: on-demand, always or once"))
            }
            BadDefinition::UnknownInput { word } => {
                usage(format!("input `{word}` is not known: line or json"))
            }
            BadDefinition::UnknownTurns { word } => {
                usage(format!("turns `{word}` is not known: line or done"))
            }
            BadDefinition::NotPartOfALine { most } => not_part_of_a_line(most),
            BadDefinition::Unit(error) => usage(error.to_string()),
            BadDefinition::TooManyTags { tags, most } => {
                usage(format!("there are {tags} tags, and a session has no more than {most}"))
            }
            BadDefinition::LongTag { bytes, most } => {
                usage(format!("a tag has {bytes} bytes, and no more than {most} are taken"))
            }
            BadDefinition::OddTag { tag } => odd_tag(&tag),
            BadDefinition::LargeEnvironment { bytes, most } => {
                usage(format!("the environment has {bytes} bytes, and a session has no more than {most}"))
                    .hint("put large values into a file, and pass its path")
            }
            BadDefinition::NotAVariable { name } => {
                usage(format!("`{name}` cannot be the name of a variable, or its value cannot be one"))
            }
            BadDefinition::OwnVariable { name } => own_variable(&name),
            BadDefinition::NotAVendorSession { id, form } => not_a_vendor_id(&id, form),
            BadDefinition::NotAWorktree { path } => not_a_worktree(&path),
            BadDefinition::OtherWorktree => other_worktree(),
            BadDefinition::NoBeside => no_beside(),
            BadDefinition::TwoConversations => two_conversations(),
        }
    }
}

/// The refusal to give a session in a conversation of one vendor to another one.
pub(crate) fn other_vendor(name: &str, from: &str, to: &str) -> ErrorBody {
    let message = format!("session `{name}` is in a conversation of `{from}`, which `{to}` cannot continue");
    ErrorBody::new(ErrorKind::Busy, message)
        .hint(format!("`--new-conversation` begins a new one; `--vendor-session ID` continues one of `{to}`"))
}

/// The refusal to move the store of a session that is in a conversation.
pub(crate) fn other_store(name: &str, from: &str, to: &str) -> ErrorBody {
    let message = match from == to {
        true => format!("the agent would not find the conversation of `{name}` with these variables"),
        false => format!("the conversation of `{name}` is in {from}; the agent would not find it in {to}"),
    };
    ErrorBody::new(ErrorKind::Busy, message)
        .hint("`--new-conversation` begins a new one; `--vendor-session ID` continues one that is there")
}

/// What can be done about a session that cannot be started as defined.
pub(crate) fn remedy(cause: &CannotStart, install: Option<&str>) -> String {
    let force = "`--force` creates it all the same, as failed";
    match (cause, install) {
        (CannotStart::ProgramMissing { .. }, Some(install)) => format!("`{install}` installs it; {force}"),
        (_, _) => force.to_owned(),
    }
}

fn not_part_of_a_line(most: usize) -> ErrorBody {
    usage(format!("the text of `--contended-if` is one line of at most {most} bytes"))
}

fn no_beside() -> ErrorBody {
    usage("`--beside` is not available in this version").hint(
        "`--worktree BRANCH` gives the session a directory without a foreign agent; `--no-dir-lock` leaves the directory unlocked",
    )
}

fn two_conversations() -> ErrorBody {
    usage("a session cannot begin a new conversation and continue an existing one")
        .hint("leave out --new-conversation or --vendor-session")
}

fn not_spoken(agent: &str, protocol: Protocol) -> ErrorBody {
    let word = protocol_word(protocol);
    config(format!("agent `{agent}` speaks protocol `{word}`, and this version does not"))
        .hint("an agent of protocol `line` reads messages as lines")
}

fn no_place_for_prompt(agent: &str) -> ErrorBody {
    config(format!("agent `{agent}` runs once for each message, and its command does not say where that goes"))
        .hint(format!("write {{prompt}} where it stands in `command` (and in `resume`), or `prompt = \"stdin\"` in [agents.{agent}.exec]"))
}

fn own_variable(name: &str) -> ErrorBody {
    usage(format!("`{name}` cannot be given: names that begin with PINFOLD_ are pinfold's own"))
        .hint("another name can be given")
}

fn odd_tag(tag: &str) -> ErrorBody {
    usage(format!("tag `{}` contains a control character", tag.escape_debug()))
}

fn not_a_vendor_id(id: &str, form: VendorIdForm) -> ErrorBody {
    usage(format!("`{}` is not the ID of a vendor session of this agent", id.escape_debug()))
        .hint(format!("such an ID is {}", form.described()))
}

fn not_a_worktree(path: &str) -> ErrorBody {
    usage(format!("the record of the worktree `{path}` is not one that pinfold wrote"))
        .hint("`pinfold new --worktree` makes a worktree and its record")
}

fn other_worktree() -> ErrorBody {
    usage("the worktree of a session cannot be changed")
        .hint("`pinfold new --worktree` makes another session with a worktree of its own")
}

fn usage(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorKind::Usage, message)
}

fn config(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorKind::BadConfig, message)
}
