//! Usage, and the accounts it is charged to.

use super::HttpContext;
use super::api_error::{Answered, ApiError};
use super::extract::{JsonBody, UrlQuery};
use crate::engine::{EngineCommand, EngineView};
use crate::show::usage as show;
use axum::Json;
use pinfold_api::object::{Account, UsageSum};
use pinfold_api::query::Usage;
use pinfold_api::request::ResumeAccount;
use pinfold_api::word::UsageBy as Word;
use pinfold_api::{ErrorBody, ErrorKind};
use pinfold_core::Wall;
use pinfold_store::{UsageBy, UsageQuery};
use tokio::sync::oneshot;

pub(crate) async fn usage(context: HttpContext, UrlQuery(asked): UrlQuery<Usage>) -> Answered<Vec<UsageSum>> {
    let by = match asked.by.as_deref().unwrap_or("session").into() {
        Word::Session => UsageBy::Session,
        Word::Account => UsageBy::Account,
        Word::Model => UsageBy::Model,
        Word::Day => UsageBy::Quarter,
        Word::Other(word) => {
            let message = format!("`{word}` is not one of {}", Word::WORDS.join(", "));
            return Err(ApiError::bad_value(ErrorBody::new(ErrorKind::Usage, message)));
        }
    };
    let query = UsageQuery { by, since: asked.since_ms.map(Wall) };
    let sums = context.read(move |reader| reader.usage(&query)).await?;
    let names = context.handle.view(show::names).await?;
    Ok(Json(show::sums(by, sums, &names)))
}

pub(crate) async fn accounts(context: HttpContext) -> Answered<Vec<Account>> {
    Ok(Json(context.handle.view(show::accounts).await?))
}

pub(crate) async fn resume(
    context: HttpContext,
    JsonBody(asked): JsonBody<ResumeAccount>,
) -> Answered<Account> {
    let account = asked.account;
    find(&context, &account).await?;
    let (reply, resumed) = oneshot::channel();
    context.handle.command(EngineCommand::ResumeAccount { account: account.clone(), reply });
    if !context.handle.answer(resumed).await? {
        let message = format!("account `{account}` is not held");
        return Err(ErrorBody::new(ErrorKind::Busy, message).into());
    }
    Ok(Json(find(&context, &account).await?))
}

async fn find(context: &HttpContext, account: &str) -> Result<Account, ApiError> {
    let wanted = account.to_owned();
    let known =
        move |view: EngineView<'_>| show::accounts(view).into_iter().find(|one| one.account == wanted);
    let found = context.handle.view(known).await?;
    let none = || ErrorBody::new(ErrorKind::NotFound, format!("there is no account `{account}`"));
    found.ok_or_else(|| none().hint("`pinfold accounts` lists those that sessions use").into())
}
