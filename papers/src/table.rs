//! Tables of results, written as TSV and shown as Markdown.

use std::fmt::Write as _;

/// Named columns and rows of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table with these columns.
    pub fn new<C: Into<String>>(columns: impl IntoIterator<Item = C>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the number of cells differs from the number of columns.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        // Tabs and line ends would break the file that the table becomes.
        let row: Vec<String> = cells.into_iter().map(|cell| cell.into().replace(['\t', '\n'], " ")).collect();
        assert_eq!(row.len(), self.columns.len(), "a row of {row:?} under {:?}", self.columns);
        self.rows.push(row);
    }

    /// Returns the position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Returns the rows.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Returns the table as tab-separated text, names first.
    pub fn to_tsv(&self) -> String {
        let mut tsv = String::new();
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            // Writing to a string does not fail.
            let _ = writeln!(tsv, "{}", row.join("\t"));
        }
        tsv
    }

    /// Reads what [`Self::to_tsv`] wrote.
    pub fn from_tsv(tsv: &str) -> Self {
        let cells = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = tsv.lines();
        let mut table = Self::new(lines.next().map(cells).unwrap_or_default());
        lines.for_each(|line| table.row(cells(line)));
        table
    }

    /// Returns the table as Markdown.
    pub fn to_markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = format!("|{}\n", "---|".repeat(self.columns.len()));
        line(&self.columns) + &rule + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }
}

/// Returns a table's first column as a numbered list in Markdown.
pub fn numbered_list(table: &Table) -> String {
    let lines = (1..).zip(table.rows()).map(|(number, row)| format!("{number}. {}\n", row[0]));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_survive_a_round_trip() {
        let mut table = Table::new(["n", "rate"]);
        table.row(["1,000", "a|b\tc"]);
        assert_eq!(Table::from_tsv(&table.to_tsv()), table);
        assert_eq!(table.to_markdown(), "| n | rate |\n|---|---|\n| 1,000 | a\\|b c |\n");
    }
}
