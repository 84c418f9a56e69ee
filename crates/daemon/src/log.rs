//! The daemon's own log: `tracing`, written to standard error, which `up` sends to a file. It is bounded.
//!
//! What happens to sessions is in the events; this is about the daemon itself. `[log] level` sets how much is
//! written, unless `RUST_LOG` is set. At `debug` every decision is logged once, with the rule that decided,
//! within the spans of its session and run; at the usual level those spans do not exist, and nothing is
//! formatted for them.
//!
//! Nothing of a session's command line or variables is ever a field: [`Why::rule`](pinfold_core::Why::rule)
//! is logged, not the sentence. Shims do not log at all: they are small, they outlive the daemon's file, and
//! what they have to say is a report.

use crate::clock::time;
use pinfold_core::visible::visible;
use rustix::fs::{Mode, OFlags};
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, OnceLock};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber, warn};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload::{self, Handle};

/// A file of this size is moved aside; one such file is kept.
const LARGEST: u64 = 1 << 20;

/// The variable for how much is logged, and of what: `debug`, or `warn,pinfold_daemon::engine=trace`.
const VARIABLE: &str = "RUST_LOG";

/// The file that standard error goes to, if it is one of ours.
static FILE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The filter, once there is a log.
static FILTER: OnceLock<Handle<Targets, Registry>> = OnceLock::new();

/// How much is logged if the environment does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl Level {
    /// The words of `config.toml`.
    pub(crate) const WORDS: [(&'static str, Level); 5] = [
        ("error", Level::Error),
        ("warn", Level::Warn),
        ("info", Level::Info),
        ("debug", Level::Debug),
        ("trace", Level::Trace),
    ];

    fn filter(self) -> Targets {
        Targets::new().with_default(match self {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        })
    }
}

/// Starts the log; `file` is where standard error goes, if that is a file of ours.
pub(crate) fn begin(file: Option<PathBuf>) {
    if let Ok(mut own) = FILE.lock() {
        *own = file;
    }
    let (filter, handle) = reload::Layer::new(of_environment().unwrap_or_else(|| Level::default().filter()));
    let lines = tracing_subscriber::fmt::layer()
        .event_format(Line)
        .with_writer(StandardError)
        // A log that cannot be written must not end the daemon, as reporting that would.
        .log_internal_errors(false);
    let log = Registry::default().with(filter).with(lines);
    if tracing::subscriber::set_global_default(log).is_ok() {
        _ = FILTER.set(handle);
    }
    if let Some(words) = std::env::var_os(VARIABLE).filter(|words| !words.is_empty())
        && of_environment().is_none()
    {
        warn!("{VARIABLE} is not understood, and does not count: {}", words.display());
    }
}

/// Applies the level of the configuration, unless the environment sets it.
pub(crate) fn set_level(level: Level) {
    if let Some(handle) = FILTER.get().filter(|_| of_environment().is_none()) {
        _ = handle.reload(level.filter());
    }
}

fn of_environment() -> Option<Targets> {
    let words = std::env::var(VARIABLE).ok().filter(|words| !words.is_empty())?;
    Targets::from_str(&words).ok()
}

/// Formats one event as a line: time, level, message with its fields, and the fields of its spans.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(line, "{} {:<5} ", time(crate::clock::wall()), event.metadata().level())?;
        context.format_fields(line.by_ref(), event)?;
        for span in context.event_scope().into_iter().flat_map(|spans| spans.from_root()) {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                write!(line, " {fields}")?;
            }
        }
        writeln!(line)
    }
}

struct StandardError;

impl<'a> MakeWriter<'a> for StandardError {
    type Writer = StandardError;

    fn make_writer(&'a self) -> StandardError {
        StandardError
    }
}

impl Write for StandardError {
    /// Writes one line; never fails.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let Ok(file) = FILE.lock() else { return Ok(line.len()) };
        // It contains paths and names, and in the foreground this is a person's terminal.
        let text = String::from_utf8_lossy(line);
        _ = writeln!(io::stderr(), "{}", visible(text.trim_end_matches('\n')));
        if let Some(file) = &*file {
            move_aside(file);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn move_aside(file: &PathBuf) {
    let grown =
        rustix::fs::fstat(rustix::stdio::stderr()).is_ok_and(|facts| facts.st_size.unsigned_abs() > LARGEST);
    if !grown || std::fs::rename(file, file.with_extension("log.1")).is_err() {
        return;
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
    if let Ok(new) = rustix::fs::open(file, flags, Mode::RUSR | Mode::WUSR) {
        _ = rustix::stdio::dup2_stderr(&new);
    }
}
