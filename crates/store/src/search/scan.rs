//! Search without an index: everything is read. For stores in memory, which are small, and for stores without an index.

use super::{Hit, Indexed, SearchQuery, answered, is_shown, sent, told};
use crate::query::{EventQuery, MessagePlace, MessageQuery, Query, Read};
use crate::ulid::SessionId;
use std::collections::BTreeSet;

/// How many rows, and how many bytes of them, are read at a time.
const ROWS: u64 = 256;
const ROOM: usize = 1 << 20;

/// Adds what is found, best first.
pub(super) fn scan(
    reader: &dyn Query,
    there: &BTreeSet<SessionId>,
    wanted: &SearchQuery,
    hits: &mut Vec<Hit>,
) -> Read<Indexed> {
    let (mut found, mut seen) = (Vec::new(), 0);
    if !wanted.words.is_empty() {
        for session in there.iter().filter(|id| wanted.may_show(Some(**id))) {
            let query = MessageQuery { session: *session, state: None };
            let mut next = Some(MessagePlace::default());
            while let Some(after) = next {
                let part = reader.message_part(query, after, ROWS, ROOM)?;
                seen += part.rows.len() as u64;
                for message in part.rows.iter().filter(|message| message.damage.is_none()) {
                    found.extend(scored(sent(message, wanted), &message.text, wanted));
                    let answer = message.answer.as_deref().unwrap_or_default();
                    found.extend(scored(answered(message, wanted), answer, wanted));
                }
                next = part.next;
            }
        }
        let mut next = Some(0);
        while let Some(after) = next {
            let part = reader.event_part(&EventQuery::default(), after, ROWS, ROOM)?;
            seen += part.rows.len() as u64;
            for event in &part.rows {
                let hit = told(event, wanted).filter(|hit| is_shown(hit, there));
                found.extend(scored(hit, &event.why, wanted));
            }
            next = part.next;
        }
    }
    found.sort_by(|(one, hit), (other, other_hit)| other.total_cmp(one).then(other_hit.at.cmp(&hit.at)));
    hits.extend(found.into_iter().map(|(_, hit)| hit));
    Ok(Indexed { done: seen, total: seen })
}

/// Scores a match: the more often the words occur, and the shorter the text, the better.
fn scored(hit: Option<Hit>, text: &str, wanted: &SearchQuery) -> Option<(f64, Hit)> {
    let hit = hit?;
    let times = wanted.words.found_in(text).map_or(0, |place| place.times);
    #[expect(clippy::cast_precision_loss, reason = "it only orders them")]
    let score = times as f64 / (64.0 + text.len() as f64).sqrt();
    Some((score, hit))
}
