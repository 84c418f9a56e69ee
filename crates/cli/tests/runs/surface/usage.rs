//! Usage and accounts.

use super::stage::Stage;

#[test]
fn usage_and_accounts_are_shown() {
    let stage = Stage::new("accounts");
    stage.both("usage_of_nothing", &["usage"]);
    stage.both("no_accounts", &["accounts"]);
    stage.world.with_player("[accounts.mine]\nis = \"player:default\"\nbudget = \"5USD\"\n");
    stage.world.play("chat");
    stage.ok(&["send", "chat", "hello", "--wait", "60s"]);
    stage.both("accounts", &["accounts"]);
    stage.both("usage_by_account", &["usage", "--by", "account"]);
    stage.both("usage_by_nonsense", &["usage", "--by", "weather"]);
    stage.both("usage_since_a_number", &["usage", "--since", "7"]);
    stage.both("resume_what_is_not_held", &["accounts", "--resume", "player:mine"]);
    stage.both("resume_nobody", &["accounts", "--resume", "nobody"]);
    stage.done();
}
