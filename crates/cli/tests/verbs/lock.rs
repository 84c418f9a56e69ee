//! `pinfold lock`: which process holds what, for how long, and what the others are told.

use crate::support::{Ends, Home, children, kill};

#[test]
fn a_command_ends_with_its_own_code() {
    let home = Home::new();
    for code in [0, 1, 3, 75, 127, 255] {
        assert_eq!(home.run(&["lock", "key:k", "--", "sh", "-c", &format!("exit {code}")]).code, code);
    }
}

#[test]
fn a_command_ended_by_a_signal_counts_as_128_and_its_number() {
    let home = Home::new();
    assert_eq!(home.run(&["lock", "key:k", "--", "sh", "-c", "kill -9 $$"]).code, 137);
}

#[test]
fn standard_streams_belong_to_the_command() {
    let home = Home::new();
    let answer = home.script("echo hello | \"$PINFOLD\" lock key:k -- sh -c 'cat; echo to-stderr >&2'");
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("hello\n", "to-stderr\n"));
}

#[test]
fn a_busy_lock_is_75_and_names_the_holder_its_age_and_what_to_do() {
    let home = Home::new();
    let holder = home.hold("key:k");
    let answer = home.run(&["lock", "key:k", "--", "true"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (75, ""));
    let lines: Vec<&str> = answer.stderr.lines().collect();
    let start =
        format!("error: `key:k` is held by pid {} (sh -c echo ready; exec sleep 1000, since ", holder.pid());
    assert!(lines[0].starts_with(&start) && lines[0].ends_with(" s)"), "{}", answer.stderr);
    assert_eq!(lines[1], "hint: `--wait 10s` waits for it; `pinfold unlock key:k --kill` ends its holder");
    let answer = home.run(&["lock", "key:k", "--wait", "50ms", "--", "true"]);
    assert_eq!(answer.code, 75);
}

#[test]
fn a_busy_lock_is_told_in_json_too() {
    let home = Home::new();
    let holder = home.hold("key:k");
    let error = &home.json(&["lock", "key:k", "--", "true"])["error"];
    assert_eq!(error["kind"], "busy");
    assert_eq!(error["holder"]["pid"], holder.pid());
    assert_eq!(error["holder"]["verdict"], "alive");
    for field in ["start_ticks", "boot_id", "pid_ns", "host", "command"] {
        assert!(!error["holder"][field].is_null(), "{field}");
    }
}

#[test]
fn a_waiter_gets_the_lock_when_its_holder_goes() {
    let home = Home::new();
    let mut holder = home.hold("key:k");
    let waiter = home
        .command(&["lock", "key:k", "--wait", "240s", "--", "echo", "got it"])
        .stdout(std::process::Stdio::piped())
        .spawn();
    holder.end();
    assert_eq!(waiter.unwrap().finished().stdout, "got it\n");
}

#[test]
fn the_command_holds_the_lock_even_if_pinfold_is_killed() {
    let home = Home::new();
    let mut holder = home.hold("key:k");
    let command = children(holder.pid())[0];
    holder.child.kill().unwrap();
    holder.child.ended();
    let answer = home.run(&["lock", "key:k", "--", "true"]);
    assert_eq!(answer.code, 75, "{}", answer.stderr);
    assert!(answer.stderr.contains(&format!("is held by pid {command} (sleep 1000")), "{}", answer.stderr);
    kill(command, "KILL");
    assert_eq!(home.run(&["lock", "key:k", "--wait", "240s", "--", "true"]).code, 0);
}

#[test]
fn a_background_child_that_inherits_the_lock_keeps_it() {
    let home = Home::new();
    let script = "\"$PINFOLD\" lock key:k -- sh -c 'sleep 1000 > /dev/null 2>&1 & echo $!'";
    let answer = home.script(script);
    assert_eq!(answer.code, 0);
    let stray: u32 = answer.stdout.trim().parse().unwrap();
    let busy = home.run(&["lock", "key:k", "--", "true"]);
    assert_eq!(busy.code, 75);
    assert!(busy.stderr.contains(&format!("pid {stray} (sleep 1000")), "{}", busy.stderr);
    let locks = home.json(&["locks"]);
    assert_eq!(locks[0]["holder"]["pid"], stray);
    kill(stray, "KILL");
    assert_eq!(home.run(&["lock", "key:k", "--wait", "240s", "--", "true"]).code, 0);
}

#[test]
fn a_surviving_child_without_the_lock_keeps_the_next_grant_away_until_it_ends() {
    let home = Home::new();
    // As node, bun and Python do for their children: the inherited descriptor is closed.
    let script =
        "\"$PINFOLD\" lock key:k -- bash -c '(exec 100>&-; exec sleep 1000) > /dev/null 2>&1 & echo $!'";
    let survivor: u32 = home.script(script).stdout.trim().parse().unwrap();
    let busy = home.run(&["lock", "key:k", "--", "true"]);
    assert_eq!(busy.code, 75);
    let expected =
        format!("was held by a run of which something is still alive, by pid {survivor} (sleep 1000");
    assert!(busy.stderr.contains(&expected), "{}", busy.stderr);
    assert_eq!(home.json(&["locks"])[0]["holder"]["pid"], survivor);
    kill(survivor, "KILL");
    assert_eq!(home.run(&["lock", "key:k", "--wait", "240s", "--", "true"]).code, 0);
}

#[test]
fn unlock_ends_a_survivor_too() {
    let home = Home::new();
    let script =
        "\"$PINFOLD\" lock key:k -- bash -c '(exec 100>&-; exec sleep 1000) > /dev/null 2>&1 & echo $!'";
    home.script(script);
    assert_eq!(home.run(&["lock", "key:k", "--", "true"]).code, 75);
    assert_eq!(home.run(&["unlock", "key:k", "--kill"]).code, 0);
    assert_eq!(home.run(&["lock", "key:k", "--", "true"]).code, 0);
}

#[test]
fn a_closed_lock_ends_with_the_command_whatever_it_leaves_behind() {
    let home = Home::new();
    let script = "\"$PINFOLD\" lock key:k --close -- sh -c 'sleep 1000 > /dev/null 2>&1 & echo $!'";
    let stray: u32 = home.script(script).stdout.trim().parse().unwrap();
    let answer = home.run(&["lock", "key:k", "--", "true"]);
    kill(stray, "KILL");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

#[test]
fn a_closed_lock_ends_when_pinfold_is_killed() {
    let home = Home::new();
    let words = ["lock", "key:k", "--close", "--", "sh", "-c", "echo ready; exec sleep 1000"];
    let mut holder = home.start(&words);
    let command = children(holder.pid())[0];
    holder.child.kill().unwrap();
    holder.child.ended();
    let answer = home.run(&["lock", "key:k", "--", "true"]);
    kill(command, "KILL");
    assert_eq!(answer.code, 0, "{}", answer.stderr);
}

#[test]
fn signals_are_passed_on_to_the_command() {
    let home = Home::new();
    for (signal, code) in [("TERM", 7), ("INT", 8), ("HUP", 9), ("USR1", 10)] {
        let script = format!("trap 'exit {code}' {signal}; echo ready; while :; do sleep 0.02; done");
        // The last sleep of the previous command keeps the lock for as long as it lasts.
        let mut holder = home.start(&["lock", "key:k", "--wait", "240s", "--", "sh", "-c", &script]);
        kill(holder.pid(), signal);
        assert_eq!(holder.child.ended().code(), Some(code), "{signal}");
    }
}

#[test]
fn the_command_has_the_signal_mask_of_the_caller() {
    let home = Home::new();
    let mask =
        |text: &str| text.lines().find(|line| line.starts_with("SigBlk")).unwrap_or_default().to_owned();
    let outside = home.script("cat /proc/self/status");
    let inside = home.run(&["lock", "key:k", "--", "cat", "/proc/self/status"]);
    assert_eq!(mask(&inside.stdout), mask(&outside.stdout));
}

#[test]
fn the_command_inherits_the_lock_and_no_other_descriptor() {
    let home = Home::new();
    let numbers = |answer: &str| answer.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let outside = numbers(&home.script("sh -c 'cd /proc/self/fd && echo *'").stdout);
    let inside =
        numbers(&home.run(&["lock", "key:k", "--", "sh", "-c", "cd /proc/self/fd && echo *"]).stdout);
    let added: Vec<_> = inside.iter().filter(|number| !outside.contains(number)).collect();
    assert_eq!(added, ["100"]);
    let closed = numbers(
        &home.run(&["lock", "key:k", "--close", "--", "sh", "-c", "cd /proc/self/fd && echo *"]).stdout,
    );
    assert!(closed.iter().all(|number| outside.contains(number)), "{closed:?}");
}

#[test]
fn the_lock_given_to_a_command_cannot_be_written_through() {
    let home = Home::new();
    let answer = home.run(&["lock", "key:k", "--", "sh", "-c", "echo rubbish >&100"]);
    assert_ne!(answer.code, 0);
    assert_eq!(home.run(&["lock", "key:k", "--", "true"]).code, 0);
}

#[test]
fn asking_again_inside_the_command_fails_at_once_instead_of_waiting_for_itself() {
    let home = Home::new();
    let words = ["lock", "key:k", "--", "sh", "-c", "\"$PINFOLD\" lock key:k --wait 7d -- true"];
    let answer = home.run(&words);
    assert_eq!(answer.code, 75);
    assert!(answer.stderr.contains("already held by the one who asks for it"), "{}", answer.stderr);
    home.dir("a/b");
    let words = ["lock", "a/b", "--", "sh", "-c", "\"$PINFOLD\" lock a --wait 7d -- true"];
    let answer = home.run(&words);
    assert_eq!(answer.code, 75);
    assert!(answer.stderr.contains("already held by the one who asks for it"), "{}", answer.stderr);
    // Another lock inside is fine.
    let nested = ["lock", "key:k", "--", "sh", "-c", "\"$PINFOLD\" lock key:other -- true"];
    assert_eq!(home.run(&nested).code, 0);
}

#[test]
fn a_program_that_is_missing_is_bad_configuration_and_frees_the_lock() {
    let home = Home::new();
    let answer = home.run(&["lock", "key:k", "--", "/no/such/program"]);
    assert_eq!(answer.code, 78);
    assert!(answer.stderr.starts_with("error: `/no/such/program` could not be started"), "{}", answer.stderr);
    assert_eq!(home.json(&["locks"]), serde_json::json!([]));
}

#[test]
fn fences_grow_from_command_to_command() {
    let home = Home::new();
    let fence = || -> u64 {
        let answer = home.run(&["lock", "key:k", "--", "sh", "-c", "echo $PINFOLD_FENCE"]);
        answer.stdout.trim().parse().unwrap()
    };
    let (first, second) = (fence(), fence());
    assert!(second > first);
}

#[test]
fn a_session_lock_lives_in_the_home_and_all_others_in_the_users_folder() {
    let home = Home::new();
    let _session = home.hold("session:api");
    let _key = home.hold("key:k");
    let count = |path: &str, kind: &str| {
        let entries = std::fs::read_dir(home.path(path)).unwrap();
        entries
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(kind))
            .count()
    };
    assert_eq!((count("home/locks", "s-"), count("locks", "k-"), count("locks", "s-")), (1, 1, 0));
    // Another home has another session of that name, but the same keys.
    let other = home.path("other");
    let in_other =
        |resource| home.run(&["--home", other.to_str().unwrap(), "lock", resource, "--", "true"]).code;
    assert_eq!((in_other("session:api"), in_other("key:k")), (0, 75));
    assert_eq!(home.json(&["locks"]).as_array().unwrap().len(), 2);
}

#[test]
fn the_command_has_the_lock_however_few_files_may_be_open() {
    let home = Home::new();
    for limit in [40, 64, 99, 100, 101, 128] {
        let script = format!(
            "ulimit -n {limit}; \"$PINFOLD\" lock dir -- sh -c '
                ls -l /proc/self/fd | grep -q locks && echo given; \"$PINFOLD\" lock dir -- true; echo $?'"
        );
        home.dir("dir");
        let answer = home.script(&script);
        assert_eq!((answer.code, answer.stdout.as_str()), (0, "given\n75\n"), "{limit}: {}", answer.stderr);
    }
}
