//! The loop: waits for keys, news and signals, asks `update`, does what it says, paints what is different.

use super::super::effect::{Effect, Input};
use super::super::model::{Link, Model};
use super::super::paint::{Depth, Painter};
use super::super::typed::Typing;
use super::super::update::update;
use super::super::view::{Theme, view};
use super::news::{News, Teller};
use super::terminal::{self, Terminal};
use super::{attached, follow, kept, watch, work};
use crate::daemon;
use crate::global::Global;
use crate::output::Failure;
use crate::signals::Signals;
use pinfold_api::word::State;
use pinfold_core::visible::visible;
use pinfold_daemon::Home;
use pinfold_daemon::config::Tui;
use pinfold_kernel::clock::{timespec, wall_ms};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// What the feed tells is painted no more often than this: nobody reads faster.
const PACE: Duration = Duration::from_millis(100);
/// A key that begins as a sequence does is the key Esc where nothing follows within this.
const ESC: Duration = Duration::from_millis(25);
/// Ages are told in minutes.
const MINUTE: Duration = Duration::from_secs(60);
/// What one read takes.
const READ: usize = 64 << 10;

/// Everything that the loop needs beside the model.
pub(super) struct Shell {
    home: Home,
    global: Global,
    tui: Tui,
    teller: Teller,
    terminal: Terminal,
    painter: Painter,
    theme: Theme,
    painted: Instant,
    /// Something is different from what is painted.
    dirty: bool,
    /// Somebody was called who has not looked yet.
    called: bool,
    watched: Option<watch::Watched>,
    followed: Option<follow::Followed>,
    requests: work::Requests,
}

/// Whether the loop goes on.
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
        tui: Tui,
        teller: Teller,
        terminal: Terminal,
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
            requests: work::Requests::new(),
        }
    }

    /// Runs until it is left.
    pub(super) fn run(mut self, model: &mut Model, signals: &Signals, news: &News) -> Result<(), Failure> {
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
                inputs.push(Input::Resized(columns, rows));
            }
            match keys(&mut typing, came) {
                Some(typed) => inputs.extend(typed.into_iter().map(Input::Typed)),
                None => return Ok(()),
            }
            urgent |= !inputs.is_empty();
            if came == Came::Nothing && inputs.is_empty() {
                inputs.push(Input::Tick);
            }
            inputs.extend(news.take());
            let mut theirs = false;
            for input in inputs {
                urgent |= !matches!(input, Input::Feed(_) | Input::Tick);
                // What was typed together with the key that attaches was not for the list.
                if theirs && matches!(input, Input::Typed(_)) {
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

    fn take(&mut self, model: &mut Model, input: Input, signals: &Signals) -> Goes {
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

    /// Does what is to be done; what follows from it.
    fn act(&mut self, model: &mut Model, effect: Effect, signals: &Signals) -> Vec<Effect> {
        match effect {
            Effect::Quit => {}
            Effect::Attach { id } => {
                let name = model.name(&id).to_owned();
                let said = attached::attach(&name, &self.global, &mut self.terminal, signals, model.mouse);
                self.painter.forget();
                let (columns, rows) = terminal::size();
                let mut effects = update(model, Input::Resized(columns, rows), wall_ms());
                effects.extend(update(model, Input::Back(said), wall_ms()));
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

    /// Paints what is different.
    fn paint(&mut self, model: &Model) {
        // What a panic leaves behind can only be seen after one: a build for tests has it on demand.
        assert!(!cfg!(debug_assertions) || std::env::var_os("TEST_PANICS").is_none(), "as the test wants it");
        let bytes = self.painter.paint(view(model, self.theme));
        if !bytes.is_empty() {
            terminal::write(&bytes);
        }
        (self.painted, self.dirty) = (Instant::now(), false);
    }

    /// Waits until something comes, or something that is shown is due.
    fn wait(&self, model: &Model, typing: &Typing, signals: &Signals, news: &News) -> Came {
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
    /// Time is up.
    Nothing,
}

/// Whether something is shown that grows old: runs under way, or a daemon that is away.
fn ages(model: &Model) -> bool {
    let lives = |state: &State| {
        !matches!(state, State::Idle | State::Stopped | State::Failed | State::Archived | State::Damaged)
    };
    matches!(model.link, Link::Away { .. })
        || model.sessions.all.values().any(|known| lives(&known.told.session.state))
}

/// What was typed; nothing when the terminal has gone.
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

/// What calls for a person, in the ways that are wanted.
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
