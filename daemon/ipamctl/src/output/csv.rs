//! `-o csv`: one row per item, one column per field, for spreadsheets.

use super::data::Data;

/// Items as CSV. The columns are `fields`, or the fields of all items in order of appearance.
pub(crate) fn text(items: &[Data], fields: &[String], headers: bool) -> Result<Vec<u8>, String> {
    let rows: Vec<Vec<(String, String)>> = items.iter().map(Data::flat).collect();
    let mut columns: Vec<String> = fields.to_vec();
    if columns.is_empty() {
        for (path, _) in rows.iter().flatten() {
            if !columns.contains(path) {
                columns.push(path.clone());
            }
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |row: Vec<&str>| writer.write_record(row).map_err(|error| error.to_string());
    if headers && !columns.is_empty() {
        write(columns.iter().map(String::as_str).collect())?;
    }
    for (item, row) in items.iter().zip(&rows) {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| match row.iter().find(|(path, _)| path == column) {
                Some((_, cell)) => cell.clone(),
                // A requested field may contain further fields.
                None => item.at(column).map(Data::cell).unwrap_or_default(),
            })
            .collect();
        write(cells.iter().map(String::as_str).collect())?;
    }
    writer.into_inner().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Data> {
        let one = br#"{"name":"web","labels":{"team":"web"},"ranges":["a-b","c"],"note":"x, \"y\""}"#;
        let two = br#"{"name":"lab","labels":{},"ranges":[],"free":6}"#;
        vec![Data::of(one).unwrap(), Data::of(two).unwrap()]
    }

    #[test]
    fn every_field_has_a_column() {
        assert_eq!(
            String::from_utf8(text(&items(), &[], true).unwrap()).unwrap(),
            "name,labels.team,ranges,note,free\nweb,web,a-b c,\"x, \"\"y\"\"\",\nlab,,,,6\n"
        );
    }

    #[test]
    fn only_the_fields_that_were_asked_for() {
        let fields = ["free".to_owned(), "labels".to_owned()];
        assert_eq!(
            String::from_utf8(text(&items(), &fields, false).unwrap()).unwrap(),
            ",\"{\"\"team\"\":\"\"web\"\"}\"\n6,{}\n"
        );
        assert!(text(&[], &[], true).unwrap().is_empty());
    }
}
