//! Tables without lines, as wide as the terminal and no wider.
//!
//! A value is never truncated, because a part of an address is useless. On a narrow terminal, columns are
//! omitted, the least important first. Output into a pipe has all columns.

use std::fmt::Display;

use comfy_table::{CellAlignment, ContentArrangement, TableStyle};

/// Distance between columns.
const GAP: u16 = 2;

/// One column.
#[derive(Debug, Clone)]
struct Column {
    title: String,
    right: bool,
    /// Rank of omission: the highest is omitted first, and 0 never.
    spare: u8,
}

/// Rows under titles.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// Builder of a table, column by column, with one row per item.
pub(crate) struct Rows<'a, Item> {
    items: &'a [Item],
    wanted: bool,
    table: Table,
}

impl<'a, Item> Rows<'a, Item> {
    /// Adds a column of text that is always shown.
    pub(crate) fn text<Cell: Display>(self, title: impl Display, cell: impl Fn(&'a Item) -> Cell) -> Self {
        self.column(Column { title: title.to_string(), right: false, spare: 0 }, cell)
    }

    /// Adds a column of numbers that is always shown.
    pub(crate) fn number<Cell: Display>(self, title: impl Display, cell: impl Fn(&'a Item) -> Cell) -> Self {
        self.column(Column { title: title.to_string(), right: true, spare: 0 }, cell)
    }

    /// Adds a column of text that a narrow terminal omits, the highest `spare` first.
    pub(crate) fn spare<Cell: Display>(
        self,
        title: &str,
        spare: u8,
        cell: impl Fn(&'a Item) -> Cell,
    ) -> Self {
        self.column(Column { title: title.to_owned(), right: false, spare }, cell)
    }

    /// Adds the following columns only if `wanted` is true.
    pub(crate) fn only_if(mut self, wanted: bool) -> Self {
        self.wanted = wanted;
        self
    }

    fn column<Cell: Display>(mut self, column: Column, cell: impl Fn(&'a Item) -> Cell) -> Self {
        if self.wanted {
            self.table.columns.push(column);
            for (row, item) in self.table.rows.iter_mut().zip(self.items) {
                row.push(cell(item).to_string());
            }
        }
        self
    }

    /// The table.
    pub(crate) fn table(self) -> Table {
        self.table
    }
}

impl Table {
    /// Begins a table of items.
    pub(crate) fn of<Item>(items: &[Item]) -> Rows<'_, Item> {
        let rows = vec![Vec::new(); items.len()];
        Rows { items, wanted: true, table: Table { columns: Vec::new(), rows } }
    }

    /// A table without titles.
    pub(crate) fn untitled<const N: usize>(rows: impl IntoIterator<Item = [String; N]>) -> Self {
        let columns = vec![Column { title: String::new(), right: false, spare: 0 }; N];
        Self { columns, rows: rows.into_iter().map(Vec::from).collect() }
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

/// Width of the terminal in columns, from `COLUMNS` or else from the terminal itself.
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
        let rows = [["web", "6", "team=web", "10.10.0.0/24"], ["build", "180", "", "10.10.1.0/24"]];
        Table::of(&rows)
            .text("NAME", |row| row[0])
            .number("FREE", |row| row[1])
            .spare("LABELS", 2, |row| row[2])
            .only_if(false)
            .text("NOT WANTED", |row| row[0])
            .only_if(true)
            .spare("SUBNET", 1, |row| row[3])
            .table()
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
        let nothing = Table::of(&[]).text("NAME", |name: &String| name).table();
        assert_eq!(
            (nothing.render(false, None), nothing.render(true, None)),
            (String::new(), "NAME\n".into())
        );
    }
}
