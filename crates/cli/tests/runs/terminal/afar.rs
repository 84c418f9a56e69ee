//! The UI at the other end of a slow line: keys come there 200 ms after they were typed, and what it paints is seen as much later.

use super::on;
use crate::tty::Tty;
use crate::world::World;
use pinfold_api::Client;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long something takes on the line, each way.
const DELAY: Duration = Duration::from_millis(200);
/// A key that moves the selection paints two rows and the pane, and not the whole screen.
const MOST_A_KEY: usize = 2000;
/// What the feed tells is painted no more often than this.
const PACE: Duration = Duration::from_millis(100);
/// What a frame begins with.
const FRAME: &str = "\x1b[?2026h";

fn afar(world: &World) -> Tty {
    for number in 10..30 {
        world.ok(&["new", &format!("s{number}"), "--mode", "on-demand", "--", "cat"]);
    }
    let tty = Tty::start_afar(world.command(&[]), (40, 120), DELAY);
    tty.shows("20 sessions");
    on(&tty, "s10");
    tty
}

#[test]
fn what_is_typed_ahead_on_a_slow_line_is_taken_in_its_order() {
    let world = World::new();
    let mut tty = afar(&world);
    // All of it is on its way before anything of it is seen.
    let typed = b"Gkkksone two\x1b\rthree".iter().chain(b"\rjpq");
    typed.for_each(|key| tty.keys(&[*key]));
    assert!(tty.ended().success());
    assert_eq!(world.inbox("s26")[0]["text"], "one two\nthree");
    let again = world.tui();
    again.shows("*  s27");
}

#[test]
fn a_slow_line_is_not_filled_with_frames() {
    let world = World::new();
    let tty = afar(&world);
    let before = tty.everything().len();
    for number in 11..21 {
        tty.keys(b"j");
        on(&tty, &format!("s{number}"));
    }
    let painted = tty.everything().len() - before;
    assert!(painted < 10 * MOST_A_KEY, "{painted} bytes for ten keys");
    // The last key's frames are still on their way, and do not count.
    std::thread::sleep(DELAY * 3);
    let (frames, begun) = (tty.everything().matches(FRAME).count(), Instant::now());
    let client = Client::new(world.home.join("pinfold.sock"));
    for number in 0..100 {
        let path = format!("/v1/sessions/s{}/set", 10 + number % 20);
        _ = client.post::<Value>(&path, &json!({"tags": [format!("t{number}")]})).unwrap();
    }
    world.ok(&["new", "last", "--mode", "on-demand", "--", "cat"]);
    tty.shows("21 sessions");
    let (frames, most) =
        (tty.everything().matches(FRAME).count() - frames, begun.elapsed().div_duration_f64(PACE));
    assert!((frames as f64) < most + 2.0, "{frames} frames where {most:.0} have room");
}
