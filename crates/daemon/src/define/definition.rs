//! The definition of a session by its owner: kept as JSON in the store, set by `new`, changed by `set`.

use crate::define::attaching::{self, Defined};
use crate::define::bad_definition::BadDefinition;
use crate::define::bounds::{check_tags, part_of_a_line};
use crate::define::config::Settings;
use crate::define::preset::{
    self, AttachMode, ExecRules, Filling, NotFilled, PROMPT, PromptBy, SOCKET, SessionIds, VendorIdForm,
    VendorTranscript, of_word,
};
pub(crate) use crate::define::preset::{COMMAND, MessageFormat, Preset, Protocol, TurnEndRule};
use crate::define::variables::Variables;
use crate::define::worktree;
use pinfold_api::request::{NewSession, SessionWorktree};
use pinfold_api::units;
use pinfold_core::life::CannotStart;
use pinfold_core::time::millis;
use pinfold_core::usage::Money;
use pinfold_core::{Mode, Policy, Spec};
use pinfold_kernel::program::{self, is_executable};
use pinfold_lock::Resource;
use pinfold_store::SessionId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The definition of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Definition {
    pub(crate) agent: String,
    pub(crate) command: Vec<String>,
    pub(crate) dir: PathBuf,
    pub(crate) dir_lock: bool,
    pub(crate) mode: Mode,
    #[serde(default)]
    pub(crate) memory: Option<u64>,
    #[serde(default)]
    pub(crate) idle: Option<StoredSpan>,
    #[serde(default)]
    pub(crate) stop_grace: Option<StoredSpan>,
    /// What it may spend before a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<Money>,
    /// How long its turns may take in all before a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) turn_time: Option<StoredSpan>,
    #[serde(default)]
    pub(crate) input: MessageFormat,
    #[serde(default)]
    pub(crate) turns: TurnEndRule,
    /// An exit whose last lines have this text is contended, not a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) contended_if: Option<String>,
    /// The protocol of its agent.
    #[serde(default, skip_serializing_if = "is_line")]
    pub(crate) protocol: Protocol,
    /// How its output is read, for protocol `exec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exec: Option<Box<ExecRules>>,
    /// The parameters with which its threads are opened, for protocol `codex`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) thread: BTreeMap<String, String>,
    /// Whether its runs have a terminal.
    #[serde(default)]
    pub(crate) pty: bool,
    /// The vendor's own terminal program, which takes the place of a headless run; empty if there is none.
    #[serde(default)]
    pub(crate) interactive: Vec<String>,
    /// There is one, whose words need the vendor's id, and that has to be learned first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) interactive_when_named: bool,
    /// What `attach` does with it.
    #[serde(default, skip_serializing_if = "attaching::is_takeover")]
    pub(crate) attach: AttachMode,
    #[serde(default)]
    pub(crate) parent: Option<String>,
    /// The parent's id: its name may be another session's one day.
    #[serde(default, with = "as_text")]
    pub(crate) parent_id: Option<SessionId>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) env: Variables,
    #[serde(default)]
    pub(crate) vendor_session: Option<String>,
    /// pinfold chose that id, so nothing was said under it before this session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) vendor_chosen: bool,
    /// How often a person chose another conversation of the vendor.
    #[serde(default, skip_serializing_if = "is_first")]
    pub(crate) conversation: u64,
    /// Where its agent stores its sessions, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<String>,
    /// The umask of the caller that created it; without one, the daemon's own.
    #[serde(default)]
    pub(crate) umask: Option<u32>,
    /// The git worktree that was made for it; `rm --worktree` compares it with what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<Box<SessionWorktree>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_first(conversation: &u64) -> bool {
    *conversation == 0
}

fn is_line(protocol: &Protocol) -> bool {
    *protocol == Protocol::Line
}

