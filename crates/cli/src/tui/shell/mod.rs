//! The thin shell around the model: it waits, reads, paints and performs what `update` returns. Nothing here
//! blocks on the daemon: the feed, every request and every watched terminal have threads of their own.
//!
//! While nothing happens it sleeps without a timeout; while sessions run it wakes once a minute, for their ages.

mod attached;
mod feed;
mod follow;
mod frame;
mod kept;
mod loops;
mod news;
mod terminal;
mod watch;
mod work;

use super::keymap::{BadKeys, Keymap};
use super::model::{Here, Model};
use super::paint::Depth;
use super::view::Theme;
use crate::daemon::{self, Daemon};
use crate::output::{Failure, Kind};
use crate::{home, inside, signals};
use pinfold_daemon::Home;
use pinfold_daemon::config::{self, Colors, TuiSettings};

pub(crate) use frame::frame;

/// Opens the UI, and returns when the user leaves it.
pub(crate) fn open(daemon: &Daemon) -> Result<(), Failure> {
    if !terminal::is_whole() {
        return Err(Failure::new(Kind::Usage, "`tui` needs a terminal for keys and screen")
            .hint("`pinfold ls` lists sessions without one, `pinfold ls -w` as they change"));
    }
    let home = home::home(&daemon.global)?;
    let config = config::load(&home.config).map_err(|error| Failure::from_error(Kind::BadConfig, &error))?;
    let (tui, agents) = (config.tui(), config.presets().map(|(name, _)| name.to_owned()).collect());
    let keymap = Keymap::of(&tui.keys).map_err(|bad| bad_keys(&home, &bad))?;
    daemon.client()?;
    // Before any thread is started, so that all of them leave these signals to us.
    let signals = signals::take().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    let mut model = Model::new(terminal::size(), keymap, here(&home, agents));
    model.mouse = tui.mouse;
    kept::read(&home, &mut model);
    let (news, sender) = news::channel().map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    feed::begin(daemon::at(&home), sender.clone());
    let looks = (depth(tui.colors), theme(&tui));
    let terminal =
        terminal::UiTerminal::enter(tui.mouse).map_err(|error| Failure::from_error(Kind::Failed, &error))?;
    let shell = loops::Shell::new(home, daemon.global.clone(), tui, sender, terminal, looks);
    shell.run(&mut model, &signals, &news)
}

fn here(home: &Home, agents: Vec<String>) -> Here {
    let own = std::env::var("PINFOLD_SESSION").ok().filter(|_| inside::is_inside_of(home));
    let dir = std::env::current_dir().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
    let user = std::env::var("HOME").ok().filter(|home| home.len() > 1 && home.starts_with('/'));
    Here { own, home: user, dir, agents, utc: false }
}

fn bad_keys(home: &Home, bad: &BadKeys) -> Failure {
    let problem = match bad {
        BadKeys::NotAKey { act, key } => {
            format!(
                "[tui.keys] {act}: `{key}` is not a key; they are written as a, A, ctrl-k, alt-enter, f5, space"
            )
        }
        BadKeys::Twice { key, one, other } => {
            format!("[tui.keys]: `{key}` would do two things in one place, {one} and {other}")
        }
    };
    Failure::new(Kind::BadConfig, format!("{}: {problem}", home.config.display()))
}

/// How many colours the terminal has, as far as it says.
fn depth(wanted: Colors) -> Depth {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let term = variable("TERM").unwrap_or_default();
    match wanted {
        Colors::None => Depth::None,
        Colors::Sixteen => Depth::Sixteen,
        Colors::Indexed => Depth::Indexed,
        Colors::True => Depth::True,
        Colors::Auto if variable("NO_COLOR").is_some() || term == "dumb" => Depth::None,
        Colors::Auto => match variable("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => Depth::True,
            _ if term.contains("256color") => Depth::Indexed,
            _ => Depth::Sixteen,
        },
    }
}

/// A light or dark theme, as the configuration or the terminal says; dark by default.
fn theme(tui: &TuiSettings) -> Theme {
    let ground = std::env::var("COLORFGBG").ok().and_then(|both| both.rsplit(';').next()?.parse::<u8>().ok());
    let light = match tui.theme {
        config::ThemeSetting::Light => true,
        config::ThemeSetting::Dark => false,
        config::ThemeSetting::Auto => ground.is_some_and(|ground| ground == 7 || ground == 15),
    };
    Theme { light, rich: matches!(depth(tui.colors), Depth::Indexed | Depth::True) }
}
