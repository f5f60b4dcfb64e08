//! Values masked in bytes that come a piece at a time.
//!
//! A value may begin in one piece and end in the next, so as many bytes are held back as the longest form has, less one:
//! whatever begins before them lies in what is at hand as a whole. What is there is looked at once there is as much again:
//! whoever sends a byte at a time makes it cost no more. So memory is bounded by a piece and two forms.

use crate::data::Data;

/// One text on its way.
#[derive(Debug)]
pub struct Stream {
    data: Data,
    held: Vec<u8>,
}

impl Stream {
    pub(crate) fn new(data: Data) -> Self {
        Self { data, held: Vec::new() }
    }

    /// What can be passed on once this piece is there.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        let longest = self.data.values.longest();
        if self.held.len() < 2 * longest {
            return Vec::new();
        }
        self.take(self.held.len() - longest.saturating_sub(1))
    }

    /// What is left.
    pub fn finish(mut self) -> Vec<u8> {
        self.take(self.held.len())
    }

    /// Passes on what begins before `settled`.
    fn take(&mut self, settled: usize) -> Vec<u8> {
        let (mut clean, mut copied) = (Vec::with_capacity(settled), 0);
        let Data { values, preferred, words } = &self.data;
        for found in values.find_in(&self.held, *words).take_while(|found| found.start() < settled) {
            clean.extend_from_slice(&self.held[copied..found.start()]);
            clean.extend_from_slice(values.stand_in(&found, preferred).as_bytes());
            copied = found.end();
        }
        // A placeholder is passed on as a whole, so that no part of it is looked at alone.
        let whole = values.sealed_in(&self.held).into_iter().find(|sealed| sealed.contains(&settled));
        let end = whole.map_or(settled, |sealed| sealed.end).max(copied);
        clean.extend_from_slice(&self.held[copied..end]);
        self.held.drain(..end);
        clean
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::values::Values;

    fn streamed(values: &Arc<Values>, text: &[u8], sizes: &[usize]) -> Vec<u8> {
        let mut stream = Data::new(values.clone()).stream();
        let (mut out, mut rest) = (Vec::new(), text);
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).clamp(1, rest.len()));
            out.extend(stream.push(piece));
            assert!(stream.held.len() < (2 * values.longest()).max(1), "what is held back is bounded");
            rest = after;
        }
        out.extend(stream.finish());
        out
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            parts in proptest::collection::vec(prop_oneof![
                Just("hunter2-hunter2".to_owned()),
                Just("hunter2".to_owned()),
                Just("p%40ss%20word".to_owned()),
                Just("cEBzcyB3b3Jk".to_owned()),
                "[a-z %ü]{0,12}",
            ], 0..80),
            sizes in proptest::collection::vec(1usize..200, 1..6),
        ) {
            let values = Arc::new(Values::new(["hunter2", "hunter2-hunter2", "p@ss word"]));
            let text = parts.concat();
            let streamed = String::from_utf8(streamed(&values, text.as_bytes(), &sizes)).expect("text");
            let masked = values.mask(&text);
            prop_assert_eq!(streamed.as_str(), masked.as_ref());
        }
    }

    #[test]
    fn bytes_that_are_no_text_pass() {
        let values = Arc::new(Values::new(["hunter2"]));
        assert_eq!(streamed(&values, b"\xff\x00hunter2\xfe", &[3]), b"\xff\x00[REDACTED]\xfe");
        assert_eq!(streamed(&Arc::new(Values::default()), b"\xffabc", &[2]), b"\xffabc");
    }
}