/// An id as text.
mod as_text {
    use pinfold_store::SessionId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[expect(clippy::ref_option, reason = "serde wants it so")]
    pub(super) fn serialize<S: Serializer>(id: &Option<SessionId>, to: S) -> Result<S::Ok, S::Error> {
        id.map(|id| id.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<SessionId>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// A duration as whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoredSpan(#[serde(with = "millis")] pub(crate) Duration);

/// Checks that a preset and a request fit together.
pub(crate) fn fits(request: &NewSession, agent: &str, preset: Option<&Preset>) -> Result<(), BadDefinition> {
    let named = request.command.as_ref().is_some_and(|command| !command.is_empty());
    let agent = agent.to_owned();
    match preset {
        None if agent != COMMAND => Err(BadDefinition::UnknownAgent { agent }),
        None if !named => Err(BadDefinition::NoCommand { agent }),
        Some(preset) if !named && preset.command.is_none() => Err(BadDefinition::NoCommand { agent }),
        Some(preset) if named && preset.command.is_some() => Err(BadDefinition::CommandTwice { agent }),
        Some(Preset { protocol, .. }) if *protocol != Protocol::Line && request.pty == Some(true) => {
            Err(BadDefinition::ProtocolOnTerminal { agent })
        }
        Some(Preset { protocol, .. }) if !preset::is_spoken(*protocol) => {
            Err(BadDefinition::NotSpoken { agent, protocol: *protocol })
        }
        Some(preset) if !preset.has_place_for_prompt() => Err(BadDefinition::NoPlaceForPrompt { agent }),
        Some(_) | None => Ok(()),
    }
}

impl Definition {
    /// Reads the request for a new session; the caller's directory and variables fill in for what is not
    /// given. `preset` is that of the agent; agent `command` has none.
    pub(crate) fn new(request: &NewSession, preset: Option<&Preset>) -> Result<Definition, BadDefinition> {
        let agent = request.agent.clone().unwrap_or_else(|| COMMAND.into());
        let chat = agent != COMMAND;
        fits(request, &agent, preset)?;
        let caller = request.caller_dir.as_deref().unwrap_or("/");
        let mut definition = Definition {
            agent,
            command: Vec::new(),
            dir: PathBuf::from(request.dir.as_deref().unwrap_or(caller)),
            dir_lock: request.dir.is_some() || chat,
            mode: if chat { Mode::OnDemand } else { Mode::Always },
            memory: None,
            idle: None,
            stop_grace: None,
            budget: None,
            turn_time: None,
            input: MessageFormat::default(),
            turns: TurnEndRule::default(),
            contended_if: None,
            protocol: Protocol::default(),
            exec: None,
            thread: BTreeMap::new(),
            pty: false,
            interactive: Vec::new(),
            interactive_when_named: false,
            attach: AttachMode::Takeover,
            parent: None,
            parent_id: None,
            tags: Vec::new(),
            env: Variables::of_caller(request.caller_env.clone().unwrap_or_default()),
            vendor_session: None,
            vendor_chosen: false,
            conversation: 0,
            store: None,
            umask: request.caller_umask,
            worktree: request.worktree.clone().map(worktree::checked).transpose()?.map(Box::new),
        };
        definition.take_from(preset);
        definition.change(request)?;
        if let Some(preset) = preset {
            definition.check_vendor_session(preset)?;
            definition.choose_vendor_session(preset);
            definition.fill_first(preset)?;
        }
        Ok(definition)
    }

    /// Checks that its vendor session has an id that the vendor of this preset makes.
    pub(crate) fn check_vendor_session(&self, preset: &Preset) -> Result<(), BadDefinition> {
        self.vendor_session.as_deref().map_or(Ok(()), |id| vendor_id(id, preset.vendor_id))
    }

    /// Takes from the preset of its agent how that one is talked to; agent `command` has none.
    pub(crate) fn take_from(&mut self, preset: Option<&Preset>) {
        self.input = preset.map(|preset| preset.input).unwrap_or_default();
        self.turns = preset.map(|preset| preset.turns).unwrap_or_default();
        self.protocol = preset.map(|preset| preset.protocol).unwrap_or_default();
        let exec = preset.filter(|preset| preset.protocol == Protocol::Exec);
        self.exec = exec.map(|preset| Box::new(preset.exec.clone()));
        self.thread = preset.map(|preset| preset.thread.clone()).unwrap_or_default();
        self.pty = preset.is_some_and(|preset| preset.pty);
    }

    /// Chooses the id of its vendor session, if the agent leaves that to its caller and nobody has named one.
    pub(crate) fn choose_vendor_session(&mut self, preset: &Preset) {
        if preset.session == SessionIds::Choose && self.vendor_session.is_none() {
            self.vendor_session = Some(preset::chosen(crate::clock::dice()));
            self.vendor_chosen = true;
        }
    }

    /// Fills in the commands of a preset; the error says what is missing.
    pub(crate) fn fill_first(&mut self, preset: &Preset) -> Result<(), BadDefinition> {
        let agent = self.agent.clone();
        self.fill(preset, None).map_err(|why| BadDefinition::NotFilled { agent, why })
    }

    /// Fills in the commands of a preset for this directory and vendor session; `transcript` says whether the
    /// vendor has a file of it, if that was checked.
    pub(crate) fn fill(
        &mut self,
        preset: &Preset,
        transcript: Option<VendorTranscript>,
    ) -> Result<(), NotFilled> {
        let dir = self.dir.display().to_string();
        // The message and the socket's path become known when a run starts.
        // A record of an earlier version can have an id that is no argument: it is not continued.
        let vendor_session = self.vendor_session.as_deref().filter(|id| preset.vendor_id.accepts(id));
        let prompt = Some(PROMPT);
        let filling = Filling { dir: &dir, vendor_session, prompt, socket: SOCKET };
        let (command, interactive) = match transcript {
            Some(transcript) => {
                (preset.headless_on(filling, transcript), preset.interactive_on(filling, transcript))
            }
            None => (preset.headless(filling), preset.interactive(filling)),
        };
        // If the preset has no command, the session has named its own.
        if preset.command.is_some() || self.command.is_empty() {
            self.command = command?;
        }
        // Without a vendor session there is nothing for its terminal program to continue.
        self.interactive = interactive.and_then(Result::ok).unwrap_or_default();
        self.interactive_when_named = preset.interactive.is_some() && self.interactive.is_empty();
        self.attach = if preset.interactive.is_some() { preset.attach } else { AttachMode::Takeover };
        Ok(())
    }

    /// A copy with the commands for a vendor session that exists, or does not exist yet.
    pub(crate) fn on(&self, preset: &Preset, transcript: VendorTranscript) -> Definition {
        let mut on = self.clone();
        // What could be filled in before can be filled in again.
        _ = on.fill(preset, Some(transcript));
        on
    }

    /// Whether its headless runs have a tape; protocol `line` needs none, since the shim itself knows it.
    pub(crate) fn has_tape(&self) -> bool {
        self.protocol != Protocol::Line && !self.pty
    }

    /// Whether its command line contains the message that a run is for.
    pub(crate) fn is_told_by_argument(&self) -> bool {
        self.exec.as_ref().is_some_and(|exec| exec.prompt == PromptBy::Argv)
    }

    /// A copy that continues another conversation of its vendor, or begins one.
    pub(crate) fn resuming(&self, vendor_session: Option<&str>, preset: Option<&Preset>) -> Definition {
        let mut resuming = Definition { vendor_session: vendor_session.map(str::to_owned), ..self.clone() };
        if let Some(preset) = preset {
            // What could be filled in before can be filled in with another id.
            _ = resuming.fill(preset, None);
        }
        resuming
    }

    /// The lock on the vendor's own session, if that is known.
    pub(crate) fn vendor_lock(&self) -> Option<Resource> {
        let id = self.vendor_session.as_ref()?;
        // Every agent stores its sessions somewhere below the home of the user that runs it.
        let store = self.store.as_deref().or_else(|| self.env.get("HOME")).unwrap_or("default");
        Resource::parse(format!("vendor:{}:{store}:{id}", self.agent).as_ref()).ok()
    }

    /// Applies the fields a request names and leaves the rest.
    pub(crate) fn change(&mut self, request: &NewSession) -> Result<(), BadDefinition> {
        if request.beside == Some(true) {
            return Err(BadDefinition::NoBeside);
        }
        if request.new_conversation == Some(true) && request.vendor_session.is_some() {
            return Err(BadDefinition::TwoConversations);
        }
        self.pty = request.pty.unwrap_or(self.pty);
        if let Some(command) = request.command.clone().filter(|command| !command.is_empty()) {
            self.command = command;
        }
        if let Some(dir) = &request.dir {
            self.dir = PathBuf::from(dir);
            self.dir_lock = true;
        }
        if let Some(mode) = &request.mode {
            self.mode = parse_mode(mode)?;
        }
        self.change_limits(request)?;
        self.change_protocol(request)?;
        check_tags(request)?;
        worktree::unchanged(self.worktree.as_deref(), request.worktree.as_ref())?;
        self.parent = request.parent.clone().or(self.parent.take());
        self.tags = request.tags.clone().unwrap_or(std::mem::take(&mut self.tags));
        if let Some(id) = &request.vendor_session {
            vendor_id(id, VendorIdForm::Word)?;
            self.vendor_session = Some(id.clone());
            self.vendor_chosen = false;
        }
        self.env.give(names_checked(request.env.clone().unwrap_or_default())?);
        if request.env.is_some() || request.caller_env.is_some() {
            check_environment(&self.env)?;
        }
        self.dir_lock = request.dir_lock.unwrap_or(self.dir_lock);
        Ok(())
    }

    fn change_limits(&mut self, request: &NewSession) -> Result<(), BadDefinition> {
        let span = |text: &String| units::duration(text).map(StoredSpan).map_err(BadDefinition::Unit);
        if let Some(memory) = &request.memory {
            self.memory = Some(units::size(memory).map_err(BadDefinition::Unit)?).filter(|n| *n > 0);
        }
        if let Some(idle) = &request.idle {
            self.idle = Some(span(idle)?);
        }
        if let Some(grace) = &request.stop_grace {
            self.stop_grace = Some(span(grace)?);
        }
        if let Some(budget) = &request.budget {
            let budget = units::money(budget).map_err(BadDefinition::Unit)?;
            self.budget = Some(Money(budget)).filter(|budget| budget.0 > 0);
        }
        if let Some(time) = &request.turn_time {
            self.turn_time = Some(span(time)?).filter(|time| time.0 > Duration::ZERO);
        }
        Ok(())
    }

    fn change_protocol(&mut self, request: &NewSession) -> Result<(), BadDefinition> {
        if let Some(word) = &request.input {
            let unknown = || BadDefinition::UnknownInput { word: word.clone() };
            self.input = of_word(&preset::INPUTS, word).ok_or_else(unknown)?;
        }
        if let Some(word) = &request.turns {
            let unknown = || BadDefinition::UnknownTurns { word: word.clone() };
            self.turns = of_word(&preset::TURNS, word).ok_or_else(unknown)?;
        }
        if let Some(text) = &request.contended_if {
            self.contended_if = part_of_a_line(text)?;
        }
        Ok(())
    }

    /// What the core must know of it: its own numbers, then those of the configuration.
    pub(crate) fn spec(&self, settings: &Settings) -> Spec {
        let policy = Policy {
            idle_after: self.idle.map_or(settings.policy.idle_after, |span| span.0),
            stop_grace: self.stop_grace.map_or(settings.policy.stop_grace, |span| span.0),
            ..settings.policy.clone()
        };
        let (attach, protocol, pty) = (self.attach, self.protocol, self.pty);
        let defined = Defined { attach, protocol, pty, words_known: !self.interactive.is_empty() };
        Spec {
            mode: self.mode,
            policy,
            memory_limit: self.memory,
            interactive: !self.interactive.is_empty(),
            interactive_when_named: self.interactive_when_named,
            attach: defined.attaching(),
            budget: self.budget,
            turn_time: self.turn_time.map(|time| u64::try_from(time.0.as_millis()).unwrap_or(u64::MAX)),
            run_per_message: self.protocol == Protocol::Exec,
            setup: self.setup(),
            conversation: self.conversation,
        }
    }

    /// Resolves the directory, without symbolic links and `..`, and finds the program.
    pub(crate) fn settle(&mut self, preset: Option<&Preset>) -> Result<(), CannotStart> {
        self.dir = real_directory(&self.dir).inspect_err(|_| self.dir = real_so_far(&self.dir))?;
        if let Some(preset) = preset {
            // It was filled before: only the directory's path has changed.
            _ = self.fill(preset, self.transcript(preset).and_then(|sought| sought.look().ok()));
            self.store = self.store_of(preset).map(|store| real(&store).display().to_string());
        }
        let program = self.command.first().map_or("", String::as_str);
        find_program(program, self.path(), &self.dir)
    }
}

impl Definition {
    /// Checks that its terminal program exists, before a run is ended for it.
    pub(crate) fn find_interactive(&self) -> Result<(), CannotStart> {
        let program = self.interactive.first().map_or("", String::as_str);
        find_program(program, self.path(), &self.dir)
    }
}

impl Definition {
    /// Where its programs are looked for: where its runs will look too.
    pub(super) fn path(&self) -> &str {
        self.env.get("PATH").unwrap_or(pinfold_shim::USUAL_PATH)
    }
}

/// The canonical path of a folder.
fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| real_so_far(folder))
}

/// The path of a missing directory, with the existing part of it resolved.
fn real_so_far(dir: &Path) -> PathBuf {
    let there = dir.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    match there.map(|(above, real)| (dir.strip_prefix(above), real)) {
        Some((Ok(rest), real)) => real.join(rest),
        Some((Err(_), _)) | None => dir.to_owned(),
    }
}

/// The directory without symbolic links and `..`, if a run can start there.
fn real_directory(dir: &Path) -> Result<PathBuf, CannotStart> {
    let directory = dir.display().to_string();
    let real = match dir.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(CannotStart::DirectoryClosed { directory });
        }
        Err(_) => return Err(CannotStart::DirectoryMissing { directory }),
    };
    if !real.is_dir() {
        return Err(CannotStart::DirectoryMissing { directory });
    }
    match rustix::fs::access(&real, rustix::fs::Access::EXEC_OK) {
        Ok(()) => Ok(real),
        Err(_) => Err(CannotStart::DirectoryClosed { directory }),
    }
}

