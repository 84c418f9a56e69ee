//! Second processes without a second program: this one, started again to play one of its tests.

/// The command that runs one test and shows what it prints.
pub(crate) fn words(test: &str) -> [String; 5] {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    // With one thread, which is usual on one processor, the runner prints the test's name on its first line.
    [&program, "--exact", test, "--nocapture", "--test-threads=2"].map(str::to_owned)
}
