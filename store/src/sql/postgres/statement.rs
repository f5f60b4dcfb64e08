//! One statement: described, bound, executed.
//!
//! Whatever the server gives rows for has rows: what a statement begins with is not looked at. After an error of the
//! server the exchange is brought to its end, so that the connection can be used again.

use std::collections::{BTreeSet, HashMap};
use std::str;
use std::sync::Arc;

use bytes::BufMut as _;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::{DataRowBody, ErrorResponseBody, Message};
use postgres_protocol::message::frontend::{self, BindError};
use postgres_protocol::{IsNull, Oid};
use serde_json::Value;

use super::super::cells::{Cell, Collector};
use super::super::{Bounds, Column, Done, Hidden, SqlError};
use super::pool::Pool;
use super::types::{Kind, Type, bound, known};
use super::wire::{Connection, fault, out_of_turn, unwritable};
use crate::payloads::Payloads;

/// A statement with its values.
pub(super) struct Statement<'v> {
    /// Counted from 1.
    pub(super) number: u32,
    pub(super) text: String,
    pub(super) values: Vec<&'v Value>,
    /// The numbers its author gave the values, if they are not counted from 1.
    pub(super) places: Vec<usize>,
}

/// What becomes of its rows.
pub(super) struct Taking<'t> {
    pub(super) objects: bool,
    pub(super) bounds: Bounds,
    pub(super) hidden: &'t Hidden,
    pub(super) payloads: &'t Payloads,
}

/// What a statement takes and gives.
#[derive(Default)]
struct Described {
    parameters: Vec<Oid>,
    /// Nothing for a statement without rows.
    columns: Option<Vec<(String, Oid)>>,
}

