//! Finding version `n` of a stream in few steps, with two pointers a segment and no index.
//!
//! Each segment points back to the one before it, and by `jump` to a much earlier one. The jumps follow the
//! skew-binary numbers: the segments of a stream are grouped in perfect binary trees of 1, 3, 7, 15, ...
//! members; a new segment joins the last two trees under itself when they are of one size, else it stands
//! alone, and its jump leads to the tree before its own. From the head to any version takes a number
//! of steps that grows with the logarithm of the stream's length.

/// The roots of the trees of one stream: what the next segment needs to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots(Vec<(u64, u64)>);

impl Roots {
    /// Adds the segment at `position`; answers what it jumps to, 0 for nothing.
    pub fn push(&mut self, position: u64) -> u64 {
        let count = self.0.len();
        let size = match self.0.as_slice() {
            [.., (_, second), (_, last)] if second == last => {
                let joined = second + last + 1;
                self.0.truncate(count - 2);
                joined
            }
            _ => 1,
        };
        let jump = self.0.last().map_or(0, |(root, _)| *root);
        self.0.push((position, size));
        jump
    }

    /// The roots of a stream that ends in `head` with `version`, asking `jump_of` for the jump of a segment.
    pub fn load<E>(head: u64, version: u64, mut jump_of: impl FnMut(u64, u64) -> Result<u64, E>) -> Result<Self, E> {
        let sizes = tree_sizes(version);
        let mut roots = Vec::with_capacity(sizes.len());
        let (mut position, mut at) = (head, version);
        for size in sizes.iter().rev() {
            roots.push((position, *size));
            at -= size;
            if at > 0 {
                position = jump_of(position, at + size)?;
            }
        }
        roots.reverse();
        Ok(Self(roots))
    }
}

/// The version that the segment with `version` jumps to; 0 when it jumps to nothing.
pub fn jump_target(version: u64) -> u64 {
    version - tree_sizes(version).last().copied().unwrap_or(0)
}

/// Sizes of the trees of a stream with this many segments, oldest first.
fn tree_sizes(version: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut left = version;
    while left > 0 {
        // The largest 2^k - 1 that fits.
        let size = if left == u64::MAX { left } else { (1 << (u64::BITS - 1 - (left + 1).leading_zeros())) - 1 };
        sizes.push(size);
        left -= size;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_leads_where_arithmetic_says_and_any_version_is_near() {
        let mut roots = Roots::default();
        let mut jumps = vec![0];
        for version in 1..=5_000_u64 {
            let jump = roots.push(version);
            assert_eq!(jump, jump_target(version), "version {version}");
            jumps.push(jump);
            let loaded = Roots::load(version, version, |position, at| {
                assert_eq!(position, at);
                Ok::<_, ()>(jumps[at as usize])
            });
            assert_eq!(loaded, Ok(roots.clone()));
        }
        for target in 1..=5_000_u64 {
            let (mut at, mut steps) = (5_000, 0);
            while at > target {
                at = if jumps[at as usize] >= target { jumps[at as usize] } else { at - 1 };
                steps += 1;
            }
            assert!(steps <= 3 * 13, "{steps} steps to version {target}");
        }
    }
}
