//! The loop: waits for keys, news and signals, calls `update`, performs its effects and paints what has changed.

use super::super::effect::{Effect, UiInput};
use super::super::model::{ConnectionState, Model};
use super::super::paint::{Depth, Painter};
use super::super::typed::Typing;
use super::super::update::update;
use super::super::view::{Theme, view};
use super::news::{NewsReceiver, Teller};
use super::terminal::{self, UiTerminal};
use super::{attached, follow, kept, watch, work};
use crate::daemon;
use crate::global::Global;
use crate::output::Failure;
use crate::signals::Signals;
use pinfold_api::word::State;
use pinfold_core::visible::visible;
use pinfold_daemon::Home;
use pinfold_daemon::config::TuiSettings;
use pinfold_kernel::clock::{timespec, wall_ms};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// The shortest time between two paints for news of the feed: more often would not be readable.
const PACE: Duration = Duration::from_millis(100);
/// An escape byte with nothing after it within this time is the Esc key.
const ESC: Duration = Duration::from_millis(25);
/// Ages are shown in minutes.
const MINUTE: Duration = Duration::from_secs(60);
/// Bytes per read.
const READ: usize = 64 << 10;

/// Everything the loop needs besides the model.
pub(super) struct Shell {
    home: Home,
    global: Global,
    tui: TuiSettings,
    teller: Teller,
    terminal: UiTerminal,
    painter: Painter,
    theme: Theme,
    painted: Instant,
    /// The model differs from what is painted.
    dirty: bool,
    /// The user was called and has not looked yet.
    called: bool,
    watched: Option<watch::TerminalWatch>,
    followed: Option<follow::Followed>,
    requests: work::RequestsUnderWay,
}

/// Whether the loop continues.
#[derive(PartialEq, Eq)]
enum Goes {
    On,
    /// Somebody was attached meanwhile.
    Back,
    Over,
}

impl Shell {
    pub(super) fn new(
        home: Home,
        global: Global,
        tui: TuiSettings,
        teller: Teller,
        terminal: UiTerminal,
        (depth, theme): (Depth, Theme),
    ) -> Shell {
        let (painter, painted) = (Painter::new(depth), Instant::now());
        let (watched, followed, called) = (None, None, false);
        Shell {
            home,
            global,
            tui,
            teller,
            terminal,
            painter,
            theme,
            painted,
            dirty: true,
            called,
            watched,
            followed,
            requests: work::RequestsUnderWay::new(),
        }
    }

    /// Runs until the user leaves.
    pub(super) fn run(
        mut self,
        model: &mut Model,
        signals: &Signals,
        news: &NewsReceiver,
    ) -> Result<(), Failure> {
        let mut typing = Typing::default();
        model.now = wall_ms();
        self.paint(model);
        loop {
            let came = self.wait(model, &typing, signals, news);
            let (mut inputs, mut urgent) = (Vec::new(), false);
            if signals.end_asked() {
                _ = kept::write(&self.home, model);
                self.leave();
                return Ok(());
            }
            if signals.resized() {
                let (columns, rows) = terminal::size();
                inputs.push(UiInput::Resized(columns, rows));
            }
            match keys(&mut typing, came) {
                Some(typed) => inputs.extend(typed.into_iter().map(UiInput::Typed)),
                None => return Ok(()),
            }
            urgent |= !inputs.is_empty();
            if came == Came::Nothing && inputs.is_empty() {
                inputs.push(UiInput::Tick);
            }
            inputs.extend(news.take());
            let mut theirs = false;
            for input in inputs {
                urgent |= !matches!(input, UiInput::Feed(_) | UiInput::Tick);
                // What was typed together with the key that attaches was not for the list.
                if theirs && matches!(input, UiInput::Typed(_)) {
                    continue;
                }
                match self.take(model, input, signals) {
                    Goes::On => {}
                    Goes::Back => (theirs, typing) = (true, Typing::default()),
                    Goes::Over => {
                        self.leave();
                        return Ok(());
                    }
                }
            }
            self.dirty = true;
            if urgent || self.painted.elapsed() >= PACE {
                self.paint(model);
            }
        }
    }

    /// Gives the terminal back, and waits for what was still to be done.
    fn leave(self) {
        drop(self.terminal);
        self.requests.finish();
    }

    fn take(&mut self, model: &mut Model, input: UiInput, signals: &Signals) -> Goes {
        let (mut effects, mut goes) = (update(model, input, wall_ms()), Goes::On);
        while !effects.is_empty() {
            let mut further = Vec::new();
            for effect in effects {
                if effect == Effect::Quit {
                    return Goes::Over;
                }
                if matches!(effect, Effect::Attach { .. }) {
                    goes = Goes::Back;
                }
                further.extend(self.act(model, effect, signals));
            }
            effects = further;
        }
        goes
    }

