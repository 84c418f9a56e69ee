//! Prints measurements in columns.

/// Rows of text, printed with aligned columns when the last one is known.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<[String; 5]>,
}

impl Table {
    pub(crate) fn new(heads: [&str; 5]) -> Self {
        Self { rows: vec![heads.map(str::to_owned)] }
    }

    pub(crate) fn row(&mut self, cells: [String; 5]) {
        self.rows.push(cells);
    }

    /// A row of one measured value beside its peer, and what it must not exceed.
    pub(crate) fn compare(&mut self, what: &str, ours: f64, peer: f64, unit: &str, must: &str) {
        let value = |value: f64| format!("{value:.2} {unit}");
        self.row([what.to_owned(), value(ours), value(peer), format!("{:.2}", ours / peer), must.to_owned()]);
    }

    pub(crate) fn print(&self) {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 5] = std::array::from_fn(width);
        for row in &self.rows {
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}  "));
            println!("{}", cells.collect::<String>().trim_end());
        }
    }
}

/// The middle value.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
