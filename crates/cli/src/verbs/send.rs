//! `send`: queues a message for a session, and waits for the answer if asked to.

use crate::daemon::{self, Daemon, NextDaemon};
use crate::doing::DaemonVerb;
use crate::global::Global;
use crate::home;
use crate::output::{Failure, Kind, OutputStyle, exit_with_the_reader, output, say, talk};
use clap::{Args, ValueHint};
use pinfold_api::endpoint::{self, Call, ShowMessage};
use pinfold_api::object::Message;
use pinfold_api::request::NewMessage;
use pinfold_api::word::MessageState;
use pinfold_api::{ClientError, ErrorKind, query, units};
use pinfold_core::quoted::quoted;
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest allowed message; reading beyond it only serves to report that.
const LONGEST: u64 = 1 << 20;
/// How long to wait before looking again for a daemon: nothing announces that the next one listens.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// What to send.
#[derive(Debug, Clone, Args)]
pub(crate) struct Send {
    /// Its name, or a unique beginning of its id
    session: String,
    /// What to say; `-` reads it from standard input, and `--` before it lets it begin with anything
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// The same key twice is one message
    #[arg(long, value_name = "K")]
    key: Option<String>,
    /// A file that it is about; must exist now and when it is delivered. May be given several times
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    file: Vec<PathBuf>,
    /// Wait for the answer and print it; give up after DUR (exit 124) [default: no limit]
    #[arg(long, value_name = "DUR", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "not given, given alone, given with a time")]
    wait: Option<Option<String>>,
}

impl Send {
    /// A single text for a session, without options.
    pub(crate) fn of(session: &str, text: &str) -> Send {
        Send { session: session.to_owned(), text: text.to_owned(), key: None, file: Vec::new(), wait: None }
    }

    /// The same, waiting for the answer without a limit.
    pub(crate) fn and_wait(self) -> Send {
        Send { wait: Some(None), ..self }
    }
}

impl DaemonVerb for Send {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let patience = patience(self)?;
        let text = if self.text == "-" { from_stdin()? } else { self.text.clone() };
        let files = self.file.iter().map(|file| path(file)).collect::<Result<_, _>>()?;
        let message = NewMessage { text, key: self.key.clone(), files };
        let call = endpoint::Send::call(&self.session, &query::Patience::default(), &message);
        let sent = daemon.once(|client| client.ask_once(&call))?;
        if let Some(note) = sent.note.as_ref().filter(|_| !daemon.global.quiet) {
            talk(note);
        }
        match patience {
            // Its answer was pruned with it, so there is nothing to wait for.
            Some(_) if sent.message.pruned => return told(&sent.message, &daemon.global),
            Some(patience) => return answered(sent.message, patience, daemon),
            None if daemon.global.json => say(&json!(sent)),
            None => say(&sent.message.id),
        }
        Ok(())
    }
}

/// The absolute path of a file.
fn path(file: &Path) -> Result<String, Failure> {
    let real = std::path::absolute(file).ok().filter(|file| file.exists());
    let missing = || Failure::new(Kind::Usage, format!("file `{}` does not exist", file.display()));
    let odd = || Failure::new(Kind::Usage, format!("`{}` is not a name in UTF-8", file.display()));
    real.ok_or_else(missing)?.into_os_string().into_string().map_err(|_| odd())
}

fn patience(send: &Send) -> Result<Option<Duration>, Failure> {
    let Some(given) = &send.wait else { return Ok(None) };
    let Some(text) = given else { return Ok(Some(Duration::MAX)) };
    let time = units::duration(text).map_err(|error| {
        let hint = "pinfold send SESSION TEXT --wait 30s: the word after --wait is a duration";
        Failure::new(Kind::Usage, error.to_string()).hint(hint)
    });
    time.map(Some)
}

fn from_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    String::from_utf8(bytes).map_err(|_| Failure::new(Kind::Usage, "standard input is not UTF-8"))
}

