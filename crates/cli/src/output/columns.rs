//! Tables that choose their columns by worth: those that fit are shown, and the sentence at the end gets room first.

use super::table::{Paper, TableCell, columns, cut, cut_front};

/// Below this width, the sentence at the end is worth more than any other column.
const SENTENCE: usize = 24;

/// What happens to a column when there is little room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worth {
    /// Always shown. Cut at its end only as a last resort, to this width at least.
    Needed(usize),
    /// Dropped when the sentence has no room, lower numbers first.
    Wanted(u8),
    /// Like `Wanted`, but first cut at its front, to a few columns at least.
    Path(u8),
    /// Shown only if everything else fits.
    Extra,
    /// The last column, which gets the remaining width.
    Sentence,
}

/// This much of a path's end is enough to recognise it.
const PATH: usize = 12;

impl Paper {
    /// A table of the columns that fit, each with its head and its worth.
    pub(crate) fn fitted<const N: usize>(
        self,
        heads: [(&str, Worth); N],
        rows: &[[TableCell<'_>; N]],
    ) -> String {
        let Some(width) = self.width() else { return self.table(heads.map(|(head, _)| head), rows) };
        let rows: Vec<Vec<TableCell<'_>>> = rows.iter().map(|row| TableCell::visible(row)).collect();
        let natural: [usize; N] = std::array::from_fn(|column| {
            let cells = rows.iter().map(|row| columns(&row[column].text));
            cells.chain([heads[column].0.len()]).max().unwrap_or(0)
        });
        let widths = fit(&heads.map(|(_, worth)| worth), &natural, width);
        let shown = |text: &str, column: usize| match (widths[column], heads[column].1) {
            (Some(room), Worth::Path(_)) if columns(text) > room => cut_front(text, room),
            (Some(room), _) if columns(text) > room => cut(text, room).into_owned(),
            (Some(_) | None, _) => text.to_owned(),
        };
        let kept: Vec<usize> = (0..N).filter(|column| widths[*column].is_some()).collect();
        let names: Vec<&str> = kept.iter().map(|column| heads[*column].0).collect();
        let rows: Vec<Vec<TableCell<'_>>> = rows
            .iter()
            .map(|row| {
                let cell = |column: &usize| TableCell {
                    text: shown(&row[*column].text, *column).into(),
                    shade: row[*column].shade,
                };
                kept.iter().map(cell).collect()
            })
            .collect();
        self.lines(&names, &rows)
    }
}

/// The width of each column; `None` if it is not shown.
pub(crate) fn fit<const N: usize>(
    worth: &[Worth; N],
    natural: &[usize; N],
    width: usize,
) -> [Option<usize>; N] {
    let mut widths: [Option<usize>; N] =
        std::array::from_fn(|column| (worth[column] != Worth::Extra).then_some(natural[column]));
    let last = N - 1;
    let sentence = natural[last];
    let room = |widths: &[Option<usize>; N]| {
        let others = widths.iter().take(last).flatten().map(|width| width + 2).sum::<usize>();
        width.saturating_sub(others)
    };
    // Paths give up their excess width first.
    for column in 0..last {
        if let (Worth::Path(_), Some(own)) = (worth[column], widths[column]) {
            let missing = sentence.saturating_sub(room(&widths));
            widths[column] = Some(own.saturating_sub(missing).max(own.min(PATH)));
        }
    }
    let enough = sentence.min(SENTENCE);
    while room(&widths) < enough {
        let least =
            (0..last).filter(|column| widths[*column].is_some()).filter_map(|column| match worth[column] {
                Worth::Wanted(order) | Worth::Path(order) => Some((order, column)),
                Worth::Needed(_) | Worth::Extra | Worth::Sentence => None,
            });
        let Some((_, column)) = least.min() else { break };
        widths[column] = None;
    }
    for column in 0..last {
        if let (Worth::Needed(least), Some(own)) = (worth[column], widths[column]) {
            let missing = enough.saturating_sub(room(&widths));
            widths[column] = Some(own.saturating_sub(missing).max(own.min(least)));
        }
    }
    for column in (0..last).filter(|column| worth[*column] == Worth::Extra) {
        if room(&widths) >= sentence + natural[column] + 2 {
            widths[column] = Some(natural[column]);
        }
    }
    widths[last] = Some(room(&widths));
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORTH: [Worth; 6] =
        [Worth::Needed(8), Worth::Needed(7), Worth::Wanted(2), Worth::Path(1), Worth::Extra, Worth::Sentence];

    #[test]
    fn the_sentence_has_the_room_first_and_no_line_is_too_long() {
        let natural = [10, 7, 8, 30, 24, 60];
        let rows = [
            (200, [Some(10), Some(7), Some(8), Some(30), Some(24), Some(111)]),
            (140, [Some(10), Some(7), Some(8), Some(30), None, Some(77)]),
            (120, [Some(10), Some(7), Some(8), Some(27), None, Some(60)]),
            (80, [Some(10), Some(7), Some(8), Some(12), None, Some(35)]),
            (60, [Some(10), Some(7), Some(8), None, None, Some(29)]),
            (50, [Some(10), Some(7), None, None, None, Some(29)]),
            (40, [Some(8), Some(7), None, None, None, Some(21)]),
        ];
        for (width, expected) in rows {
            assert_eq!(fit(&WORTH, &natural, width), expected, "{width}");
        }
    }

    #[test]
    fn where_everything_fits_everything_is_shown() {
        let shown = fit(&WORTH, &[3, 7, 4, 5, 5, 3], 80);
        assert!(shown.iter().all(Option::is_some), "{shown:?}");
    }
}
