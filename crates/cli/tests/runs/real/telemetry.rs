//! What agents export by themselves carries the session and the run that it is of.

use super::collector::{Collector, Item};
use super::stage::Stage;
use crate::processes;

/// The session and the run as pinfold calls them, and where their spans belong: the trace, and the span above.
struct Known {
    session: String,
    run: String,
    trace: String,
    span: String,
}

impl Known {
    fn of(stage: &Stage) -> Known {
        let shown = stage.show();
        let parent = processes::variable(stage.pid(), "TRACEPARENT").unwrap();
        let [_, trace, span, _] = parent.split('-').collect::<Vec<_>>()[..] else { panic!("{parent}") };
        let word = |name: &str| shown[name].as_str().unwrap().to_owned();
        Known { session: word("id"), run: word("run"), trace: trace.to_owned(), span: span.to_owned() }
    }

    #[track_caller]
    fn is_named_by(&self, item: &Item) {
        let of = |name: &str| item.resource.get(name).map(String::as_str);
        assert_eq!(
            ["pinfold.session", "pinfold.session.id", "pinfold.run"].map(of),
            [Some("api"), Some(&*self.session), Some(&*self.run)],
            "{item:?}"
        );
    }

    /// It is of the run's trace, too.
    #[track_caller]
    fn is_joined_by(&self, item: &Item) {
        self.is_named_by(item);
        assert_eq!(item.trace.as_deref(), Some(&*self.trace), "{item:?}");
    }
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn claude_exports_with_the_session_the_run_and_its_trace() {
    let collector = Collector::start();
    let stage = Stage::new("claude")
        .with("CLAUDE_CODE_ENABLE_TELEMETRY", Some("1"))
        .with("CLAUDE_CODE_ENHANCED_TELEMETRY_BETA", Some("1"));
    let endpoint = format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{}", collector.port);
    let variables = [
        &*endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
        "OTEL_METRICS_EXPORTER=otlp",
        "OTEL_LOGS_EXPORTER=otlp",
        "OTEL_TRACES_EXPORTER=otlp",
        "OTEL_METRIC_EXPORT_INTERVAL=1000",
        "OTEL_LOGS_EXPORT_INTERVAL=500",
    ];
    stage.new_session_with(&variables.map(|variable| ["--env", variable]).concat());
    stage.says("TURN-one");
    let known = Known::of(&stage);
    let turn = collector.has("spans", "claude_code.interaction");
    assert_eq!(turn.parent.as_deref(), Some(&*known.span));
    known.is_joined_by(&turn);
    known.is_joined_by(&collector.has("spans", "claude_code.llm_request"));
    known.is_joined_by(&collector.has("logRecords", "user_prompt"));
    known.is_joined_by(&collector.has("logRecords", "api_request"));
    known.is_named_by(&collector.has("metrics", "claude_code.token.usage"));
    stage.shown("telemetry with session, run and trace");
}

#[test]
#[ignore = "takes long: `./test --full` runs it"]
fn codex_exports_with_the_session_the_run_and_its_trace() {
    let collector = Collector::start();
    let stage = Stage::new("codex");
    let config = stage.world.path("user/.codex/config.toml");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text += "[otel]\n";
    for (exporter, signal) in
        [("exporter", "logs"), ("trace_exporter", "traces"), ("metrics_exporter", "metrics")]
    {
        let endpoint = format!("http://127.0.0.1:{}/v1/{signal}", collector.port);
        text +=
            &format!("{exporter} = {{ otlp-http = {{ endpoint = \"{endpoint}\", protocol = \"json\" }} }}\n");
    }
    std::fs::write(&config, text).unwrap();
    stage.new_session();
    stage.says("TURN-one");
    let known = Known::of(&stage);
    let turn = collector.has("spans", "turn/start");
    assert_eq!(turn.parent.as_deref(), Some(&*known.span));
    known.is_joined_by(&turn);
    known.is_joined_by(&collector.has("logRecords", "codex.user_prompt"));
    known.is_joined_by(&collector.has("logRecords", "codex.api_request"));
    known.is_named_by(&collector.has("metrics", "codex.turn.token_usage"));
    stage.shown("telemetry with session, run and trace");
}
