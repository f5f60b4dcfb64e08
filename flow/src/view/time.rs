//! Times as text.

const DAY_MS: u64 = 86_400_000;

/// RFC 3339 in UTC with milliseconds: `2026-01-31T23:59:59.000Z`.
///
/// Days become a date by counting from 0000-03-01, where every leap day is the last day of its year; the calendar
/// repeats every 400 years. Times beyond the year 9999 keep all their digits.
pub fn rfc3339(ms: u64) -> String {
    let in_day = ms % DAY_MS;
    let days = ms / DAY_MS + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", in_day % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_around_leap_days_have_their_dates() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_735_689_599_001, "2024-12-31T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }

    #[test]
    fn any_number_is_a_time() {
        assert!(rfc3339(u64::MAX).ends_with('Z'));
    }
}
