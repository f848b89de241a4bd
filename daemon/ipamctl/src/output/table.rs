//! Tables without lines, as wide as the terminal and no wider.
//!
//! A value is never cut: an address without its end is no address. Where the terminal is too narrow the
//! columns that can be missed are left out, the least needed one first. Into a pipe everything is written.

use comfy_table::{CellAlignment, ContentArrangement, TableStyle};

/// How far columns stand apart.
const GAP: u16 = 2;

/// One column.
#[derive(Debug, Clone)]
struct Column {
    title: String,
    right: bool,
    /// When it may be left out; the highest goes first, 0 always stays.
    spare: u8,
}

/// Rows under titles.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without columns.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a column of text that is always shown.
    pub(crate) fn text(self, title: impl Into<String>) -> Self {
        self.column(title, false, 0)
    }

    /// Adds a column of numbers that is always shown.
    pub(crate) fn number(self, title: impl Into<String>) -> Self {
        self.column(title, true, 0)
    }

    /// Adds a column of text that a narrow terminal does without; the highest `spare` goes first.
    pub(crate) fn spare(self, title: impl Into<String>, spare: u8) -> Self {
        self.column(title, false, spare)
    }

    fn column(mut self, title: impl Into<String>, right: bool, spare: u8) -> Self {
        self.columns.push(Column { title: title.into(), right, spare });
        self
    }

    /// Adds a row with one cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text, each line ended.
    pub(crate) fn render(&self, headers: bool, width: Option<usize>) -> String {
        let mut left_out = Vec::new();
        loop {
            let text = self.render_without(&left_out, headers);
            let fits = width.is_none_or(|width| text.lines().all(|line| line.chars().count() <= width));
            let next = self
                .columns
                .iter()
                .enumerate()
                .filter(|(index, column)| column.spare > 0 && !left_out.contains(index))
                .max_by_key(|(_, column)| column.spare);
            match next {
                Some((index, _)) if !fits => left_out.push(index),
                _ => return text,
            }
        }
    }

    fn render_without(&self, left_out: &[usize], headers: bool) -> String {
        let shown: Vec<(usize, &Column)> =
            self.columns.iter().enumerate().filter(|(index, _)| !left_out.contains(index)).collect();
        let mut table = comfy_table::Table::new();
        table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
        if headers {
            table.set_header(shown.iter().map(|(_, column)| &column.title));
        }
        for row in &self.rows {
            table.add_row(shown.iter().map(|(index, _)| row.get(*index).map_or("", String::as_str)));
        }
        for (column, (_, described)) in table.column_iter_mut().zip(&shown) {
            column.set_padding((0, GAP));
            column.set_cell_alignment(if described.right {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            });
        }
        if !headers && self.rows.is_empty() {
            return String::new();
        }
        let mut text = table.trim_fmt();
        text.push('\n');
        text
    }
}

/// Columns of the terminal. `COLUMNS` wins; else the terminal is asked.
pub(crate) fn terminal_width() -> Option<usize> {
    if let Some(columns) = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()) {
        return Some(columns).filter(|columns| *columns > 0);
    }
    let terminal = std::fs::File::open("/dev/tty").ok()?;
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new().text("NAME").number("FREE").spare("LABELS", 2).spare("SUBNET", 1);
        table.row(["web", "6", "team=web", "10.10.0.0/24"].map(str::to_owned));
        table.row(["build", "180", "", "10.10.1.0/24"].map(str::to_owned));
        table
    }

    #[test]
    fn columns_stand_under_their_titles() {
        assert_eq!(
            table().render(true, None),
            "NAME   FREE  LABELS    SUBNET\n\
             web       6  team=web  10.10.0.0/24\n\
             build   180            10.10.1.0/24\n"
        );
    }

    #[test]
    fn a_narrow_terminal_loses_columns_and_not_values() {
        assert_eq!(table().render(false, Some(30)), "web      6  10.10.0.0/24\nbuild  180  10.10.1.0/24\n");
        assert_eq!(table().render(false, Some(3)), "web      6\nbuild  180\n");
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(Table::new().text("NAME").render(false, None), "");
        assert_eq!(Table::new().text("NAME").render(true, None), "NAME\n");
    }
}