/// The files that a program name can mean for a run in this directory.
pub(super) fn places<'a>(
    program: &'a str,
    path: &'a str,
    dir: &'a Path,
) -> impl Iterator<Item = PathBuf> + 'a {
    program::places(program.as_ref(), path.as_ref()).map(|place| dir.join(place))
}

/// Looks for a program as exec would; the error says why it cannot be used.
fn find_program(name: &str, path: &str, dir: &Path) -> Result<(), CannotStart> {
    let missing = CannotStart::ProgramMissing { program: name.to_owned() };
    if name.contains('/') {
        let file = dir.join(name);
        return match (file.is_file(), is_executable(&file)) {
            (true, true) => Ok(()),
            (true, false) => Err(CannotStart::NotExecutable { program: name.to_owned() }),
            (false, _) => Err(missing),
        };
    }
    if places(name, path, dir).any(|file| is_executable(&file)) { Ok(()) } else { Err(missing) }
}

/// The limit for all variables together: the environment of a run is kept in memory and stored with every
/// change of its session.
const LARGEST_ENVIRONMENT: usize = 256 << 10;

pub(crate) fn check_environment(env: &Variables) -> Result<(), BadDefinition> {
    let bytes: usize = env.all().iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    if bytes > LARGEST_ENVIRONMENT {
        return Err(BadDefinition::LargeEnvironment { bytes, most: LARGEST_ENVIRONMENT });
    }
    Ok(())
}

/// Refuses invalid variables and those that only pinfold sets: agents and verbs inside a run rely on them.
pub(crate) fn names_checked(
    given: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, BadDefinition> {
    for (name, value) in &given {
        if name.is_empty() || name.contains('=') || name.chars().any(char::is_control) || value.contains('\0')
        {
            return Err(BadDefinition::NotAVariable { name: name.clone() });
        }
        if name.starts_with("PINFOLD_") {
            return Err(BadDefinition::OwnVariable { name: name.clone() });
        }
    }
    Ok(given)
}

fn parse_mode(word: &str) -> Result<Mode, BadDefinition> {
    Mode::of_word(word).ok_or_else(|| BadDefinition::UnknownMode { word: word.to_owned() })
}

/// Checks the id of a vendor session, which becomes an argument of a command.
fn vendor_id(id: &str, form: VendorIdForm) -> Result<(), BadDefinition> {
    match form.accepts(id) {
        true => Ok(()),
        false => Err(BadDefinition::NotAVendorSession { id: id.to_owned(), form }),
    }
}

#[cfg(test)]
mod tests;
