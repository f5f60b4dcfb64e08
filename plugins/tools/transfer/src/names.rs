//! Names of tables and columns, read as the database reads them and written so that nothing but a name can be in them.
//!
//! A name without quotes is in lower case for PostgreSQL, as it is everywhere else in its SQL; one in double quotes, or
//! with a character that no name without quotes has, is what it is.

use noetl_sdk::Failure;

/// Whose SQL it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Postgres,
    Sqlite,
}

impl Dialect {
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }

    /// A table with the schema it may have in front: `public.orders`.
    pub fn table(self, written: &str) -> Result<String, Failure> {
        let parts = parts(written).filter(|parts| parts.len() <= 3).ok_or_else(|| {
            Failure::invalid_input(format_args!(
                "`target.table` is `{written}`, which is no name of a table; write `orders` or `public.orders`"
            ))
        })?;
        let parts: Vec<String> = parts.iter().map(|part| self.written(part)).collect();
        Ok(parts.join("."))
    }

    /// A column, as somebody wrote it.
    pub fn column(self, written: &str) -> String {
        match parts(written).as_deref() {
            Some([part]) => self.written(part),
            _ => quoted(written),
        }
    }

    fn written(self, part: &Part) -> String {
        match part {
            Part::Quoted(name) => quoted(name),
            Part::Plain(name) if self == Self::Postgres && is_plain(name) => quoted(&name.to_lowercase()),
            Part::Plain(name) => quoted(name),
        }
    }
}

/// A name that is exactly this one.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn is_plain(name: &str) -> bool {
    name.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$')
}

enum Part {
    Plain(String),
    Quoted(String),
}

/// What lies between the dots, if each part is a name: without quotes, or in them from end to end.
fn parts(written: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = written.trim();
    loop {
        let part = if let Some(inner) = rest.strip_prefix('"') {
            let (name, after) = closing(inner)?;
            rest = after;
            Part::Quoted(name)
        } else {
            let (name, after) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
            rest = after;
            Part::Plain(name.trim().to_owned())
        };
        let (Part::Plain(name) | Part::Quoted(name)) = &part;
        if name.is_empty() || name.contains('\0') || matches!(part, Part::Plain(_)) && name.contains('"') {
            return None;
        }
        parts.push(part);
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some(parts);
        }
        rest = rest.strip_prefix('.')?.trim_start();
    }
}

/// The name up to the quote that ends it, and what is behind that; two quotes are one of the name.
fn closing(inner: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = inner;
    loop {
        let (before, after) = rest.split_once('"')?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Some((name, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_sql_reads_it() {
        for (written, postgres, sqlite) in [
            ("orders", r#""orders""#, r#""orders""#),
            ("Public.Orders", r#""public"."orders""#, r#""Public"."Orders""#),
            (r#"public."Orders""#, r#""public"."Orders""#, r#""public"."Orders""#),
            (r#""a.b"."say ""hi""""#, r#""a.b"."say ""hi""""#, r#""a.b"."say ""hi""""#),
            ("order lines", r#""order lines""#, r#""order lines""#),
            ("t; DROP TABLE t", r#""t; DROP TABLE t""#, r#""t; DROP TABLE t""#),
        ] {
            assert_eq!(Dialect::Postgres.table(written).as_deref(), Ok(postgres), "{written}");
            assert_eq!(Dialect::Sqlite.table(written).as_deref(), Ok(sqlite), "{written}");
        }
        for wrong in ["", " ", ".", "a.", "a..b", "\"a", "a\"b", "\"a\"b", "a.b.c.d", "a\0"] {
            let refused = Dialect::Postgres.table(wrong).expect_err(wrong);
            assert_eq!(refused.code, "invalid_input", "{wrong:?}");
        }
    }

    #[test]
    fn a_column_is_one_name_whatever_is_in_it() {
        assert_eq!(Dialect::Postgres.column("userId"), r#""userid""#);
        assert_eq!(Dialect::Postgres.column("\"userId\""), r#""userId""#);
        assert_eq!(Dialect::Sqlite.column("userId"), r#""userId""#);
        assert_eq!(Dialect::Postgres.column("a.b"), r#""a.b""#);
        assert_eq!(Dialect::Postgres.column("x\") VALUES (1); --"), r#""x"") VALUES (1); --""#);
    }
}
