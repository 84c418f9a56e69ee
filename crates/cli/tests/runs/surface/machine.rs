//! What differs between machines: their kernels' capabilities, their names, and the version of this program.

use std::fmt::Write;

/// The text with placeholders for what another machine, or the next version, would say.
pub(super) fn named(text: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let text = text.replace(&format!("pinfold {version}"), "pinfold [version]");
    let text = text.replace(&format!("\"version\":\"{version}\""), "\"version\":\"[version]\"");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let text = text.replace(&format!("\"host\":\"{}\"", host.trim()), "\"host\":\"[host]\"");
    let mut lines = Lines { able: None, metric: String::new() };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        if let Some(line) = lines.named(line) {
            _ = write!(out, "{line}{end}");
        }
    }
    out
}

/// Metrics whose values depend on the machine.
const MEASURED: [&str; 2] = ["process_resident_memory_bytes", "pinfold_database_bytes"];

/// What the lines before say about the next one.
struct Lines {
    /// The indentation of the object with the kernel's capabilities.
    able: Option<usize>,
    /// The metric whose value comes next.
    metric: String,
}

impl Lines {
    /// A line as shown; `None` for one that exists only on some machines.
    fn named(&mut self, line: &str) -> Option<String> {
        let field = line.trim_start();
        let indent = line.len() - field.len();
        if self.able == Some(indent) {
            self.able = None;
        }
        if field.starts_with("\"capabilities\":{") {
            self.able = Some(indent);
        }
        if let Some(metric) = field.strip_prefix("\"name\":\"") {
            metric.trim_end_matches(['"', ',']).clone_into(&mut self.metric);
        }
        match field.split_once(':') {
            Some((name @ ("\"available\"" | "\"detail\"" | "\"bytes\""), value)) if self.able.is_some() => {
                Some(format!("{}{name}:[machine]{}", &line[..indent], comma(value)))
            }
            Some((name @ "\"contained\"", value)) => {
                Some(format!("{}{name}:[machine]{}", &line[..indent], comma(value)))
            }
            Some(("\"value\"", value)) if MEASURED.contains(&self.metric.as_str()) => {
                Some(format!("{}\"value\":[bytes]{}", &line[..indent], comma(value)))
            }
            _ if line.starts_with("contained  ") => None,
            _ if line.starts_with("pinfold_database_bytes{") => {
                let (label, _) = line.rsplit_once(' ')?;
                Some(format!("{label} [bytes]"))
            }
            _ => Some(ability(line).unwrap_or_else(|| line.to_owned())),
        }
    }
}

fn comma(value: &str) -> &str {
    if value.ends_with(',') { "," } else { "" }
}

/// A line of `status` about a capability: `pidfd           yes: ...`.
fn ability(line: &str) -> Option<String> {
    let (name, rest) = line.split_once("  ")?;
    let word = rest.trim_start();
    let told = word.starts_with("yes: ") || word.starts_with("no: ");
    let pad = &rest[..rest.len() - word.len()];
    (told && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
        .then(|| format!("{name}  {pad}[machine]"))
}

#[test]
fn what_a_kernel_can_do_is_named_and_the_rest_is_not() {
    let text = "{\n  \"capabilities\":{\n    \"pidfd\":{\n      \"available\":true,\n      \"detail\":\"x: y\"\n    }\n  },\n  \"bytes\":1\n}";
    let shown = text.replace(":true", ":[machine]").replace(":\"x: y\"", ":[machine]");
    assert_eq!(named(text), shown);
    assert_eq!(
        named("pidfd           yes: ends\nsessions  none\n"),
        "pidfd           [machine]\nsessions  none\n"
    );
    assert_eq!(named("name       a\ncontained  yes\n"), "name       a\n");
}
