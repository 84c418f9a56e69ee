use super::*;
use crate::define::preset::{Does, PresetChanges};
use pinfold_core::RunNumber;
use pinfold_store::{SessionId, Ulid};
use std::time::Duration;
use tempfile::TempDir;

struct Ground {
    temp: TempDir,
    task: IdFileTask,
    told: mpsc::UnboundedReceiver<(Watched, Option<IdFile>)>,
}

impl Ground {
    fn new() -> Ground {
        let (sender, told) = mpsc::unbounded_channel();
        let task = IdFileTask::new(move |run, said| _ = sender.send((run, said)));
        Ground { temp: tempfile::tempdir().unwrap(), task, told }
    }

    fn files(&self) -> IdFiles {
        let keys = "[id_file_keys]\nstart_ticks = 'start'\nstatus = 'does'\nwords = { busy = 'working', idle = 'idle' }";
        let keys = PresetChanges::from_toml(keys).unwrap().preset().id_file_keys;
        let folder = self.temp.path().join("store/sessions");
        IdFiles { folder, around: (String::new(), ".json".to_owned()), keys }
    }

    /// Makes this process say what it does.
    fn say(&self, text: &str) {
        let files = self.files();
        std::fs::create_dir_all(&files.folder).unwrap();
        let own = std::process::id();
        let start = crate::define::id_files::started(own).unwrap().unwrap();
        let text = format!(r#"{{"start":{start},"does":"{text}"}}"#);
        std::fs::write(files.file_of(own), text).unwrap();
    }

    async fn next(&mut self) -> (Watched, Option<Does>) {
        let told = tokio::time::timeout(Duration::from_secs(10), self.told.recv()).await;
        let (run, said) = told.expect("it is told in time").unwrap();
        (run, said.and_then(|said| said.does))
    }
}

fn run(number: u64) -> Watched {
    (SessionId(Ulid::new(0, 1)), RunNumber(number))
}

#[tokio::test]
async fn what_a_program_says_is_told_at_once_and_when_it_changes() {
    let mut ground = Ground::new();
    ground.say("busy");
    ground.task.watch(run(1), ground.files(), std::process::id());
    assert_eq!(ground.next().await, (run(1), Some(Does::Working)));
    ground.say("idle");
    assert_eq!(ground.next().await, (run(1), Some(Does::Idle)));
    std::fs::remove_file(ground.files().file_of(std::process::id())).unwrap();
    assert_eq!(ground.next().await, (run(1), None));
}

#[tokio::test]
async fn a_folder_that_is_made_later_is_watched_then() {
    let mut ground = Ground::new();
    ground.task.watch(run(1), ground.files(), std::process::id());
    assert_eq!(ground.next().await, (run(1), None), "the first word comes whatever is found");
    ground.say("busy");
    assert_eq!(ground.next().await, (run(1), Some(Does::Working)));
    ground.say("idle");
    assert_eq!(ground.next().await, (run(1), Some(Does::Idle)));
}

#[tokio::test]
async fn a_file_that_is_half_written_says_what_it_said_before() {
    let mut ground = Ground::new();
    ground.say("busy");
    ground.task.watch(run(1), ground.files(), std::process::id());
    assert_eq!(ground.next().await, (run(1), Some(Does::Working)));
    std::fs::write(ground.files().file_of(std::process::id()), "{").unwrap();
    // Another run is told as soon as that was seen.
    ground.task.watch(run(2), ground.files(), std::process::id());
    assert_eq!(ground.next().await, (run(2), None));
    ground.say("idle");
    let mut told = [ground.next().await, ground.next().await];
    told.sort_unstable_by_key(|(run, _)| *run);
    assert_eq!(told, [(run(1), Some(Does::Idle)), (run(2), Some(Does::Idle))]);
}

#[tokio::test]
async fn a_run_that_is_forgotten_is_told_of_no_more() {
    let mut ground = Ground::new();
    ground.say("busy");
    for number in [1, 2] {
        ground.task.watch(run(number), ground.files(), std::process::id());
        assert_eq!(ground.next().await, (run(number), Some(Does::Working)));
    }
    ground.task.forget(run(1));
    ground.say("idle");
    assert_eq!(ground.next().await, (run(2), Some(Does::Idle)));
    assert!(ground.told.try_recv().is_err());
}
