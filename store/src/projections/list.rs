//! Listing executions, newest first, with any combination of filters, without ever reading what is not shown.
//!
//! A *run* is a stretch of an index in which all columns before (started, id) are fixed: it is in the order of the
//! list. What a query asks for is always a union of runs: the statuses of a tenant, or of the playbooks under a
//! prefix, or of the children of an execution. The runs are merged by their heads, and a run is not looked into before
//! its newest execution could be the next one shown. So the cost is in the number of playbooks and of rows shown,
//! however many executions there are.

use std::collections::{BinaryHeap, VecDeque};

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::file::{number, optional};
use super::names::{find_status, find_tenant};
use super::query::bad_cursor;
use super::{ExecutionRow, ListQuery, MOST, Page, PathFilter, ProjectionError, Projections};

/// Place in the order of the list: time of start, then id.
type Place = (i64, i64);

/// The columns that are fixed in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Tenant { tenant: i64, status: i64 },
    Playbook { playbook: i64, status: i64 },
    Child { parent: i64, playbook: i64, status: i64 },
}

/// A run, and a time after which no execution of it was started.
type Candidate = (Run, i64);

/// What of every run is asked for.
#[derive(Clone, Copy)]
struct Bounds {
    since: i64,
    before: Place,
}

const ROW: &str =
    "SELECT e.id, t.name, p.path, e.playbook_version, e.parent, e.root, s.name, e.started, e.ended, e.error,
    e.step, e.requested_by, e.last_event, e.version
    FROM executions e JOIN tenants t ON t.id = e.tenant JOIN playbooks p ON p.id = e.playbook
    LEFT JOIN statuses s ON s.id = e.status";

fn execution_row(row: &Row<'_>) -> rusqlite::Result<ExecutionRow> {
    Ok(ExecutionRow {
        execution: number(row, 0)?,
        tenant: row.get(1)?,
        path: Some(row.get(2)?).filter(|path: &String| !path.is_empty()),
        playbook_version: row.get(3)?,
        parent: optional(row, 4)?,
        root: optional(row, 5)?,
        status: row.get(6)?,
        started_ms: Some(number(row, 7)?).filter(|started| *started != 0),
        ended_ms: optional(row, 8)?,
        error: row.get(9)?,
        step: row.get(10)?,
        requested_by: row.get(11)?,
        last_event: number(row, 12)?,
        version: number(row, 13)?,
    })
}

fn by_id(connection: &Connection, id: i64) -> rusqlite::Result<Option<ExecutionRow>> {
    connection.prepare_cached(&format!("{ROW} WHERE e.id = ?1"))?.query_row([id], execution_row).optional()
}

impl Projections {
    /// A page of executions, newest first.
    pub fn executions(&self, query: &ListQuery) -> Result<Page, ProjectionError> {
        let bounds = bounds(query)?;
        let size = query.size.clamp(1, MOST);
        self.read(|connection| {
            let runs = runs(connection, query, bounds)?;
            let places = newest(connection, &runs, bounds, size + 1)?;
            let more = places.len() > size;
            let next = places.get(size - 1).filter(|_| more).map(|(started, id)| format!("{started}.{id}"));
            let rows = places.iter().take(size).filter_map(|(_, id)| by_id(connection, *id).transpose());
            Ok(Page { rows: rows.collect::<rusqlite::Result<_>>()?, next })
        })
    }

    /// One execution, if it is that tenant's. No tenant: whosever it is.
    pub fn execution(&self, tenant: Option<&str>, execution: u64) -> Result<Option<ExecutionRow>, ProjectionError> {
        let row = self.read(|connection| by_id(connection, execution as i64))?;
        Ok(row.filter(|row| tenant.is_none_or(|tenant| row.tenant == tenant)))
    }

    /// How many executions have which status, by the name of the status. No tenant: of all.
    #[cfg(test)]
    pub fn counts_by_status(&self, tenant: Option<&str>) -> Result<Vec<(String, u64)>, ProjectionError> {
        self.read(|connection| {
            let sql = "SELECT coalesce(s.name, ''), sum(c.number) FROM counts c JOIN tenants t ON t.id = c.tenant
                       LEFT JOIN statuses s ON s.id = c.status WHERE ?1 IS NULL OR t.name = ?1
                       GROUP BY c.status HAVING sum(c.number) > 0 ORDER BY 1";
            let mut query = connection.prepare_cached(sql)?;
            query.query_map([tenant], |row| Ok((row.get(0)?, number(row, 1)?)))?.collect()
        })
    }
}

