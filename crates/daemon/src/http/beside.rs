//! What is looked up outside the loop when a client asks for one session: when its agent last printed, and
//! whether a program that pinfold did not start has its vendor session.

use super::HttpContext;
use crate::define::others::Others;
use crate::engine::{EngineView, SessionView, WhyNot};
use crate::output::written::Written;
use crate::show::session::holder_value;
use pinfold_api::object::Session;
use pinfold_core::Wall;
use pinfold_store::SessionId;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// When the agent of a session without a protocol last printed: that is when its log was written.
pub(crate) async fn tell_silence(
    context: &HttpContext,
    id: SessionId,
    view: &mut SessionView,
) -> Result<(), WhyNot> {
    if view.printed_at.is_some() || view.core.standing().is_none() {
        return Ok(());
    }
    let written = context.handle.view(move |view: EngineView<'_>| view.written_of(id)).await?;
    if let Written::Log(log) = written {
        view.printed_at = tokio::task::spawn_blocking(move || changed_at(&log)).await.ok().flatten();
    }
    Ok(())
}

fn changed_at(log: &Path) -> Option<Wall> {
    let changed = std::fs::metadata(log).and_then(|facts| facts.modified()).ok()?;
    let since = changed.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Wall)
}

/// Names the process that has the vendor session of a session that is not running: a vendor daemon may have
/// restarted it.
pub(crate) async fn tell_outsider(context: &HttpContext, id: SessionId, session: &mut Session) {
    if session.pid.is_some() || session.holder.is_some() {
        return;
    }
    let sought = context.handle.view(move |view: EngineView<'_>| view.others(id)).await.ok().flatten();
    let Some((others, resource)) = sought else { return };
    let looked = tokio::task::spawn_blocking(move || Others::look(&others)).await;
    let Some(outsider) = looked.ok().and_then(Result::ok).flatten() else { return };
    session.why.push_str(&format!(
        "; its vendor session is in the hands of pid {} ({}), which pinfold did not start",
        outsider.pid, outsider.command
    ));
    session.holder = Some(holder_value(&outsider.seen(resource)));
}
