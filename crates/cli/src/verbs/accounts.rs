//! `accounts`: the credentials that sessions use, their limits, and which sessions they hold up.

use super::usage::cost;
use crate::daemon::Daemon;
use crate::doing::DaemonVerb;
use crate::output::{Failure, Paper, TableCell, Worth, moment, plain, print, say, talk};
use clap::Args;
use pinfold_api::object::{Account, Window};
use pinfold_api::request::ResumeAccount;
use pinfold_api::{Client, endpoint};
use serde_json::json;

/// Which one goes on, if one shall.
#[derive(Debug, Clone, Args)]
pub(crate) struct Accounts {
    /// Let the sessions of this account go on, one of them first
    #[arg(long, value_name = "ACCOUNT")]
    resume: Option<String>,
}

impl DaemonVerb for Accounts {
    fn ask(&self, daemon: &Daemon) -> Result<(), Failure> {
        let client = daemon.client()?;
        match &self.resume {
            Some(account) => resume(&client, account, daemon),
            None => list(&client, daemon),
        }
    }
}

fn resume(client: &Client, account: &str, daemon: &Daemon) -> Result<(), Failure> {
    let account = ResumeAccount { account: account.to_owned() };
    let account = client.ask(&endpoint::ResumeAccount::call(&account))?;
    if daemon.global.json {
        say(&json!(account));
    } else if !daemon.global.quiet {
        talk(&format!("account `{}` goes on: one session tries, then the others follow", account.account));
    }
    Ok(())
}

fn list(client: &Client, daemon: &Daemon) -> Result<(), Failure> {
    let accounts = client.ask(&endpoint::Accounts::call())?;
    if daemon.global.json {
        say(&json!(accounts));
    } else if accounts.is_empty() {
        if !daemon.global.quiet {
            talk(&"no session uses an account");
        }
    } else {
        let rows: Vec<_> = accounts.iter().flat_map(rows).collect();
        print(&Paper::stdout().fitted(HEADS, &rows));
    }
    Ok(())
}

const HEADS: [(&str, Worth); 7] = [
    ("ACCOUNT", Worth::Needed(14)),
    ("SESSIONS", Worth::Wanted(2)),
    ("HELD", Worth::Needed(6)),
    ("WINDOW", Worth::Needed(6)),
    ("USED", Worth::Needed(4)),
    ("RESETS", Worth::Wanted(3)),
    ("TODAY", Worth::Extra),
];

/// A row for the account, with its first limit, and one for each further limit.
fn rows(account: &Account) -> Vec<[TableCell<'static>; 7]> {
    let mut windows: Vec<Option<&Window>> = account.windows.iter().map(Some).collect();
    if windows.is_empty() {
        windows.push(None);
    }
    let row = |(at, window): (usize, Option<&Window>)| {
        let first = |text: String| plain(if at == 0 { text } else { String::new() });
        let used = window.and_then(|window| window.used).map(|used| format!("{:.0} %", used * 100.0));
        let resets = window.and_then(|window| window.resets.as_deref());
        let resets = resets.or(account.resets.as_deref().filter(|_| at == 0)).map(moment);
        let or_none = |text: Option<String>| plain(text.unwrap_or_else(|| "-".to_owned()));
        [
            first(account.account.clone()),
            first(account.sessions.to_string()),
            first(held(account)),
            or_none(window.map(|window| window.window.clone())),
            or_none(used),
            or_none(resets),
            first(today(account)),
        ]
    };
    windows.into_iter().enumerate().map(row).collect()
}

fn held(account: &Account) -> String {
    match &account.held {
        Some(held) => format!("{held}: {}", account.held_sessions.len()),
        None => "no".to_owned(),
    }
}

fn today(account: &Account) -> String {
    let spent = account.spent_today_usd.map(cost);
    match (spent, account.budget_usd.map(cost)) {
        (spent, Some(budget)) => format!("{} of {budget}", spent.unwrap_or_else(|| cost(0.0))),
        (Some(spent), None) => spent,
        (None, None) => "-".to_owned(),
    }
}