fn bounds(query: &ListQuery) -> Result<Bounds, ProjectionError> {
    let clamped = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let until = query.until_ms.map_or((i64::MAX, i64::MAX), |until| (clamped(until).saturating_add(1), i64::MIN));
    let cursor = query.cursor.as_deref().map(|text| place(text).ok_or_else(|| bad_cursor(text))).transpose()?;
    let before = cursor.map_or(until, |cursor| cursor.min(until));
    Ok(Bounds { since: query.since_ms.map_or(0, clamped), before })
}

fn place(text: &str) -> Option<Place> {
    let (started, id) = text.split_once('.')?;
    Some((started.parse().ok()?, id.parse().ok()?))
}

/// The runs whose union a query asks for; empty ones may be among them.
fn runs(connection: &Connection, query: &ListQuery, bounds: Bounds) -> rusqlite::Result<Vec<Candidate>> {
    let tenant = match query.tenant.as_deref().map(|name| find_tenant(connection, name)).transpose()? {
        // Nothing was ever said about this tenant.
        Some(None) => return Ok(Vec::new()),
        tenant => tenant.flatten(),
    };
    let status = match query.status.as_deref().map(|name| find_status(connection, name)).transpose()? {
        Some(None) => return Ok(Vec::new()),
        status => status.flatten(),
    };
    let wanted = Wanted { tenant, status, path: query.path.as_ref(), bounds };
    match (query.parent, &query.path) {
        (Some(parent), _) => wanted.of_children(connection, parent as i64),
        (None, Some(_)) => wanted.of_playbooks(connection),
        (None, None) => wanted.of_tenants(connection),
    }
}

struct Wanted<'a> {
    tenant: Option<i64>,
    status: Option<i64>,
    path: Option<&'a PathFilter>,
    bounds: Bounds,
}

