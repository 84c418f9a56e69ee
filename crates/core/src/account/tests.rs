//! Tests of accounts in virtual time.

use super::*;
use crate::time::Boot;

fn at(seconds: u64) -> Now {
    let wall = Wall(1_000_000_000 + i64::try_from(seconds).unwrap() * 1000);
    Now { wall, boot: Boot(seconds * 1000), ..Now::default() }
}

fn standing(member: u128, wants: Wants, resumes: bool) -> MemberStanding {
    MemberStanding { member: Member(member), wants, resumes }
}

fn limit(until: Option<u64>) -> Refused {
    let until = until.map(|seconds| at(seconds).wall);
    Refused { kind: HoldKind::Limit, until, window: Some("five_hour".into()), text: None }
}

fn refused_as(kind: HoldKind) -> Refused {
    Refused { kind, until: None, window: None, text: Some("no".into()) }
}

fn free(account: &Account, all: &[MemberStanding]) -> Vec<u128> {
    let is_free = |one: &&MemberStanding| account.hold_of("a:b", one.member, one.resumes).is_none();
    all.iter().filter(is_free).map(|one| one.member.0).collect()
}

fn all(count: u128, resumes: bool) -> Vec<MemberStanding> {
    (1..=count).map(|member| standing(member, Wants::Turn, resumes)).collect()
}

#[test]
fn one_refusal_holds_all_and_is_told_once() {
    let (mut account, all) = (Account::default(), all(20, true));
    assert_eq!(free(&account, &all).len(), 20);
    assert_eq!(account.refused(&limit(Some(3600)), at(0)), RefusalEffect::Held);
    for second in 1..20 {
        assert_eq!(account.refused(&limit(Some(3600)), at(second)), RefusalEffect::Again);
    }
    assert!(!account.settle(&all, at(3599)));
    assert_eq!(free(&account, &all), []);
    assert_eq!(account.next_deadline().map(|due| due.boot), Some(at(3600).boot));
    let hold = account.hold_of("a:b", Member(7), true).unwrap();
    assert_eq!(
        (hold.to_string(), hold.asks),
        ("account `a:b` (five_hour) has met its usage limit".into(), false)
    );
}

#[test]
fn at_the_reset_one_tries_alone_and_the_others_follow_one_after_the_other() {
    let (mut account, mut all) = (Account::default(), all(3, true));
    account.refused(&limit(Some(60)), at(0));
    assert!(account.settle(&all, at(60)));
    assert_eq!(free(&account, &all), [1]);
    all[0].wants = Wants::AtWork;
    assert!(!account.settle(&all, at(61)), "alone");
    assert!(!account.worked(Member(2), at(62)), "what another one still had under way says nothing");
    assert!(account.worked(Member(1), at(62)));
    account.settle(&all, at(62));
    assert_eq!(free(&account, &all), [1, 2]);
    account.settle(&all, at(63));
    assert_eq!(free(&account, &all), [1, 2], "the second has no turn yet");
    all[1].wants = Wants::AtWork;
    account.settle(&all, at(64));
    assert_eq!(account.held, None, "the last one goes, and nobody is held");
}

#[test]
fn a_trial_that_is_refused_holds_all_again_and_the_waits_grow() {
    let (mut account, all) = (Account::default(), all(3, true));
    account.refused(&limit(None), at(0));
    let mut now = 0;
    for _ in 0..3 {
        now += 600;
        account.settle(&all, at(now));
        assert_eq!(free(&account, &all), [1]);
        assert_eq!(account.refused(&limit(None), at(now)), RefusalEffect::Again, "no new event");
        assert_eq!(free(&account, &all), []);
    }
    // A reset in the past: 1 s, then twice as long each time.
    let mut past = Account::default();
    past.refused(&limit(Some(0)), at(100));
    for wait in [1, 2, 4, 8] {
        assert_eq!(past.next_deadline().map(|due| due.boot), Some(at(100 + wait).boot));
        past.settle(&all, at(100 + wait));
        past.refused(&limit(Some(0)), at(100));
    }
}

