//! Prints measurements in columns.

/// Rows of text, printed with aligned columns once the last one is known.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'a>(heads: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![heads.into_iter().map(str::to_owned).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Adds a row with a value of ours beside its peer's, and what it must not exceed.
    pub(crate) fn compare(&mut self, what: &str, ours: f64, peer: f64, unit: &str, must: &str) {
        let value = |value: f64| format!("{value:.2} {unit}");
        self.row([what.to_owned(), value(ours), value(peer), format!("{:.2}", ours / peer), must.to_owned()]);
    }

    pub(crate) fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
        let width =
            |column: usize| self.rows.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}  "));
            println!("{}", cells.collect::<String>().trim_end());
        }
    }
}

/// Returns the median.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    part(values, 0.5)
}

/// Returns the value that this share of all values does not exceed.
pub(crate) fn part(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() as f64 * part) as usize).min(values.len() - 1)]
}
