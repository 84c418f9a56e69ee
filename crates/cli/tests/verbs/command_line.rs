//! What every verb has in common: help, usage errors, durations.

use crate::support::Home;

#[test]
fn help_lists_what_there_is_and_acts_on_nothing() {
    let home = Home::new();
    let answer = home.run(&["--help"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    for verb in ["lock", "locks", "who", "unlock"] {
        assert!(answer.stdout.contains(&format!("\n  {verb} ")), "{verb}");
        let help = home.run(&[verb, "--help"]);
        assert_eq!(help.code, 0, "{verb}");
        assert!(help.stdout.contains("Usage: pinfold"), "{verb}");
    }
    assert!(!home.path("home").exists() && !home.path("locks").exists());
}

#[test]
fn version_is_printed_on_stdout() {
    let answer = Home::new().run(&["--version"]);
    assert_eq!((answer.code, answer.stdout), (0, format!("pinfold {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn usage_errors_are_2_and_one_line_with_a_hint() {
    let home = Home::new();
    let rows: [&[&str]; 8] = [
        &["no-such-verb"],
        &["lock"],
        &["lock", "key:k"],
        &["lock", "key:k", "--no-such-flag", "--", "true"],
        &["lock", "key:", "--", "true"],
        &["lock", "session:no spaces", "--", "true"],
        &["lock", "", "--", "true"],
        &["unlock", "key:k"],
    ];
    for words in rows {
        let answer = home.run(words);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{words:?}");
        let lines: Vec<&str> = answer.stderr.lines().collect();
        assert!(lines[0].starts_with("error: ") && lines[0].len() > 10, "{words:?}: {}", answer.stderr);
        assert!(lines.len() == 2 && lines[1].starts_with("hint: "), "{words:?}: {}", answer.stderr);
    }
}

#[test]
fn usage_errors_are_told_in_json_too() {
    let home = Home::new();
    for words in
        [&["lock", "key:k", "--wait", "10", "--", "true"][..], &["no-such-verb"], &["unlock", "key:k"]]
    {
        assert_eq!(home.json(words)["error"]["kind"], "usage", "{words:?}");
    }
}

#[test]
fn a_duration_without_unit_is_told_the_units() {
    let home = Home::new();
    let answer = home.run(&["lock", "key:k", "--wait", "10", "--", "true"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("250ms, 10s, 5m, 2h, 7d"), "{}", answer.stderr);
}

#[test]
fn flags_after_the_command_belong_to_the_command() {
    let home = Home::new();
    assert_eq!(home.run(&["lock", "key:k", "--", "echo", "--json", "--help"]).stdout, "--json --help\n");
}

#[test]
fn quiet_leaves_the_error_and_drops_the_hint() {
    let home = Home::new();
    let answer = home.run(&["--quiet", "unlock", "key:k"]);
    assert_eq!(answer.stderr.lines().count(), 1, "{}", answer.stderr);
}

#[test]
fn a_reader_that_goes_away_is_no_crash() {
    let home = Home::new();
    let _held = home.hold("key:k");
    let answer = home.script("\"$PINFOLD\" locks | true; \"$PINFOLD\" --json locks >&-");
    assert!(!answer.stderr.contains("panicked"), "{}", answer.stderr);
}
