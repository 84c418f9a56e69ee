//! Which holder yields to which: the core does what the table in `docs/design/006-holders.md` says.

use crate::driver::Driver;
use pinfold_core::decision::Answer;
use pinfold_core::event::{Ask, ConsumerKind, MessageEvent, RunEvent};
use pinfold_core::life::HolderSeen;
use pinfold_core::{Action, ConsumerId, Event, MessageId, Mode, Spec, State};

const DOCUMENT: &str = include_str!("../../../../docs/design/006-holders.md");

const ME: ConsumerId = ConsumerId(1);

/// Brings a session to where a holder of this kind has it.
fn held_by(holder: &str) -> Driver {
    let mut driver = Driver::new(Spec { interactive: true, ..Spec::new(Mode::OnDemand) });
    match holder {
        "nobody" => {}
        "headless" => _ = driver.ask(Ask::Start),
        "headless, in a turn" => {
            driver.message();
            driver.takes();
        }
        "headless, yielding to a terminal" => {
            driver.ask(Ask::Start);
            driver.ask(Ask::Takeover { consumer: ME, urgent: false });
        }
        "interactive" => _ = driver.ask(Ask::Takeover { consumer: ME, urgent: false }),
        "interactive, a message waits" => {
            driver.ask(Ask::Takeover { consumer: ME, urgent: false });
            driver.message();
        }
        "foreign" => blocked(&mut driver, "claude --resume 1234"),
        "manual" => blocked(&mut driver, "pinfold lock session:api -- vim notes"),
        other => panic!("the table has a holder `{other}` that nobody has heard of"),
    }
    driver
}

/// A run is wanted while another holder has the lock.
fn blocked(driver: &mut Driver, command: &str) {
    driver.hear(message(900));
    refuse_lock(driver, command);
}

fn refuse_lock(driver: &mut Driver, command: &str) {
    let holder = HolderSeen {
        resource: "session:api".into(),
        pid: Some(4711),
        command: Some(command.into()),
        session: None,
        since: None,
    };
    driver.of_run(driver.run(), RunEvent::LockBusy { holder: Some(Box::new(holder)) });
}

fn message(number: u128) -> Event {
    Event::Message(MessageEvent::Sent { message: MessageId(number), key: None, known: None })
}

fn comes(driver: &mut Driver, comer: &str) {
    let consumer = ConsumerId(2);
    let blocked = driver.session.life().awaits_holder();
    let event = match comer {
        "a message" => message(901),
        "an attach" => Event::ConsumerJoined { consumer, kind: ConsumerKind::Attach },
        "`start`" => Event::Asked(Ask::Start),
        "`stop`" => Event::Asked(Ask::Stop { grace: None }),
        "a takeover" => Event::Asked(Ask::Takeover { consumer, urgent: false }),
        "a takeover `--now`" => Event::Asked(Ask::Takeover { consumer, urgent: true }),
        "its end" if blocked => Event::HolderGone,
        "its end" => {
            driver.exits(0);
            return;
        }
        other => panic!("the table has a comer `{other}` that nobody has heard of"),
    };
    if !blocked || comer == "its end" {
        driver.send(event);
        return;
    }
    // The lock still has the same holder.
    driver.hear(event);
    if driver.session.state() == State::Starting {
        refuse_lock(driver, "still the same");
    }
}

/// The outcome, in the words of the table.
fn outcome(holder: &str, comer: &str) -> String {
    if (holder, comer) == ("nobody", "its end") {
        return "-".into();
    }
    let mut driver = held_by(holder);
    (driver.answer, driver.actions) = (None, Vec::new());
    comes(&mut driver, comer);
    let said = match driver.answer {
        Some(Answer::Refused(_)) => " (refused)",
        Some(Answer::Joined) => " (joins)",
        _ if driver.actions.iter().any(|action| matches!(action, Action::Interrupt { .. })) => {
            " (interrupted)"
        }
        _ => "",
    };
    format!("{}{said}", driver.session.state().word())
}

/// The rows of the document's table; the first has the column names.
fn table() -> Vec<Vec<&'static str>> {
    let lines =
        DOCUMENT.lines().skip_while(|line| !line.starts_with("| held by")).take_while(|l| l.starts_with('|'));
    lines
        .filter(|line| !line.starts_with("|---"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_table_of_holders_is_what_the_core_does() {
    let table = table();
    let (comers, rows) = table.split_first().expect("a table");
    assert!(rows.len() >= 8 && comers.len() == 8, "the table lost something: {table:?}");
    for row in rows {
        for (comer, wanted) in comers.iter().zip(row).skip(1) {
            let found = outcome(row[0], comer);
            assert_eq!(&found, wanted, "held by {}, and then {comer}", row[0]);
        }
    }
}