impl Statement<'_> {
    /// What it came to, and the state of the transaction after it.
    pub(super) async fn run(
        &self,
        connection: &mut Connection,
        pool: &Pool,
        taking: &Taking<'_>,
    ) -> Result<(Done, u8), SqlError> {
        let described = self.describe(connection).await?;
        let given = described.columns.iter().flatten().map(|(_, oid)| *oid);
        let types = types(connection, pool, described.parameters.iter().copied().chain(given).collect()).await?;
        let values = match self.bind(&described, &types) {
            Ok(values) => values,
            Err(error) => {
                // Nothing was executed; the exchange still has to end.
                frontend::sync(&mut connection.outgoing);
                connection.send().await?;
                finish(connection, None).await?;
                return Err(error);
            }
        };
        let serialise = |value: Option<String>, out: &mut bytes::BytesMut| match value {
            None => Ok(IsNull::Yes),
            Some(text) => {
                out.put_slice(text.as_bytes());
                Ok(IsNull::No)
            }
        };
        // No formats at all means text for all of them.
        frontend::bind("", "", [], values, serialise, [], &mut connection.outgoing).map_err(|error| match error {
            BindError::Conversion(error) => SqlError::Invalid(error.to_string()),
            BindError::Serialization(error) => unwritable(error),
        })?;
        frontend::execute("", 0, &mut connection.outgoing).map_err(unwritable)?;
        frontend::sync(&mut connection.outgoing);
        connection.send().await?;
        self.answer(connection, described, &types, taking).await
    }

    async fn describe(&self, connection: &mut Connection) -> Result<Described, SqlError> {
        frontend::parse("", &self.text, [], &mut connection.outgoing).map_err(unwritable)?;
        frontend::describe(b'S', "", &mut connection.outgoing).map_err(unwritable)?;
        frontend::flush(&mut connection.outgoing);
        connection.send().await?;
        let mut described = Described::default();
        loop {
            match connection.receive().await? {
                Message::ParseComplete => {}
                Message::ParameterDescription(body) => {
                    described.parameters = body.parameters().collect().map_err(|_| out_of_turn())?;
                }
                Message::RowDescription(body) => {
                    let fields = body.fields().map(|field| Ok((field.name().to_owned(), field.type_oid())));
                    described.columns = Some(fields.collect().map_err(|_| out_of_turn())?);
                    return Ok(described);
                }
                Message::NoData => return Ok(described),
                Message::ErrorResponse(body) => {
                    frontend::sync(&mut connection.outgoing);
                    connection.send().await?;
                    return Err(finish(connection, Some(self.wrong(&body))).await.err().unwrap_or_else(out_of_turn));
                }
                _ => return Err(out_of_turn()),
            }
        }
    }

    fn wrong(&self, body: &ErrorResponseBody) -> SqlError {
        SqlError::Sql(Box::new(fault(body, self.number)))
    }

    /// The texts of the parameters it mentions.
    fn bind(&self, described: &Described, types: &Types) -> Result<Vec<Option<String>>, SqlError> {
        let (number, wanted, given) = (self.number, described.parameters.len(), self.values.len());
        if wanted > given {
            return Err(SqlError::Invalid(format!(
                "statement {number} uses ${wanted}, and {given} parameters are given"
            )));
        }
        let text = |(place, (oid, value)): (usize, (&Oid, &&Value))| {
            let told = self.places.get(place).copied().unwrap_or(place + 1);
            let wrong = |reason| SqlError::Invalid(format!("statement {number}, parameter {told}: {reason}"));
            let text = bound(value, &types.get(*oid).kind).map_err(wrong)?;
            match text.as_ref().is_some_and(|text| text.contains('\0')) {
                true => Err(wrong("there is a zero byte in it, which the server has no place for".to_owned())),
                false => Ok(text),
            }
        };
        described.parameters.iter().zip(&self.values).enumerate().map(text).collect()
    }

    async fn answer(
        &self,
        connection: &mut Connection,
        described: Described,
        types: &Types,
        taking: &Taking<'_>,
    ) -> Result<(Done, u8), SqlError> {
        let kinds: Vec<Arc<Type>> = described.columns.iter().flatten().map(|(_, oid)| types.get(*oid)).collect();
        let mut collector = described.columns.map(|columns| {
            let columns = columns
                .into_iter()
                .zip(&kinds)
                .map(|((name, _), of)| (Column { name, kind: of.name.clone() }, of.kind.shape()));
            Collector::new(columns.collect(), taking.objects, taking.bounds, taking.payloads).hiding(taking.hidden)
        });
        let mut status = String::new();
        let mut failed = None;
        let state = loop {
            match connection.receive().await.map_err(|error| failed.take().unwrap_or(error))? {
                Message::DataRow(row) => {
                    if let Some(collector) = &mut collector
                        && collector.push(cells(&row, &kinds))
                    {
                        collector.settle().await?;
                    }
                }
                Message::CommandComplete(body) => status = body.tag().unwrap_or_default().to_owned(),
                // What was known before says more than what the server makes of it.
                Message::ErrorResponse(body) => failed = failed.or_else(|| Some(self.wrong(&body))),
                Message::CopyInResponse(_) => {
                    // What was sent after the statement is not heard while it waits for data.
                    frontend::copy_fail("a script has no data to send", &mut connection.outgoing)
                        .map_err(unwritable)?;
                    frontend::sync(&mut connection.outgoing);
                    connection.send().await?;
                    let text =
                        format!("statement {}: a script has no data for COPY FROM STDIN; use INSERT", self.number);
                    failed = Some(SqlError::Invalid(text));
                }
                Message::CopyOutResponse(_) => {
                    let text = format!("statement {}: COPY to the client gives no rows; use SELECT", self.number);
                    failed = Some(SqlError::Invalid(text));
                }
                Message::ReadyForQuery(body) => break body.status(),
                Message::BindComplete
                | Message::EmptyQueryResponse
                | Message::PortalSuspended
                | Message::CopyData(_)
                | Message::CopyDone => {}
                _ => return Err(out_of_turn()),
            }
        };
        if let Some(failed) = failed {
            return Err(failed);
        }
        let affected = affected(&status, collector.is_some());
        let (columns, row_count, rows) = match collector {
            Some(collector) => {
                let (columns, count, rows) = collector.finish().await?;
                (columns, count, Some(rows))
            }
            None => (Vec::new(), 0, None),
        };
        Ok((Done { status, affected, columns, row_count, rows }, state))
    }
}

/// Reads up to the end of an exchange; answers with the error if there was one.
async fn finish(connection: &mut Connection, mut failed: Option<SqlError>) -> Result<(), SqlError> {
    loop {
        match connection.receive().await {
            Ok(Message::ReadyForQuery(_)) => return failed.map_or(Ok(()), Err),
            Ok(_) => {}
            Err(error) => return Err(failed.take().unwrap_or(error)),
        }
    }
}

/// Rows changed, from what the server calls what it did. Reading changes none.
fn affected(status: &str, gives_rows: bool) -> Option<u64> {
    let (first, last) = (status.split(' ').next()?, status.rsplit(' ').next()?);
    let reads = gives_rows && matches!(first, "SELECT" | "FETCH" | "SHOW" | "EXPLAIN");
    last.parse().ok().filter(|_| !reads)
}

fn cells<'r>(row: &'r DataRowBody, kinds: &'r [Arc<Type>]) -> impl Iterator<Item = Cell<'r>> {
    let mut ranges = row.ranges();
    kinds.iter().map(move |of| {
        let Some(bytes) = ranges.next().ok().flatten().flatten().and_then(|range| row.buffer().get(range)) else {
            return Cell::Null;
        };
        match str::from_utf8(bytes) {
            Ok(text) => of.kind.read(text),
            // Of a database that does not know what its bytes mean.
            Err(_) => Cell::Text(String::from_utf8_lossy(bytes).into_owned().into()),
        }
    })
}

