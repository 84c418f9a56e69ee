//! The account that a session's runs use: the credential, never by its value.
//!
//! It is `AGENT:NAME`. The name is the one from `[accounts]`, else `default` for the agent's usual folder,
//! else that of the folder or of the variable with the key, plus eight letters of a keyed hash of its value.
//! The hash key belongs to the home: what is shown or stored of an account does not help to guess a secret.

use crate::define::definition::{COMMAND, Definition, Preset};
use crate::define::variables::Variables;
use pinfold_kernel::random;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tracing::warn;

/// Endings of the names of variables that contain a key or a token.
const CREDENTIALS: [&str; 4] = ["_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN", "_ACCESS_TOKEN"];
/// Letters that cannot be mistaken for one another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// How much of a folder's name is shown.
const LONGEST: usize = 32;

/// The key of the hashes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HashKey([u64; 2]);

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl HashKey {
    /// The key of a home. One that cannot be stored serves this daemon only: accounts named by a hash get
    /// other names with the next.
    pub(crate) fn of_home(file: &Path) -> HashKey {
        HashKey::read_or_made(file).unwrap_or_else(|error| {
            warn!("{} cannot be used, and accounts get other names: {error}", file.display());
            random::bytes::<16>().map_or(HashKey::default(), HashKey::of)
        })
    }

    /// Reads the key, and makes one if the file is missing or too short.
    fn read_or_made(file: &Path) -> io::Result<HashKey> {
        match read(file) {
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::UnexpectedEof].contains(&error.kind()) => {
            }
            read => return read,
        }
        let bytes = random::bytes::<16>()?;
        let mut made = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
        made.write_all(&bytes)?;
        made.sync_all()?;
        read(file)
    }

    fn of(bytes: [u8; 16]) -> HashKey {
        let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        HashKey([half(0), half(8)])
    }

    /// Eight letters that stand for a value in this home and reveal nothing of it.
    fn letters(self, value: &str) -> String {
        let hash = siphash(self.0, value.as_bytes());
        let letter = |at: u32| char::from(LETTERS[(hash >> (5 * at) & 31) as usize]);
        (0..8).map(letter).collect()
    }
}

fn read(file: &Path) -> io::Result<HashKey> {
    let mut bytes = [0; 16];
    OpenOptions::new().read(true).open(file)?.read_exact(&mut bytes)?;
    Ok(HashKey::of(bytes))
}

/// The account of a session, from its definition; `None` for plain commands, of which pinfold knows nothing.
pub(crate) fn of(definition: &Definition, preset: Option<&Preset>, key: HashKey) -> Option<String> {
    let agent = definition.agent.as_str();
    if agent == COMMAND {
        return None;
    }
    let env = &definition.env;
    let name = by_variable(env, key).or_else(|| by_folder(env, preset, key));
    Some(format!("{agent}:{}", name.as_deref().unwrap_or("default")))
}

/// A key or token given to the session has precedence over what its agent has in a folder.
fn by_variable(env: &Variables, key: HashKey) -> Option<String> {
    let is_one = |name: &str| CREDENTIALS.iter().any(|end| name.ends_with(end));
    let given = env.given().iter().find(|(name, value)| is_one(name) && !value.is_empty());
    given.map(|(name, value)| format!("{name}-{}", key.letters(value)))
}

fn by_folder(env: &Variables, preset: Option<&Preset>, key: HashKey) -> Option<String> {
    let store = preset?.store.as_ref()?;
    let folder = env.get(&store.variable).filter(|folder| !folder.is_empty())?;
    let folder = folder.trim_end_matches('/');
    let usual = env.get("HOME").map(|home| format!("{}/{}", home.trim_end_matches('/'), store.default));
    let below = format!("{folder}/{}", store.below);
    if usual.as_deref() == Some(below.trim_end_matches('/')) {
        return None;
    }
    let name = folder.rsplit('/').next().unwrap_or(folder);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = name.chars().take(LONGEST).map(plain).collect();
    Some(format!("{}-{}", name.trim_matches('-'), key.letters(folder)))
}

/// SipHash-2-4: a keyed hash, small enough to include here.
fn siphash([k0, k1]: [u64; 2], bytes: &[u8]) -> u64 {
    let mut state = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = (bytes.len() & 0xff) as u8;
    for word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(*word);
        state[3] ^= word;
        rounds(&mut state, 2);
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    rounds(&mut state, 4);
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn rounds(state: &mut [u64; 4], count: u32) {
    let [mut a, mut b, mut c, mut d] = *state;
    for _ in 0..count {
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
    }
    *state = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinfold_api::request::NewSession;
    use serde_json::json;

    #[test]
    fn the_hash_is_siphash() {
        // Its authors' test vectors: key 00..0f, input 00, 00 01, ...
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let input: Vec<u8> = (0..16).collect();
        assert_eq!(siphash(key, &[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(siphash(key, &input[..8]), 0x93f5_f579_9a93_2462);
        assert_eq!(siphash(key, &input[..15]), 0xa129_ca61_49be_45e5);
    }

    fn account(agent: &str, env: &serde_json::Value, key: HashKey) -> Option<String> {
        let presets = crate::define::config::Config::default();
        let preset = presets.preset(agent);
        let command = if agent == "command" { json!(["true"]) } else { json!(null) };
        let request = json!({
            "agent": agent, "command": command, "dir": "/", "env": env, "caller_env": { "HOME": "/home/me" },
        });
        let request: NewSession = serde_json::from_value(request).unwrap();
        of(&Definition::new(&request, preset.as_ref()).unwrap(), preset.as_ref(), key)
    }

    #[test]
    fn an_account_is_named_by_folder_or_variable_and_never_by_a_secret() {
        let (one, other) = (HashKey([1, 2]), HashKey([1, 3]));
        let name = |env: serde_json::Value, key| account("claude", &env, key).unwrap();
        assert_eq!(name(json!({}), one), "claude:default");
        assert_eq!(name(json!({ "CLAUDE_CONFIG_DIR": "/home/me/.claude/" }), one), "claude:default");
        let work = name(json!({ "CLAUDE_CONFIG_DIR": "/home/me/.claude-work" }), one);
        assert!(work.starts_with("claude:claude-work-") && work.len() == 27, "{work}");
        assert_eq!(work, name(json!({ "CLAUDE_CONFIG_DIR": "/home/me/.claude-work/" }), one));
        let secret = name(json!({ "ANTHROPIC_API_KEY": "sk-secret" }), one);
        assert!(secret.starts_with("claude:ANTHROPIC_API_KEY-") && !secret.contains("sk-"), "{secret}");
        assert_ne!(secret, name(json!({ "ANTHROPIC_API_KEY": "sk-secret" }), other), "the key is the home's");
        assert_ne!(secret, name(json!({ "ANTHROPIC_API_KEY": "sk-another" }), one));
        assert_eq!(account("command", &json!({ "A_API_KEY": "x" }), one), None);
    }

    #[test]
    fn a_home_has_one_key_and_keeps_it_to_itself() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("account.key");
        let made = HashKey::of_home(&file);
        assert_eq!(HashKey::of_home(&file), made);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(made, HashKey::default());
        std::fs::write(&file, b"short").unwrap();
        let another = HashKey::of_home(&file);
        assert_ne!(another, made, "what was lost is made anew");
        assert_eq!(HashKey::of_home(&file), another);
        // If nothing can be written, the key is still random.
        let nowhere = folder.path().join("none/account.key");
        assert_ne!(HashKey::of_home(&nowhere), HashKey::of_home(&nowhere));
    }
}