impl Wanted<'_> {
    fn of_tenants(&self, connection: &Connection) -> rusqlite::Result<Vec<Candidate>> {
        let sql = "SELECT status, max(newest) FROM counts WHERE tenant = ?1 AND (?2 IS NULL OR status = ?2)
                   AND number > 0 AND newest >= ?3 AND oldest <= ?4 GROUP BY status";
        let mut query = connection.prepare_cached(sql)?;
        let Bounds { since, before: (until, _) } = self.bounds;
        let mut runs = Vec::new();
        for tenant in self.tenants(connection)? {
            let run = |row: &Row<'_>| Ok((Run::Tenant { tenant, status: row.get(0)? }, row.get(1)?));
            let found = query.query_map(params![tenant, self.status, since, until], run)?;
            runs.extend(found.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        Ok(runs)
    }

    fn of_playbooks(&self, connection: &Connection) -> rusqlite::Result<Vec<Candidate>> {
        let sql = "SELECT c.playbook, c.status, c.newest FROM playbooks p
                   JOIN counts c ON c.tenant = p.tenant AND c.playbook = p.id
                   WHERE p.tenant = ?1 AND p.path >= ?2 AND p.path < ?3
                   AND (?4 IS NULL OR c.status = ?4) AND c.number > 0 AND c.newest >= ?5 AND c.oldest <= ?6";
        let mut query = connection.prepare_cached(sql)?;
        let (from, to) = self.path.map(range).unwrap_or_default();
        let Bounds { since, before: (until, _) } = self.bounds;
        let run = |row: &Row<'_>| Ok((Run::Playbook { playbook: row.get(0)?, status: row.get(1)? }, row.get(2)?));
        let mut runs = Vec::new();
        for tenant in self.tenants(connection)? {
            let found = query.query_map(params![tenant, from, to, self.status, since, until], run)?;
            runs.extend(found.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        Ok(runs)
    }

    fn tenants(&self, connection: &Connection) -> rusqlite::Result<Vec<i64>> {
        match self.tenant {
            Some(tenant) => Ok(vec![tenant]),
            None => connection.prepare_cached("SELECT id FROM tenants")?.query_map([], |row| row.get(0))?.collect(),
        }
    }

    /// The index is asked for the next (playbook, status) after the last one, so the children are not read. It is two
    /// questions because SQLite answers that for a pair of columns by walking over all that is equal to it.
    fn of_children(&self, connection: &Connection, parent: i64) -> rusqlite::Result<Vec<Candidate>> {
        let of_playbook = "SELECT playbook, status FROM executions INDEXED BY executions_by_parent
                           WHERE parent = ?1 AND playbook = ?2 AND status > ?3 ORDER BY status LIMIT 1";
        let of_others = "SELECT playbook, status FROM executions INDEXED BY executions_by_parent
                         WHERE parent = ?1 AND playbook > ?2 ORDER BY playbook, status LIMIT 1";
        let mut of_playbook = connection.prepare_cached(of_playbook)?;
        let mut of_others = connection.prepare_cached(of_others)?;
        let run = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let mut next = |(playbook, status): (i64, i64)| {
            let next = of_playbook.query_row([parent, playbook, status], run).optional()?;
            next.map_or_else(|| of_others.query_row([parent, playbook], run).optional(), |next| Ok(Some(next)))
        };
        let (mut runs, mut last) = (Vec::new(), (i64::MIN, i64::MIN));
        while let Some((playbook, status)) = next(last)? {
            last = (playbook, status);
            if self.status.is_none_or(|wanted| wanted == status) && self.takes(connection, playbook)? {
                runs.push((Run::Child { parent, playbook, status }, i64::MAX));
            }
        }
        Ok(runs)
    }

    fn takes(&self, connection: &Connection, playbook: i64) -> rusqlite::Result<bool> {
        let mut query = connection.prepare_cached("SELECT tenant, path FROM playbooks WHERE id = ?1")?;
        let (tenant, path): (i64, String) = query.query_row([playbook], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let path_fits = self.path.is_none_or(|filter| match filter {
            PathFilter::Is(wanted) => path == *wanted,
            PathFilter::StartsWith(prefix) => path.starts_with(prefix),
        });
        Ok(path_fits && self.tenant.is_none_or(|wanted| wanted == tenant))
    }
}

/// Paths from the first text up to, and without, the second. SQLite compares text by its bytes.
fn range(filter: &PathFilter) -> (String, String) {
    match filter {
        PathFilter::Is(path) => (path.clone(), format!("{path}\0")),
        // No path has a character beyond this one.
        PathFilter::StartsWith(prefix) => (prefix.clone(), format!("{prefix}\u{10FFFF}")),
    }
}

/// The head of a run: where it is, or could be at the best. Of two at the same place the one to be looked into is
/// greater, so that it is settled first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    place: Place,
    is_guess: bool,
    run: usize,
}

/// The first `limit` places of the union of runs.
fn newest(connection: &Connection, runs: &[Candidate], bounds: Bounds, limit: usize) -> rusqlite::Result<Vec<Place>> {
    // Few runs are read whole pages at a time, many runs a few rows at a time.
    let portion = (2 * limit / runs.len().max(1)).clamp(2, limit);
    let guess = |(run, (_, newest)): (usize, &Candidate)| Head {
        place: (*newest, i64::MAX).min(bounds.before),
        is_guess: true,
        run,
    };
    let mut heads: BinaryHeap<Head> = runs.iter().enumerate().map(guess).collect();
    let mut ahead = vec![VecDeque::new(); runs.len()];
    let mut found = Vec::with_capacity(limit);
    while found.len() < limit
        && let Some(Head { place, is_guess, run }) = heads.pop()
    {
        let before = if is_guess { bounds.before } else { place };
        if !is_guess {
            found.push(place);
        }
        if ahead[run].is_empty() {
            ahead[run] = runs[run].0.read(connection, Bounds { before, ..bounds }, portion)?;
        }
        heads.extend(ahead[run].pop_front().map(|place| Head { place, is_guess: false, run }));
    }
    Ok(found)
}

impl Run {
    /// The next places of the run.
    fn read(self, connection: &Connection, bounds: Bounds, limit: usize) -> rusqlite::Result<VecDeque<Place>> {
        let Bounds { since, before: (started, id) } = bounds;
        let limit = limit as i64;
        let place = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        match self {
            Self::Tenant { tenant, status } => {
                let sql = "SELECT started, id FROM executions INDEXED BY executions_by_tenant
                           WHERE tenant = ?1 AND status = ?2 AND started >= ?3 AND (started, id) < (?4, ?5)
                           ORDER BY started DESC, id DESC LIMIT ?6";
                let mut query = connection.prepare_cached(sql)?;
                query.query_map([tenant, status, since, started, id, limit], place)?.collect()
            }
            Self::Playbook { playbook, status } => {
                let sql = "SELECT started, id FROM executions INDEXED BY executions_by_playbook
                           WHERE playbook = ?1 AND status = ?2 AND started >= ?3 AND (started, id) < (?4, ?5)
                           ORDER BY started DESC, id DESC LIMIT ?6";
                let mut query = connection.prepare_cached(sql)?;
                query.query_map([playbook, status, since, started, id, limit], place)?.collect()
            }
            Self::Child { parent, playbook, status } => {
                let sql = "SELECT started, id FROM executions INDEXED BY executions_by_parent
                           WHERE parent = ?1 AND playbook = ?2 AND status = ?3 AND started >= ?4
                           AND (started, id) < (?5, ?6) ORDER BY started DESC, id DESC LIMIT ?7";
                let mut query = connection.prepare_cached(sql)?;
                query.query_map([parent, playbook, status, since, started, id, limit], place)?.collect()
            }
        }
    }
}
