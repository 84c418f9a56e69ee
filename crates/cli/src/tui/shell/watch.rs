//! Watches a session's terminal without attaching: the shim paints its mirror for us, and we are not a consumer.
//!
//! It takes one of the shim's viewer seats and gives it back when the pane closes. It types nothing, and does
//! not change the terminal's size.

use super::super::effect::{UiInput, WatchTarget};
use super::news::Teller;
use pinfold_api::{Client, endpoint};
use pinfold_core::RunNumber;
use pinfold_shim::attach::{Join, Seat, Shown, ViewerInput, connect};
use pinfold_shim::{Decoder, Size};
use pinfold_terminal::Terminal;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two screens: 30 a second is more than people see.
const PACE: Duration = Duration::from_millis(33);

/// A terminal being watched, until this is dropped.
pub(super) struct TerminalWatch(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    over: bool,
    stream: Option<UnixStream>,
}

impl Drop for TerminalWatch {
    fn drop(&mut self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.over = true;
        if let Some(stream) = state.stream.take() {
            _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Starts watching.
pub(super) fn begin(client: Client, watch: WatchTarget, teller: Teller) -> TerminalWatch {
    let state = Arc::new(Mutex::new(State::default()));
    let own = Arc::clone(&state);
    std::thread::spawn(move || {
        let why = look(&client, &watch, &teller, &own);
        if !own.lock().unwrap_or_else(PoisonError::into_inner).over {
            _ = teller.tell(UiInput::Screen { of: watch.id, shown: Err(why) });
        }
    });
    TerminalWatch(state)
}

/// Shows the terminal until it ends; returns why it can no longer be seen.
fn look(client: &Client, watch: &WatchTarget, teller: &Teller, state: &Mutex<State>) -> String {
    let place = match client.ask(&endpoint::Screen::call(&watch.id)) {
        Ok(place) => place,
        Err(error) => return error.to_string(),
    };
    let size = Size::new(watch.rows, watch.columns);
    let joined = connect(Path::new(&place.socket)).and_then(|(mut stream, decoder)| {
        let mut word = Vec::new();
        ViewerInput::Join(Join { run: RunNumber(place.run), size, seat: Seat::Watches }).encode(&mut word);
        stream.write_all(&word)?;
        Ok((stream.try_clone()?, stream, decoder))
    });
    let (held, stream, decoder) = match joined {
        Ok(joined) => joined,
        Err(error) => return format!("its terminal cannot be reached: {error}"),
    };
    {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.over {
            return String::new();
        }
        state.stream = Some(held);
    }
    mirror(stream, decoder, size, |shown| {
        teller.tell(UiInput::Screen { of: watch.id.clone(), shown: Ok(shown) })
    })
}

type Lines = Vec<Vec<(String, pinfold_terminal::Looks)>>;

fn mirror(
    mut stream: UnixStream,
    mut decoder: Decoder,
    size: Size,
    tell: impl Fn(Lines) -> Result<(), ()>,
) -> String {
    let mut terminal = Terminal::new(size);
    let mut bytes = vec![0; 64 << 10];
    let mut told: Option<Instant> = None;
    loop {
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return "its terminal is gone".to_owned(),
            Ok(count) => decoder.feed(&bytes[..count]),
        }
        loop {
            match decoder.frame().and_then(|frame| frame.map(|frame| Shown::decode(&frame)).transpose()) {
                Ok(Some(Some(Shown::Output(bytes)))) => terminal.feed(&bytes),
                Ok(Some(Some(Shown::Ended))) => return "its run has ended".to_owned(),
                Ok(Some(Some(Shown::Keyboard(_)) | None)) => {}
                Ok(None) => break,
                Err(_) => return "its terminal is gone".to_owned(),
            }
        }
        if let Some(told) = told {
            std::thread::sleep(PACE.saturating_sub(told.elapsed()));
        }
        if tell(terminal.lines()).is_err() {
            return String::new();
        }
        told = Some(Instant::now());
    }
}
