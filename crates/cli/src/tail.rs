//! `logs -f`: follows the output of one or more sessions, across the death of any daemon.

use crate::daemon::{Daemon, NextDaemon};
use crate::log_printer::LogPrinter;
use crate::output::{Failure, exit_with_the_reader, has_lost, say};
use pinfold_api::object::LogLine;
use pinfold_api::{Client, ClientError, endpoint, query};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// How long to wait before looking again for a daemon that has gone: nothing announces that the next one listens.
const LOOK_AGAIN: Duration = Duration::from_millis(300);
/// The number of last lines used to find where the output goes on: a single line may occur many times.
const KNOWN_BY: usize = 8;

/// A line of a session, by its index, or why none will follow.
type News = (usize, Result<LogLine, Failure>);

/// Prints lines as they arrive, until this process ends or there is nothing left to follow.
pub(crate) fn follow(
    sessions: &[String],
    which: &query::Logs,
    daemon: &Daemon,
    printed: &dyn Fn(&str) -> LogPrinter,
) -> Result<(), Failure> {
    let (sender, news) = channel::<News>();
    let client = daemon.client()?;
    exit_with_the_reader(0);
    for (at, session) in sessions.iter().enumerate() {
        let one = One { at, session: session.clone(), which: which.clone(), seen: VecDeque::new() };
        let (client, daemon, sender) = (client.clone(), daemon.clone(), sender.clone());
        std::thread::spawn(move || one.follow(client, &daemon, &sender));
    }
    drop(sender);
    let mut out: Vec<LogPrinter> = sessions.iter().map(|session| printed(session)).collect();
    let (mut first, mut failed) = (None, 0);
    for (at, news) in news {
        match news {
            Ok(line) if daemon.global.json => say(&object(&line, &sessions[at], sessions.len())),
            Ok(line) => out[at].print(&line),
            // The others are still followed; the user should hear of this one now, not after they end.
            Err(failure) if sessions.len() > 1 => {
                failure.tell(&daemon.global);
                first.get_or_insert(failure.once_told());
                failed += 1;
            }
            Err(failure) => return Err(failure),
        }
        if has_lost() {
            return first.map_or(Ok(()), Err);
        }
    }
    if failed < sessions.len() {
        daemon.tell_stopped();
    }
    first.map_or(Ok(()), Err)
}

fn object(line: &LogLine, session: &str, sessions: usize) -> Value {
    let mut object = json!(line);
    if sessions > 1 {
        object["session"] = json!(session);
    }
    object
}

/// One followed session.
struct One {
    at: usize,
    session: String,
    which: query::Logs,
    /// The last lines passed on.
    seen: VecDeque<LogLine>,
}

impl One {
    fn follow(mut self, mut client: Client, daemon: &Daemon, sender: &Sender<News>) {
        let mut again = false;
        loop {
            match self.pass_on(&client, again, sender) {
                Ok(()) => {}
                Err(Over::Failed(failure)) => {
                    _ = sender.send((self.at, Err(*failure)));
                    return;
                }
                Err(Over::Nobody) => return,
            }
            std::thread::sleep(LOOK_AGAIN);
            again = true;
            match daemon.next() {
                Ok(NextDaemon::Up(next)) => client = next,
                Ok(NextDaemon::Stopped) => return,
                // None may be started from here, or it cannot start now: another one may come.
                Err(_) => {}
            }
        }
    }

    /// Passes lines on for as long as this daemon lives. With a later daemon, continues after the known lines.
    fn pass_on(&mut self, client: &Client, again: bool, sender: &Sender<News>) -> Result<(), Over> {
        let known = if again { self.known(client)? } else { 0 };
        let all = query::Logs { n: Some(usize::MAX), since_ms: None, ..self.which.clone() };
        let which = if again { all } else { self.which.clone() };
        let lines = match client.lines(&endpoint::Logs::call(&self.session, &which)) {
            Ok(lines) => lines,
            Err(ClientError::Down { .. } | ClientError::Broken(_)) => return Ok(()),
            Err(error) => return Err(Over::Failed(Box::new(error.into()))),
        };
        for line in lines.skip(known) {
            let line = match line.map_err(ClientError::from) {
                Ok(line) => line,
                // The daemon is alive but mute, so no other one will come.
                Err(mute @ ClientError::Mute(_)) => return Err(Over::Failed(Box::new(mute.into()))),
                Err(_) => return Ok(()),
            };
            if let Ok(line) = serde_json::from_str(&line) {
                self.tell(line, sender)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, line: LogLine, sender: &Sender<News>) -> Result<(), Over> {
        self.seen.push_back(line.clone());
        if self.seen.len() > KNOWN_BY {
            self.seen.pop_front();
        }
        sender.send((self.at, Ok(line))).map_err(|_| Over::Nobody)
    }

    /// How many of all lines were already passed on; those printed while there was no daemon come after them.
    fn known(&self, client: &Client) -> Result<usize, Over> {
        let all = query::Logs { n: Some(usize::MAX), since_ms: None, follow: false, ..self.which.clone() };
        let lines = match client.lines(&endpoint::Logs::call(&self.session, &all)) {
            Ok(lines) => lines,
            Err(ClientError::Refused(body)) => return Err(Over::Failed(Box::new((*body).into()))),
            Err(_) => return Ok(0),
        };
        let lines: Vec<LogLine> =
            lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()).collect();
        let seen: Vec<LogLine> = self.seen.iter().cloned().collect();
        Ok(lines.len() - after(&lines, &seen).len())
    }
}

/// Why a session is no longer followed.
enum Over {
    Failed(Box<Failure>),
    /// The receiver has gone.
    Nobody,
}

/// The lines after the last occurrence of the longest possible tail of `known`.
fn after<'a>(lines: &'a [LogLine], known: &[LogLine]) -> &'a [LogLine] {
    for first in 0..known.len() {
        let end = &known[first..];
        let place = lines.windows(end.len()).rposition(|window| window == end);
        if let Some(place) = place {
            return &lines[place + end.len()..];
        }
    }
    // None of them is left: lines no newer than the last known one were either seen or dropped together with it.
    let since = known.last().map_or("", |line| line.at.as_str());
    &lines[lines.partition_point(|line| line.at.as_str() <= since)..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_api::word::Stream;

    fn lines(texts: &str) -> Vec<LogLine> {
        let line = |(at, text): (usize, char)| LogLine {
            at: format!("2026-11-15T18:00:{at:02}.000Z"),
            run: "r".into(),
            stream: Stream::Stdout,
            text: text.to_string(),
        };
        texts.chars().enumerate().map(line).collect()
    }

    #[test]
    fn output_goes_on_after_what_is_known() {
        let all = lines("abcabd");
        assert_eq!(after(&all, &all[1..4]), &all[4..]);
        assert_eq!(after(&all, &all[4..]), &all[6..]);
        assert_eq!(after(&all, &[]), &all[..]);
        assert_eq!(after(&all[3..], &all[1..4]), &all[4..], "the first lines were dropped");
        assert_eq!(after(&all[5..], &all[1..4]), &all[5..], "all of what was known was dropped");
    }
}