/// Waits until the message is done or has failed, across the end of any daemon.
fn answered(sent: Message, patience: Duration, daemon: &Daemon) -> Result<(), Failure> {
    let begun = Instant::now();
    // Success would mean that the message is done.
    exit_with_the_reader(1);
    loop {
        let left = patience.saturating_sub(begun.elapsed());
        match wait(&sent, left, &daemon.global) {
            Ok(message) => return told(&message, &daemon.global),
            // The message is durable: the next daemon has it too.
            Err(ClientError::Broken(_) | ClientError::Down { .. }) if !left.is_zero() => {}
            Err(ClientError::Refused(body)) if body.kind == ErrorKind::Unavailable && !left.is_zero() => {}
            Err(ClientError::Refused(body)) if body.kind == ErrorKind::Timeout => {
                return Err(Failure::from(*body).with(json!(latest(&sent, &daemon.global).unwrap_or(sent))));
            }
            // No answer can come: the failure shows what became of the message.
            Err(ClientError::Refused(body)) => {
                return Err(Failure::from(*body).with(json!(latest(&sent, &daemon.global).unwrap_or(sent))));
            }
            Err(error) => return Err(error.into()),
        }
        match daemon.next()? {
            NextDaemon::Up(_) => {}
            NextDaemon::Stopped => await_daemon(&sent, patience.saturating_sub(begun.elapsed()), daemon)?,
        }
    }
}

/// Waits for the daemon after one that was stopped, without starting it.
fn await_daemon(sent: &Message, left: Duration, daemon: &Daemon) -> Result<(), Failure> {
    if !daemon.global.quiet {
        talk(&format!("the daemon was stopped; message {} stays queued until `pinfold up`", sent.id));
    }
    let begun = Instant::now();
    while begun.elapsed() < left {
        if let NextDaemon::Up(_) = daemon.next()? {
            return Ok(());
        }
        std::thread::sleep(LOOK_AGAIN.min(left));
    }
    let text = format!("no answer to message {} in time: the daemon was stopped", sent.id);
    Err(Failure::new(Kind::Timeout, text).hint("`pinfold up` starts it").with(json!(sent)))
}

fn wait(sent: &Message, left: Duration, global: &Global) -> Result<Message, ClientError> {
    // A time too long for a number of milliseconds means forever.
    let left = u64::try_from(left.as_millis()).map_or_else(|_| String::new(), |left| format!("{left}ms"));
    let home = home::home(global).map_err(|_| ClientError::Broken(std::io::ErrorKind::NotFound.into()))?;
    daemon::at(&home).ask(&message(sent, Some(left)))
}

fn latest(sent: &Message, global: &Global) -> Option<Message> {
    daemon::running(global).ok()?.ask(&message(sent, None)).ok()
}

fn message(sent: &Message, wait: Option<String>) -> Call<ShowMessage> {
    ShowMessage::call(&sent.session, &sent.id, &query::Patience { wait })
}

fn told(message: &Message, global: &Global) -> Result<(), Failure> {
    if message.state != MessageState::Done {
        let word = message.failure.as_deref().unwrap_or("unknown").replace('_', " ");
        let why = message.reason.clone().unwrap_or(word);
        let failure = Failure::new(Kind::Failed, format!("message {} has failed: {why}", message.id));
        let hint =
            format!("`pinfold inbox {} --retry {}` tries it again", quoted(&message.session), message.id);
        return Err(failure.hint(hint).with(json!(message)));
    }
    if message.pruned && !global.quiet {
        talk(&format!("message {} was done; [retention] has removed it, with its answer", message.id));
    } else if message.answer.is_none() && !global.quiet {
        let name = &message.session;
        talk(&format!("message {} was delivered; `{name}` gives no answers (`--turns line`)", message.id));
    }
    if message.answer_cut && !global.quiet {
        talk(&format!(
            "the answer is cut: some of message {}'s was too long to be kept, or was lost",
            message.id
        ));
    }
    if global.json {
        say(&json!(message));
    } else if let Some(answer) = &message.answer {
        output(answer, OutputStyle::for_stdout());
    }
    Ok(())
}
