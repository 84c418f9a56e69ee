//! Follows the output of a session. A reader of output is a consumer, so following ends when its page closes.

use super::super::effect::UiInput;
use super::news::Teller;
use pinfold_api::client::OpenAnswer;
use pinfold_api::object::LogLine;
use pinfold_api::{Client, endpoint, query};
use std::sync::{Arc, Mutex, PoisonError};

/// How many earlier lines to ask for.
const PAST: usize = 200;

/// Output being followed, until this is dropped.
pub(super) struct Followed(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    over: bool,
    held: Option<OpenAnswer>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.over = true;
        state.held = None;
    }
}

/// Starts following.
pub(super) fn begin(client: Client, id: String, teller: Teller) -> Followed {
    let state = Arc::new(Mutex::new(State::default()));
    let own = Arc::clone(&state);
    std::thread::spawn(move || {
        let which = query::Logs { n: Some(PAST), follow: true, ..query::Logs::default() };
        let over = match client.held_lines(&endpoint::Logs::call(&id, &which)) {
            Err(error) => error.to_string(),
            Ok((held, lines)) => {
                {
                    let mut state = own.lock().unwrap_or_else(PoisonError::into_inner);
                    if state.over {
                        return;
                    }
                    state.held = Some(held);
                }
                for line in lines.map_while(Result::ok) {
                    let Ok(line) = serde_json::from_str::<LogLine>(&line) else { continue };
                    let lines = Ok(line.text.trim_end().split('\n').map(str::to_owned).collect());
                    if teller.tell(UiInput::Followed { of: id.clone(), lines }).is_err() {
                        return;
                    }
                }
                "the daemon went away; f follows again".to_owned()
            }
        };
        _ = teller.tell(UiInput::Followed { of: id, lines: Err(over) });
    });
    Followed(state)
}
