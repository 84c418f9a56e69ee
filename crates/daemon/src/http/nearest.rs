//! Suggests the session that was probably meant by an unknown name.

use super::HttpContext;
use super::api_error::ApiError;
use crate::engine::{EngineView, SessionRef, WhyNot};
use pinfold_api::ErrorBody;
use pinfold_core::State;

/// The error for an unknown name: a person is told which session was probably meant. A run is not told which
/// others exist.
pub(super) async fn nearest(context: &HttpContext, why: WhyNot, wanted: String) -> ApiError {
    let WhyNot::Unknown { .. } = why else { return why.into() };
    if ["all", "*"].contains(&wanted.as_str()) {
        return ErrorBody::from(why).hint("for all of them: `$(pinfold ls -q)` in its place").into();
    }
    let near = move |view: EngineView<'_>| {
        let names = view.sessions().filter(|known| known.state() != State::Archived);
        near_name(&wanted, names.map(SessionRef::name)).map(str::to_owned)
    };
    let near =
        if context.pass.own().is_none() { context.handle.view(near).await.ok().flatten() } else { None };
    let body = ErrorBody::from(why);
    match near {
        Some(near) => {
            let hint = format!("the nearest one is `{near}`; `pinfold ls --all` lists them");
            body.hint(hint).into()
        }
        None => body.into(),
    }
}

/// The name that was probably meant: one that begins with this, or is at most two letters away and not
/// another word.
fn near_name<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = |name: &str| {
        let off = strsim::osa_distance(&wanted.to_lowercase(), &name.to_lowercase());
        let begins = wanted.len() > 1 && name.to_lowercase().starts_with(&wanted.to_lowercase());
        // Two letters of three would be another word.
        (begins || off <= 2 && off * 2 < wanted.chars().count().max(2)).then_some(if begins {
            0
        } else {
            off
        })
    };
    let near = names.filter_map(|name| Some((far(name)?, name)));
    near.min_by_key(|(off, name)| (*off, name.len())).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_is_nearly_right_is_named() {
        let names = ["loop", "crasher", "api", "api-2", "db"];
        let rows = [
            ("loo", Some("loop")),
            ("crashr", Some("crasher")),
            ("CRASHER", Some("crasher")),
            ("crahser", Some("crasher")),
            ("ap", Some("api")),
            ("apo", Some("api")),
            ("nobody", None),
            ("x", None),
            ("d", None),
            ("", None),
        ];
        for (wanted, near) in rows {
            assert_eq!(near_name(wanted, names.into_iter()), near, "{wanted}");
        }
    }
}
