//! What a bench found: one row a number, as a table for people and JSON for programs.

use std::fmt;

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Higher,
    Lower,
}

#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub value: f64,
    pub unit: &'static str,
    pub better: Better,
    /// What has to be reached.
    pub floor: Option<f64>,
    /// What is aimed at.
    pub goal: Option<f64>,
    /// The raw thing, measured in the same run.
    pub baseline: Option<f64>,
    /// Value by baseline, from pairs measured one right after the other.
    pub ratio: Option<f64>,
}

impl Row {
    pub fn new(value: f64, unit: &'static str, better: Better) -> Row {
        Row { value, unit, better, floor: None, goal: None, baseline: None, ratio: None }
    }

    /// The middle of the values, of the baselines, and of the ratios of the pairs (value, baseline).
    pub fn of_pairs(pairs: &[(f64, f64)], unit: &'static str, better: Better) -> Row {
        let value = median(pairs.iter().map(|pair| pair.0));
        let baseline = Some(median(pairs.iter().map(|pair| pair.1)));
        let ratio = Some(median(pairs.iter().map(|pair| pair.0 / pair.1)));
        Row { baseline, ratio, ..Row::new(value, unit, better) }
    }

    fn reaches(&self, bound: f64) -> bool {
        match self.better {
            Better::Higher => self.value >= bound,
            Better::Lower => self.value <= bound,
        }
    }

    fn verdict(&self) -> &'static str {
        let reached = |bound: Option<f64>| bound.is_some_and(|bound| self.reaches(bound));
        if reached(self.goal) {
            "goal"
        } else if self.floor.is_none() {
            ""
        } else if reached(self.floor) {
            "floor"
        } else {
            "BELOW"
        }
    }
}

/// The middle one; 0 of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Named rows in the order they were measured.
#[derive(Debug, Default)]
pub struct Rows(Vec<(String, Row)>);

impl Rows {
    pub fn add(&mut self, name: impl Into<String>, row: Row) {
        self.0.push((name.into(), row));
    }

    pub fn below_floor(&self) -> Vec<&str> {
        let missed = |row: &Row| row.floor.is_some_and(|floor| !row.reaches(floor));
        self.0.iter().filter(|(_, row)| missed(row)).map(|(name, _)| name.as_str()).collect()
    }

    pub fn json(&self) -> Result<String> {
        let mut all = Map::new();
        for (name, row) in &self.0 {
            all.insert(name.clone(), serde_json::to_value(row)?);
        }
        Ok(format!("{}\n", serde_json::to_string_pretty(&Value::Object(all))?))
    }

    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_header(["row", "value", "unit", "better", "floor", "goal", "baseline", "ratio", "reached"]);
        for (name, row) in &self.0 {
            let better = match row.better {
                Better::Higher => "higher",
                Better::Lower => "lower",
            };
            let ratio = row.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
            table.add_row([
                name.clone(),
                Number(Some(row.value)).to_string(),
                row.unit.to_owned(),
                better.to_owned(),
                Number(row.floor).to_string(),
                Number(row.goal).to_string(),
                Number(row.baseline).to_string(),
                ratio,
                row.verdict().to_owned(),
            ]);
        }
        for index in [1, 4, 5, 6, 7] {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

/// As many digits as a reader can use, with commas for thousands.
struct Number(Option<f64>);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(number) = self.0 else { return Ok(()) };
        if number.abs() < 100.0 {
            return write!(f, "{number:.2}");
        }
        let digits = format!("{:.0}", number.abs());
        if number < 0.0 {
            f.write_str("-")?;
        }
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index) % 3 == 0 {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64, better: Better) -> Row {
        Row { floor: Some(10.0), ..Row::new(value, "ms", better) }
    }

    #[test]
    fn a_floor_is_below_or_above_depending_on_what_is_better() {
        let mut rows = Rows::default();
        rows.add("slow", row(11.0, Better::Lower));
        rows.add("quick", row(9.0, Better::Lower));
        rows.add("few", row(9.0, Better::Higher));
        rows.add("many", row(11.0, Better::Higher));
        assert_eq!(rows.below_floor(), ["slow", "few"]);
    }

    #[test]
    fn a_row_is_json_with_every_field() {
        let mut rows = Rows::default();
        rows.add("append", Row::of_pairs(&[(2.0, 1.0), (9.0, 3.0), (6.0, 2.0)], "1/s", Better::Higher));
        let json: Value = serde_json::from_str(&rows.json().expect("JSON")).expect("JSON");
        let expected = serde_json::json!({ "append": { "value": 6.0, "unit": "1/s", "better": "higher", "floor": null,
                                           "goal": null, "baseline": 2.0, "ratio": 3.0 } });
        assert_eq!(json, expected);
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(Number(Some(1_234_567.4)).to_string(), "1,234,567");
        assert_eq!(Number(Some(123.0)).to_string(), "123");
        assert_eq!(Number(Some(0.128)).to_string(), "0.13");
    }
}