/// The types of one statement.
struct Types(HashMap<Oid, Arc<Type>>);

impl Types {
    fn get(&self, oid: Oid) -> Arc<Type> {
        let text = || Arc::new(Type { name: oid.to_string(), kind: Kind::Text });
        self.0.get(&oid).cloned().unwrap_or_else(text)
    }
}

/// What the server says about types that not every server has: arrays of them are read as lists.
const ABOUT: &str = "SELECT t.oid, t.typname, CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE 0 END, \
     coalesce(e.typdelim, ','), coalesce(nullif(e.typbasetype, 0), t.typelem), t.typbasetype \
     FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem WHERE t.oid = ANY($1::oid[])";

/// Types of one server that are remembered, and bytes of what it says about those of a statement.
const MOST_TYPES: usize = 10_000;
const MOST_ABOUT: usize = 1 << 20;

async fn types(connection: &mut Connection, pool: &Pool, oids: Vec<Oid>) -> Result<Types, SqlError> {
    let mut found = HashMap::new();
    let mut unknown = BTreeSet::new();
    for oid in oids {
        let of = known(oid).map(Arc::new).or_else(|| pool.types.lock().get(&oid).cloned());
        match of {
            Some(of) => {
                found.insert(oid, of);
            }
            None => {
                unknown.insert(oid);
            }
        }
    }
    if !unknown.is_empty() {
        let known_kind = |oid: &str| oid.parse().ok().and_then(known).map_or(Kind::Text, |of| of.kind);
        let unknown: Vec<String> = unknown.iter().map(Oid::to_string).collect();
        for row in look_up(connection, &format!("{{{}}}", unknown.join(","))).await? {
            let [oid, name, element, delimiter, element_base, base] = row.as_slice() else { continue };
            let kind = match (element.as_str(), base.as_str()) {
                ("0", "0") => Kind::Text,
                ("0", base) => known_kind(base),
                _ => {
                    let delimiter = delimiter.bytes().next().unwrap_or(b',');
                    Kind::Array(Arc::new(known_kind(element_base)), delimiter)
                }
            };
            let Ok(oid) = oid.parse::<Oid>() else { continue };
            let of = Arc::new(Type { name: name.clone(), kind });
            let mut types = pool.types.lock();
            if types.len() >= MOST_TYPES {
                types.clear();
            }
            types.insert(oid, of.clone());
            found.insert(oid, of);
        }
    }
    Ok(Types(found))
}

/// Asks under a name of its own, so that the statement that was described is still there after it.
async fn look_up(connection: &mut Connection, oids: &str) -> Result<Vec<Vec<String>>, SqlError> {
    const NAME: &str = "noetl_types";
    let out = &mut connection.outgoing;
    frontend::parse(NAME, ABOUT, [], out).map_err(unwritable)?;
    let serialise = |value: &str, out: &mut bytes::BytesMut| {
        out.put_slice(value.as_bytes());
        Ok(IsNull::No)
    };
    frontend::bind(NAME, NAME, [], [oids], serialise, [], out).map_err(|_| out_of_turn())?;
    frontend::execute(NAME, 0, out).map_err(unwritable)?;
    // Inside a transaction both would stay, and the next to ask would find its names taken.
    frontend::close(b'P', NAME, out).map_err(unwritable)?;
    frontend::close(b'S', NAME, out).map_err(unwritable)?;
    frontend::sync(out);
    connection.send().await?;
    let (mut rows, mut heard) = (Vec::new(), 0);
    let mut failed = None;
    loop {
        match connection.receive().await? {
            Message::DataRow(row) => {
                // A row of nothing takes something too.
                heard += row.buffer().len() + 64;
                if heard > MOST_ABOUT {
                    return Err(out_of_turn());
                }
                let text = |range: Option<std::ops::Range<usize>>| {
                    let bytes = range.and_then(|range| row.buffer().get(range)).unwrap_or_default();
                    Ok(String::from_utf8_lossy(bytes).into_owned())
                };
                rows.push(row.ranges().map(text).collect().map_err(|_| out_of_turn())?);
            }
            Message::ErrorResponse(body) => failed = Some(SqlError::Sql(Box::new(fault(&body, 0)))),
            Message::ReadyForQuery(_) => return failed.map_or(Ok(rows), Err),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_counted_and_what_was_read_is_not() {
        for (status, gives_rows, expected) in [
            ("INSERT 0 3", false, Some(3)),
            ("INSERT 0 3", true, Some(3)),
            ("UPDATE 0", false, Some(0)),
            ("SELECT 5", true, None),
            ("SELECT 5", false, Some(5)),
            ("CREATE TABLE", false, None),
            ("EXPLAIN", true, None),
            ("", false, None),
        ] {
            assert_eq!(affected(status, gives_rows), expected, "{status}");
        }
    }
}