    /// Performs an effect; returns the effects that follow from it.
    fn act(&mut self, model: &mut Model, effect: Effect, signals: &Signals) -> Vec<Effect> {
        match effect {
            Effect::Quit => {}
            Effect::Attach { id } => {
                let name = model.name(&id).to_owned();
                let said = attached::attach(&name, &self.global, &mut self.terminal, signals, model.mouse);
                self.painter.forget();
                let (columns, rows) = terminal::size();
                let mut effects = update(model, UiInput::Resized(columns, rows), wall_ms());
                effects.extend(update(model, UiInput::Back(said), wall_ms()));
                return effects;
            }
            Effect::Ask(request) => {
                let client = daemon::at(&self.home);
                self.requests.begin(client, self.global.clone(), request, self.teller.clone());
            }
            Effect::Watch(watch) => {
                self.watched = None;
                self.watched =
                    watch.map(|watch| watch::begin(daemon::at(&self.home), watch, self.teller.clone()));
            }
            Effect::Follow(id) => {
                self.followed = None;
                self.followed = id.map(|id| follow::begin(daemon::at(&self.home), id, self.teller.clone()));
            }
            Effect::Keep => _ = kept::write(&self.home, model),
            Effect::Call(text) => {
                self.called = true;
                terminal::write(&call(&self.tui.notify, &text));
            }
            Effect::Calm => {
                if std::mem::take(&mut self.called) && self.tui.notify.iter().any(|how| how == "title") {
                    terminal::write(b"\x1b]2;pinfold\x1b\\");
                }
            }
            Effect::Mouse(wanted) => self.terminal.mouse(wanted),
            Effect::Redraw => self.painter.forget(),
        }
        Vec::new()
    }

    /// Paints what has changed.
    fn paint(&mut self, model: &Model) {
        // The clean-up after a panic can only be tested with a panic, so debug builds have one on demand.
        assert!(!cfg!(debug_assertions) || std::env::var_os("TEST_PANICS").is_none(), "as the test wants it");
        let bytes = self.painter.paint(view(model, self.theme));
        if !bytes.is_empty() {
            terminal::write(&bytes);
        }
        (self.painted, self.dirty) = (Instant::now(), false);
    }

    /// Waits until something arrives, or until something shown is due to change.
    fn wait(&self, model: &Model, typing: &Typing, signals: &Signals, news: &NewsReceiver) -> Came {
        let stdin = rustix::stdio::stdin();
        let mut fds = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(&news.woken, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
        ];
        let timeout = self.timeout(model, typing).map(timespec);
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(0) => Came::Nothing,
            Ok(_) if !fds[0].revents().is_empty() => Came::Keys,
            Ok(_) | Err(Errno::INTR) => Came::Other,
            Err(_) => Came::Keys,
        }
    }

    fn timeout(&self, model: &Model, typing: &Typing) -> Option<Duration> {
        let esc = typing.hangs().then_some(ESC);
        let painting = self.dirty.then(|| PACE.saturating_sub(self.painted.elapsed()));
        let ages = ages(model).then(|| MINUTE.saturating_sub(self.painted.elapsed()).max(PACE));
        [esc, painting, ages].into_iter().flatten().min()
    }
}

/// What woke the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Keys,
    Other,
    /// The timeout.
    Nothing,
}

/// Whether anything shown grows old: live runs, or an absent daemon.
fn ages(model: &Model) -> bool {
    let lives = |state: &State| {
        !matches!(state, State::Idle | State::Stopped | State::Failed | State::Archived | State::Damaged)
    };
    matches!(model.link, ConnectionState::Away { .. })
        || model.sessions.all.values().any(|known| lives(&known.told.session.state))
}

/// What was typed; `None` when the terminal has gone.
fn keys(typing: &mut Typing, came: Came) -> Option<Vec<super::super::typed::Typed>> {
    if came == Came::Nothing && typing.hangs() {
        return Some(typing.settle());
    }
    if came != Came::Keys {
        return Some(Vec::new());
    }
    let mut bytes = vec![0; READ];
    match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
        Ok(0) => None,
        Ok(count) => Some(typing.take(&bytes[..count])),
        Err(Errno::INTR | Errno::AGAIN) => Some(Vec::new()),
        Err(_) => None,
    }
}

/// The bytes that call for attention, in the configured ways.
fn call(notify: &[String], text: &str) -> Vec<u8> {
    let text = visible(text);
    let mut out = String::new();
    for how in notify {
        match how.as_str() {
            "bell" => out.push('\x07'),
            "title" => out.push_str(&format!("\x1b]2;{text}\x1b\\")),
            "osc9" => out.push_str(&format!("\x1b]9;{text}\x1b\\")),
            "osc777" => out.push_str(&format!("\x1b]777;notify;pinfold;{}\x1b\\", text.replace(';', ","))),
            "osc99" => out.push_str(&format!("\x1b]99;;{text}\x1b\\")),
            _ => {}
        }
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_made_in_the_ways_that_are_wanted_and_its_text_is_no_sequence() {
        let all: Vec<String> = pinfold_daemon::config::NOTIFY.iter().map(|how| (*how).to_owned()).collect();
        let text = String::from_utf8(call(&all, "api asks: rm; \x1b]2;x\x07")).unwrap();
        assert_eq!(text.matches("\x1b]").count(), 4, "{text:?}");
        assert!(text.starts_with('\x07') && text.contains("]777;notify;pinfold;api asks: rm, "), "{text:?}");
        assert!(call(&[], "x").is_empty());
    }
}
