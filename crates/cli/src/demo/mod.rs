//! Demonstrates pinfold's promises with real processes in a throw-away home.
//!
//! Every line that begins with `$` is really run, and every fact is read back, never assumed. A step that
//! does not come out as promised ends the demo with an error that names it. Nothing is left behind in any
//! case.

mod processes;
mod script;
mod stage;

use crate::global::Global;
use crate::output::{Failure, Kind, say};
use serde_json::json;
use stage::{DemoStage, Stopped};

/// Plays the demo and cleans up.
pub(crate) fn play(global: &Global) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::from_error(Kind::Failed, &error);
    let mut stage = DemoStage::open(global.json).map_err(failed)?;
    let played = script::play(&mut stage);
    let cleared = stage.clear();
    if global.json {
        let ok = played.is_ok() && cleared.is_ok();
        let took = u64::try_from(stage.took().as_millis()).unwrap_or(u64::MAX);
        if ok {
            say(&json!({ "ok": ok, "took_ms": took, "steps": stage.steps() }));
        }
    }
    match (played, cleared) {
        (Ok(()), Ok(())) => {
            stage.line("");
            stage.line(&format!("Done in {:.1} s. What comes next:", stage.took().as_secs_f64()));
            stage.line("   pinfold new NAME -- COMMAND...    keeps a program alive");
            stage.line("   pinfold run NAME -- COMMAND...    the same in the foreground, without a daemon");
            stage.line("   pinfold --help                    lists the rest");
            Ok(())
        }
        (Err(Stopped::Asked), Ok(())) => {
            Err(Failure::new(Kind::Failed, "the demo was interrupted; nothing of it is left"))
        }
        (Err(Stopped::Failed(why)), Ok(())) => {
            let at = stage.at();
            Err(Failure::new(Kind::Failed, format!("the demo failed at `{at}`: {why}"))
                .hint("nothing of it is left; please report this, with the line above"))
        }
        (_, Err(left)) => {
            let hint = format!("everything of it names {}", stage.root().display());
            Err(Failure::new(Kind::Failed, format!("the demo could not clear up: {left}")).hint(hint))
        }
    }
}