#[test]
fn who_does_not_resume_by_itself_asks_and_goes_on_when_a_person_says_so() {
    let (mut account, mut all) = (Account::default(), all(3, false));
    all[1].resumes = true;
    account.refused(&limit(Some(60)), at(0));
    account.settle(&all, at(60));
    assert_eq!(free(&account, &all), [2], "only who wants it tries");
    account.worked(Member(2), at(61));
    account.settle(&all, at(61));
    assert_eq!(free(&account, &all), [2]);
    assert!(account.hold_of("a:b", Member(1), false).is_some_and(|hold| hold.asks));
    assert!(account.go_on(at(71)));
    account.settle(&all, at(71));
    assert_eq!(free(&account, &all), [1, 2]);
    all[0].wants = Wants::AtWork;
    account.settle(&all, at(72));
    assert_eq!(account.held, None);
}

#[test]
fn a_login_is_never_tried_before_a_person_says_so_and_then_by_one() {
    let (mut account, mut all) = (Account::default(), all(3, true));
    assert_eq!(account.refused(&refused_as(HoldKind::Login), at(0)), RefusalEffect::Held);
    account.settle(&all, at(1_000_000));
    assert_eq!((free(&account, &all), account.next_deadline()), (vec![], None));
    account.go_on(at(1_000_000));
    account.settle(&all, at(1_000_000));
    assert_eq!(free(&account, &all), [1]);
    assert_eq!(account.refused(&refused_as(HoldKind::Login), at(1_000_001)), RefusalEffect::Again);
    account.settle(&all, at(2_000_000));
    assert_eq!(free(&account, &all), [], "one word of a person is one try");
    account.go_on(at(2_000_000));
    account.settle(&all, at(2_000_000));
    all[0].wants = Wants::AtWork;
    account.worked(Member(1), at(2_000_001));
    account.settle(&all, at(2_000_001));
    assert_eq!(free(&account, &all), [1, 2], "one after the other");
}

#[test]
fn an_overloaded_vendor_is_tried_again_without_anybody_and_hides_no_limit() {
    let (mut account, all) = (Account::default(), all(2, false));
    account.refused(&refused_as(HoldKind::Overloaded), at(0));
    assert!(account.hold_of("a:b", Member(1), false).is_some_and(|hold| !hold.asks));
    account.settle(&all, at(15));
    assert_eq!(free(&account, &all), [1]);
    account.refused(&limit(Some(500)), at(16));
    assert_eq!(account.refused(&refused_as(HoldKind::Overloaded), at(17)), RefusalEffect::Again);
    assert_eq!(account.held.as_ref().map(|held| held.kind), Some(HoldKind::Limit));
}

#[test]
fn a_trial_that_comes_to_nothing_is_made_by_another_one() {
    let (mut account, mut all) = (Account::default(), all(2, true));
    account.refused(&limit(Some(60)), at(0));
    account.settle(&all, at(60));
    all[0].wants = Wants::Nothing;
    account.settle(&all, at(61));
    assert_eq!(free(&account, &all), [2]);
    all[1].wants = Wants::AtWork;
    account.settle(&all, at(61 + TRIAL.as_secs()));
    assert_eq!(account.held, None, "a long turn that is not refused goes well");
}

#[test]
fn a_step_of_the_clock_moves_no_reset_and_a_restart_of_the_machine_goes_by_the_wall() {
    let (mut account, all) = (Account::default(), all(2, true));
    account.refused(&limit(Some(3600)), at(0));
    let stepped = |boot: u64, wall: u64| Now { wall: at(wall).wall, ..at(boot) };
    account.settle(&all, stepped(10, 90_000));
    assert_eq!(free(&account, &all), [], "the wall clock was put forward");
    let mut other = account.clone();
    account.settle(&all, stepped(3600, 0));
    assert_eq!(free(&account, &all), [1], "the wall clock was put back");
    // Another boot: its clock begins anew, half an hour later by the wall.
    other.recovered(true, stepped(5, 1800));
    assert_eq!(other.next_deadline().map(|due| due.boot), Some(Boot(5_000 + 1_800_000)));
}

#[test]
fn a_daemon_that_dies_in_a_trial_tries_once_more() {
    let (mut account, all) = (Account::default(), all(3, true));
    account.refused(&limit(Some(60)), at(0));
    account.settle(&all, at(60));
    let mut stored: Account = serde_json::from_str(&serde_json::to_string(&account).unwrap()).unwrap();
    assert_eq!(stored, account);
    stored.recovered(false, at(61));
    assert_eq!(free(&stored, &all), []);
    stored.settle(&all, at(61));
    assert_eq!(free(&stored, &all), [1]);
}
