//! Inputs made from other inputs.

/// Lengths and counts that are often handled wrongly.
const NUMBERS: [u32; 10] = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
const LARGEST: usize = 1 << 20;

pub struct Mutator {
    state: u64,
    from: Vec<Vec<u8>>,
    words: &'static [&'static [u8]],
}

impl Mutator {
    pub fn new(seed: u64, from: Vec<Vec<u8>>, words: &'static [&'static [u8]]) -> Self {
        assert!(!from.is_empty(), "there is nothing to begin with");
        Self { state: seed | 1, from, words }
    }

    /// xorshift: what it makes can be made again from the seed.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.random() % bound as u64) as usize }
    }

    fn one(&mut self) -> Vec<u8> {
        let at = self.below(self.from.len());
        self.from[at].clone()
    }

    /// The next input: one of those it began with, changed a few times.
    pub fn next(&mut self) -> Vec<u8> {
        let mut input = self.one();
        for _ in 0..=self.below(6) {
            self.change(&mut input);
        }
        input.truncate(LARGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = (at + 1 + self.below(32)).min(input.len()).max(at);
        match self.below(9) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.random() as u8,
            2 => drop(input.drain(at..end)),
            3 => {
                let piece = input[at..end].to_vec();
                drop(input.splice(at..at, piece));
            }
            4 => input.truncate(at),
            5 => {
                let other = self.one();
                let from = self.below(other.len());
                let to = (from + self.below(256)).min(other.len());
                drop(input.splice(at..end, other[from..to].iter().copied()));
            }
            6 if !self.words.is_empty() => {
                let word = self.words[self.below(self.words.len())];
                drop(input.splice(at..end, word.iter().copied()));
            }
            7 => {
                let number = NUMBERS[self.below(NUMBERS.len())].to_le_bytes();
                let size = [1, 2, 4][self.below(3)];
                let to = (at + size).min(input.len());
                drop(input.splice(at..to, number[..size].iter().copied()));
            }
            _ => {
                let bytes: Vec<u8> = (0..self.below(16)).map(|_| self.random() as u8).collect();
                drop(input.splice(at..at, bytes));
            }
        }
    }
}
