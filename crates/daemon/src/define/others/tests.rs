use super::*;
use crate::define::id_files::{IdFileReading, started};
use crate::define::preset::{Does, PresetChanges};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A program that runs until it is dropped.
struct Program(Child);

impl Program {
    fn new() -> Program {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // It answered, so the kernel knows its command line by now.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Program(child)
    }

    fn ticks(&self) -> u64 {
        started(self.0.id()).unwrap().unwrap()
    }

    fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn files(folder: &Path) -> IdFiles {
    let keys = "[id_file_keys]\nsession = 'id'\nstart_ticks = 'start'\nstatus = 'does'\nwords = { busy = 'working' }";
    let keys = PresetChanges::from_toml(keys).unwrap().preset().id_file_keys;
    IdFiles { folder: folder.to_owned(), around: ("p-".to_owned(), ".json".to_owned()), keys }
}

fn say(files: &IdFiles, pid: u32, session: &str, start: u64) {
    let text = format!(r#"{{"id":"{session}","start":"{start}","does":"busy"}}"#);
    std::fs::write(files.file_of(pid), text).unwrap();
}

fn others(files: &IdFiles, session: &str) -> Others {
    Others { files: files.clone(), daemon: None, session: session.to_owned() }
}

#[test]
fn a_living_process_is_found_by_its_session_and_its_start() {
    let temp = tempfile::tempdir().unwrap();
    let (files, mut program) = (files(temp.path()), Program::new());
    let (pid, ticks) = (program.0.id(), program.ticks());
    assert_eq!(others(&files, "a").look().unwrap(), None);
    say(&files, pid, "a", ticks);
    let found = others(&files, "a").look().unwrap().unwrap();
    assert_eq!((found.pid, found.start_ticks, found.command.as_str()), (pid, ticks, "cat"));
    assert!(others(&files, "a").has(&found) && !others(&files, "b").has(&found));
    assert_eq!(others(&files, "b").look().unwrap(), None);
    program.end();
    assert_eq!(others(&files, "a").look().unwrap(), None, "the file of a killed process stays");
    assert!(!others(&files, "a").has(&found));
}

#[test]
fn a_pid_that_is_used_again_and_a_file_without_a_start_are_nobody() {
    let temp = tempfile::tempdir().unwrap();
    let (files, program) = (files(temp.path()), Program::new());
    say(&files, program.0.id(), "a", program.ticks() + 1);
    assert_eq!(others(&files, "a").look().unwrap(), None);
    std::fs::write(files.file_of(program.0.id()), r#"{"id":"a"}"#).unwrap();
    assert_eq!(others(&files, "a").look().unwrap(), None);
}

#[test]
fn a_process_that_has_ended_and_was_not_reaped_is_nobody() {
    let temp = tempfile::tempdir().unwrap();
    let (files, mut program) = (files(temp.path()), Program::new());
    say(&files, program.0.id(), "a", program.ticks());
    program.0.kill().unwrap();
    let pid = program.0.id();
    while proc::stat::lives(pid) {
        std::thread::yield_now();
    }
    assert_eq!(others(&files, "a").look().unwrap(), None);
}

#[test]
fn a_file_that_is_being_written_is_waited_for_and_odd_names_are_passed_over() {
    let temp = tempfile::tempdir().unwrap();
    let (files, program) = (files(temp.path()), Program::new());
    let (pid, ticks) = (program.0.id(), program.ticks());
    for name in ["p-x.json", "7.json", "p-7.key", "p--1.json"] {
        std::fs::write(temp.path().join(name), "{}").unwrap();
    }
    std::fs::write(files.file_of(pid), r#"{"id":"a","#).unwrap();
    assert_eq!(files.of_agent(pid).unwrap(), (pid, IdFileReading::Torn));
    let writing = files.clone();
    let writer = std::thread::spawn(move || say(&writing, pid, "a", ticks));
    assert_eq!(others(&files, "a").look().unwrap().map(|found| found.pid), Some(pid));
    writer.join().unwrap();
}

#[test]
fn a_folder_that_cannot_be_read_is_an_error_and_one_that_is_missing_is_empty() {
    let temp = tempfile::tempdir().unwrap();
    assert_eq!(others(&files(&temp.path().join("none")), "a").look().unwrap(), None);
    let link = temp.path().join("loop");
    std::os::unix::fs::symlink(&link, &link).unwrap();
    assert!(others(&files(&link), "a").look().is_err());
}

#[test]
fn a_program_behind_a_launcher_is_found_below_it() {
    let temp = tempfile::tempdir().unwrap();
    let (files, program) = (files(temp.path()), Program::new());
    let own = std::process::id();
    assert_eq!(files.of_agent(own).unwrap(), (own, IdFileReading::Absent));
    say(&files, program.0.id(), "a", program.ticks());
    let (_, IdFileReading::Said(said)) = files.of_agent(own).unwrap() else { panic!("it is there") };
    assert_eq!((said.session.as_deref(), said.does), (Some("a"), Some(Does::Working)));
    // The agent's own file comes first.
    say(&files, own, "b", started(own).unwrap().unwrap());
    let (_, IdFileReading::Said(said)) = files.of_agent(own).unwrap() else { panic!("it is there") };
    assert_eq!(said.session.as_deref(), Some("b"));
}

/// The vendor's daemon, with the files of Claude Code's.
fn daemon(folder: &Path) -> VendorDaemonFiles {
    let keys = pinfold_agents::preset::shipped("claude").unwrap().preset().vendor_daemon.unwrap();
    VendorDaemonFiles { file: folder.join("lock"), roster: folder.join("roster"), keys }
}

fn is(daemon: &VendorDaemonFiles, pid: u32, start: u64) {
    std::fs::write(&daemon.file, format!(r#"{{"pid":{pid},"procStart":"{start}"}}"#)).unwrap();
}

fn keeps(daemon: &VendorDaemonFiles, session: &str) {
    let text = format!(r#"{{"workers":{{"1":{{"pid":1,"sessionId":"{session}"}}}}}}"#);
    std::fs::write(&daemon.roster, text).unwrap();
}

#[test]
fn the_vendors_daemon_has_what_it_keeps_also_while_no_process_is_in_it() {
    let temp = tempfile::tempdir().unwrap();
    let (files, daemon, mut program) = (files(temp.path()), daemon(temp.path()), Program::new());
    let others = |session: &str| Others { daemon: Some(daemon.clone()), ..others(&files, session) };
    assert_eq!(others("a").look().unwrap(), None, "it was never started");
    keeps(&daemon, "a");
    assert_eq!(others("a").look().unwrap(), None, "a list of nobody says nothing");
    is(&daemon, program.0.id(), program.ticks());
    let found = others("a").look().unwrap().unwrap();
    assert_eq!((found.pid, found.told_by, found.command.as_str()), (program.0.id(), ToldBy::Roster, "cat"));
    assert_eq!((others("b").look().unwrap(), others("a").told_in(&found)), (None, daemon.roster.clone()));
    assert!(others("a").has(&found));
    keeps(&daemon, "b");
    assert!(!others("a").has(&found) && others("a").look().unwrap().is_none());
    keeps(&daemon, "a");
    program.end();
    assert!(
        !others("a").has(&found) && others("a").look().unwrap().is_none(),
        "the files of a killed daemon stay"
    );
}

#[test]
fn the_vendors_daemon_comes_before_the_process_that_it_keeps_and_that_comes_after_it() {
    let temp = tempfile::tempdir().unwrap();
    let (files, daemon) = (files(temp.path()), daemon(temp.path()));
    let (mut keeper, worker) = (Program::new(), Program::new());
    let others = Others { daemon: Some(daemon.clone()), ..others(&files, "a") };
    say(&files, worker.0.id(), "a", worker.ticks());
    keeps(&daemon, "a");
    is(&daemon, keeper.0.id(), keeper.ticks());
    assert_eq!(others.look().unwrap().map(|found| found.pid), Some(keeper.0.id()));
    keeper.end();
    assert_eq!(others.look().unwrap().map(|found| found.pid), Some(worker.0.id()));
}

#[test]
fn a_list_that_cannot_be_read_is_an_error_and_one_that_is_never_whole_says_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let (files, daemon, program) = (files(temp.path()), daemon(temp.path()), Program::new());
    let others = Others { daemon: Some(daemon.clone()), ..others(&files, "a") };
    is(&daemon, program.0.id(), program.ticks());
    std::fs::write(&daemon.roster, r#"{"workers":{"1":"#).unwrap();
    assert_eq!(others.look().unwrap(), None);
    std::fs::remove_file(&daemon.roster).unwrap();
    std::os::unix::fs::symlink(&daemon.roster, &daemon.roster).unwrap();
    assert!(others.look().is_err());
}
