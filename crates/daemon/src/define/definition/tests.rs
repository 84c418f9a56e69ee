use super::*;
use pinfold_api::{ErrorBody, ErrorKind};

fn request(command: &[&str]) -> NewSession {
    NewSession {
        command: Some(command.iter().map(ToString::to_string).collect()),
        caller_dir: Some("/".into()),
        caller_env: Some(BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())])),
        ..NewSession::default()
    }
}

#[test]
fn the_directory_is_locked_only_when_it_is_named() {
    let plain = Definition::new(&request(&["true"]), None).unwrap();
    assert!(!plain.dir_lock);
    let named =
        Definition::new(&NewSession { dir: Some("/tmp".into()), ..request(&["true"]) }, None).unwrap();
    assert!(named.dir_lock);
    let unlocked = NewSession { dir: Some("/tmp".into()), dir_lock: Some(false), ..request(&["true"]) };
    assert!(!Definition::new(&unlocked, None).unwrap().dir_lock);
}

#[test]
fn a_missing_program_or_directory_is_named() {
    let settle = |command: &[&str], dir: &str| {
        let mut definition = Definition::new(&request(command), None).unwrap();
        definition.dir = dir.into();
        definition.settle(None)
    };
    assert_eq!(settle(&["true"], "/"), Ok(()));
    assert_eq!(settle(&["/bin/true"], "/"), Ok(()));
    let program = "no-such-program".to_owned();
    assert_eq!(settle(&["no-such-program"], "/"), Err(CannotStart::ProgramMissing { program }));
    let program = "/etc/passwd".to_owned();
    assert_eq!(settle(&["/etc/passwd"], "/"), Err(CannotStart::NotExecutable { program }));
    let directory = "/no/such/place".to_owned();
    assert_eq!(settle(&["true"], "/no/such/place"), Err(CannotStart::DirectoryMissing { directory }));
}

#[test]
fn what_cannot_be_read_is_a_usage_error() {
    let rows = [
        NewSession { mode: Some("sometimes".into()), ..request(&["true"]) },
        NewSession { memory: Some("512".into()), ..request(&["true"]) },
        NewSession { idle: Some("5".into()), ..request(&["true"]) },
        NewSession { input: Some("xml".into()), ..request(&["true"]) },
        NewSession { turns: Some("never".into()), ..request(&["true"]) },
        request(&[]),
    ];
    for row in rows {
        let refused: ErrorBody = Definition::new(&row, None).unwrap_err().into();
        assert_eq!(refused.kind, ErrorKind::Usage, "{row:?}");
    }
}

#[test]
fn a_name_that_is_none_or_is_pinfolds_own_is_refused() {
    for (name, value) in [
        ("", "x"),
        ("A=B", "x"),
        ("A\nB", "x"),
        ("A\u{1b}", "x"),
        ("A", "x\0y"),
        ("PINFOLD_HOME", "/x"),
        ("PINFOLD_LOCK_RUNS", "1"),
    ] {
        let env = Some(BTreeMap::from([(name.to_owned(), value.to_owned())]));
        let refused = Definition::new(&NewSession { env, ..request(&["true"]) }, None).unwrap_err();
        let (own, name) = (name.starts_with("PINFOLD_"), name.to_owned());
        let expected =
            if own { BadDefinition::OwnVariable { name } } else { BadDefinition::NotAVariable { name } };
        assert_eq!(refused, expected);
    }
    let env = Some(BTreeMap::from([("MY_PINFOLD".to_owned(), "several\nlines".to_owned())]));
    Definition::new(&NewSession { env, ..request(&["true"]) }, None).unwrap();
}

#[test]
fn a_change_leaves_what_it_does_not_name() {
    let mut definition =
        Definition::new(&NewSession { memory: Some("1G".into()), ..request(&["sleep", "1"]) }, None).unwrap();
    definition.change(&NewSession { idle: Some("10s".into()), ..NewSession::default() }).unwrap();
    assert_eq!((definition.memory, definition.command.len()), (Some(1 << 30), 2));
    assert_eq!(definition.spec(&Settings::default()).policy.idle_after, Duration::from_secs(10));
}

#[test]
fn what_the_kernel_cannot_execute_is_described_by_its_first_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let mut definition = Definition::new(&request(&["true"]), None).unwrap();
    definition.dir = temp.path().into();
    let file = |bytes: &[u8]| {
        let file = temp.path().join("file");
        std::fs::write(&file, bytes).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let own = std::env::consts::ARCH;
    let mut elf = std::fs::read("/proc/self/exe").unwrap();
    let whole = definition.cannot_be_executed(&file(&elf));
    assert!(whole.ends_with("is damaged, or built for another kernel"), "{whole}");
    elf[18..20].copy_from_slice(&[0xfe, 0xfe]);
    let foreign = definition.cannot_be_executed(&file(&elf));
    let expected = format!("is built for another machine: machine 65278, and this is {own}");
    assert!(foreign.ends_with(&expected), "{foreign}");
    let bytes = definition.cannot_be_executed(&file(b"MZ\x90\0"));
    assert!(bytes.ends_with("is neither a program for this machine nor a script"), "{bytes}");
    for (line, interpreter) in [
        (&b"#! /bin/sh -e\n"[..], Some("/bin/sh")),
        (b"#!/bin/sh\r\n", Some("/bin/sh\r")),
        (b"#!\t/bin/sh\r", Some("/bin/sh\r")),
        (b"#! \n", None),
        (b"echo\n", None),
    ] {
        assert_eq!(definition.interpreter_of(&file(line)).as_deref(), interpreter);
    }
}
