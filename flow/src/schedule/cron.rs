//! Cron expressions: which wall-clock times they name.
//!
//! Five fields (minute, hour, day of the month, month, day of the week), or six with seconds before them. A field is
//! `*` or a list of numbers, ranges (`1-5`) and steps (`*/15`, `8-18/2`, `5/10`); months and days have their English
//! names too, Sunday is 0 and 7. When both days are given a date matches either of them, as cron has always done.

use jiff::civil::{Date, DateTime, Time};

/// No schedule waits longer: the 29th of February can be eight years away.
const FURTHEST_DAYS: u32 = 9 * 366;

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const ALIASES: &[(&str, &str)] = &[
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Numbers a field allows: bit n for n.
type Bits = u64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cron {
    seconds: Bits,
    minutes: Bits,
    hours: Bits,
    days: Bits,
    months: Bits,
    weekdays: Bits,
    /// Both days are given, and a date has to match one of them.
    either_day: bool,
}

/// How the numbers of a field may be written.
struct Field {
    name: &'static str,
    least: u8,
    most: u8,
    /// Names of the numbers from `least` on.
    names: &'static [&'static str],
}

const SECOND: Field = Field { name: "second", least: 0, most: 59, names: &[] };
const MINUTE: Field = Field { name: "minute", least: 0, most: 59, names: &[] };
const HOUR: Field = Field { name: "hour", least: 0, most: 23, names: &[] };
const DAY: Field = Field { name: "day of the month", least: 1, most: 31, names: &[] };
const MONTH: Field = Field { name: "month", least: 1, most: 12, names: MONTHS };
const WEEKDAY: Field = Field { name: "day of the week", least: 0, most: 7, names: WEEKDAYS };

impl Cron {
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let text = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(text)).map_or(text, |(_, cron)| cron);
        let fields: Vec<&str> = text.split_whitespace().collect();
        let (seconds, rest) = match fields.as_slice() {
            [minute, hour, day, month, weekday] => (1, [*minute, *hour, *day, *month, *weekday]),
            [second, minute, hour, day, month, weekday] => {
                (SECOND.parse(second)?, [*minute, *hour, *day, *month, *weekday])
            }
            _ => return Err(format!("expected five fields, or six with seconds first, found {}", fields.len())),
        };
        let [minute, hour, day, month, weekday] = rest;
        let weekdays = WEEKDAY.parse(weekday)?;
        let cron = Self {
            seconds,
            minutes: MINUTE.parse(minute)?,
            hours: HOUR.parse(hour)?,
            days: DAY.parse(day)?,
            months: MONTH.parse(month)?,
            weekdays: weekdays | (weekdays >> 7 & 1),
            either_day: !is_free(day) && !is_free(weekday),
        };
        match cron.next(Date::constant(2000, 1, 1).to_datetime(Time::midnight())) {
            Some(_) => Ok(cron),
            None => Err("never comes: no month it names has such a day".to_owned()),
        }
    }

    /// Whether no hour is singled out.
    pub fn every_hour(&self) -> bool {
        self.hours.count_ones() == 24
    }

    /// The first time that matches, not before `from`.
    pub fn next(&self, from: DateTime) -> Option<DateTime> {
        let (mut date, mut time) = (from.date(), from.time());
        for _ in 0..FURTHEST_DAYS {
            if self.matches(date)
                && let Some(time) = self.time_from(time)
            {
                return Some(date.to_datetime(time));
            }
            date = date.tomorrow().ok()?;
            time = Time::midnight();
        }
        None
    }

    fn matches(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        has(self.months, date.month()) && if self.either_day { day || weekday } else { day && weekday }
    }

    /// The first matching time of a day, not before `from`.
    fn time_from(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let first = |bits| at_least(bits, 0);
        if has(self.hours, hour) {
            if has(self.minutes, minute)
                && let Some(second) = at_least(self.seconds, second)
            {
                return Time::new(hour, minute, second, 0).ok();
            }
            if let Some(minute) = at_least(self.minutes, minute + 1) {
                return Time::new(hour, minute, first(self.seconds)?, 0).ok();
            }
        }
        let hour = at_least(self.hours, hour + 1)?;
        Time::new(hour, first(self.minutes)?, first(self.seconds)?, 0).ok()
    }
}

fn has(bits: Bits, number: i8) -> bool {
    at_least(bits, number) == Some(number)
}

/// The smallest number in the field that is not below this one.
fn at_least(bits: Bits, number: i8) -> Option<i8> {
    let number = u32::try_from(number).ok()?;
    let rest = bits.checked_shr(number)?;
    (rest != 0).then(|| i8::try_from(number + rest.trailing_zeros()).ok()).flatten()
}

fn is_free(field: &str) -> bool {
    matches!(field, "*" | "?")
}

impl Field {
    fn parse(&self, text: &str) -> Result<Bits, String> {
        text.split(',').map(|part| self.part(part)).try_fold(0, |bits, part| Ok(bits | part?))
    }

    fn part(&self, text: &str) -> Result<Bits, String> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u8>().ok().filter(|step| *step > 0))),
            None => (text, None),
        };
        let step_by = match step {
            Some(None) => return Err(self.complaint(text)),
            Some(Some(step)) => step,
            None => 1,
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (self.number(first)?, self.number(last)?),
            None if is_free(range) => (self.least, self.most),
            None => {
                let first = self.number(range)?;
                (first, if step.is_some() { self.most } else { first })
            }
        };
        if first > last {
            return Err(self.complaint(text));
        }
        Ok((first..=last).step_by(step_by.into()).fold(0, |bits, number| bits | 1 << number))
    }

    fn number(&self, text: &str) -> Result<u8, String> {
        if let Some(index) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(self.least + u8::try_from(index).expect("there are at most twelve names"));
        }
        let number = text.parse().ok().filter(|number| (self.least..=self.most).contains(number));
        number.ok_or_else(|| self.complaint(text))
    }

    fn complaint(&self, text: &str) -> String {
        format!("`{text}` is no {} ({} to {}, ranges `a-b`, steps `*/n`)", self.name, self.least, self.most)
    }
}
