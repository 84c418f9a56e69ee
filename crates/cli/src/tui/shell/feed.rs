//! Reads the feed in its own thread. When the daemon has gone, it looks for the next one and resumes the feed.

use super::super::effect::UiInput;
use super::super::sessions::{SessionsNews, read as news};
use super::news::Teller;
use pinfold_api::{Client, endpoint, query};
use std::time::Duration;

/// How often to look for a daemon that has gone: nothing announces that the next one listens.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Starts the thread.
pub(super) fn begin(client: Client, teller: Teller) {
    std::thread::spawn(move || {
        let mut since = None;
        loop {
            let why = match client.patient_lines(&endpoint::Feed::call(&query::Feed { since: since.clone() }))
            {
                Ok(lines) => match read(lines, &teller, &mut since) {
                    Err(()) => return,
                    Ok(()) => "it went away".to_owned(),
                },
                Err(error) => error.to_string(),
            };
            if teller.tell(UiInput::Feed(SessionsNews::Away(why))).is_err() {
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    });
}

/// Passes on events until the connection ends; an error when the loop has ended.
fn read(
    lines: impl Iterator<Item = std::io::Result<String>>,
    teller: &Teller,
    since: &mut Option<String>,
) -> Result<(), ()> {
    let mut kind = String::new();
    for line in lines.map_while(Result::ok) {
        if let Some(event) = line.strip_prefix("event:") {
            event.trim().clone_into(&mut kind);
        } else if let Some(data) = line.strip_prefix("data:")
            && let Some(news) = news(&kind, data.trim())
        {
            note(&news, since);
            teller.tell(UiInput::Feed(news))?;
        }
    }
    Ok(())
}

/// Remembers where to resume after a reconnect; a snapshot counts only when it is complete.
fn note(news: &SessionsNews, since: &mut Option<String>) {
    match news {
        SessionsNews::Snapshot { more: true, .. } => *since = None,
        SessionsNews::Snapshot { revision, .. }
        | SessionsNews::Changed { revision, .. }
        | SessionsNews::Removed { revision, .. } => {
            *since = Some(revision.clone());
        }
        SessionsNews::Live(_) | SessionsNews::Away(_) => {}
    }
}
