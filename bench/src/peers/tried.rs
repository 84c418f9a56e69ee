//! A supervisor that cannot be measured does not end the run: it gets a row with the reason.

use crate::table::Table;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A measurement, or the reason why there is none.
pub(crate) type Tried<T> = Result<T, String>;

/// Measures; if that panics, returns what the panic printed.
pub(crate) fn tried<T>(measure: impl FnOnce() -> T) -> Tried<T> {
    catch_unwind(AssertUnwindSafe(measure)).map_err(|panic| reason(panic.as_ref()))
}

fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
    text.lines().next().unwrap_or_default().to_owned()
}

/// Returns the text of each cell, `failed` if there was no measurement.
pub(crate) fn cells<T>(all: &[Tried<T>], cell: impl Fn(&T) -> String) -> Vec<String> {
    all.iter().map(|one| one.as_ref().map_or_else(|_| "failed".to_owned(), &cell)).collect()
}

/// Adds a row for each supervisor that could not be measured.
pub(crate) fn reasons<T>(table: &mut Table, names: &[&str], all: &[Tried<T>]) {
    for (name, one) in names.iter().zip(all) {
        if let Err(reason) = one {
            super::row(table, &format!("  failed: {name}: {reason}"), [], "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_fails_is_a_row_with_the_reason() {
        let all =
            [tried(|| 1), tried(|| super::super::site::fail("443 of 1000 children started")), tried(|| 3)];
        assert_eq!(cells(&all, i32::to_string), ["1", "failed", "3"]);
        let mut table = Table::default();
        reasons(&mut table, &["pinfold", "s6", "runit"], &all);
        assert_eq!(table.rows(), [["  failed: s6: 443 of 1000 children started", ""]]);
    }
}
