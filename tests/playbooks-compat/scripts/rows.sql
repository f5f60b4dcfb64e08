-- Two statements; the rows are those of the last.
CREATE TABLE IF NOT EXISTS compat_script (n INTEGER);
SELECT n FROM (VALUES (1), (2), (3)) AS given(n) ORDER BY n;
