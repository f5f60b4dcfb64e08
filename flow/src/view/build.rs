//! Checkpoints: states in bytes, made outside of the drive.

use super::segment::{Broken, Segment};
use crate::state;

/// The checkpoint after the last of the segments, from the one before the first of them or from the chain's beginning.
///
/// Segments must be of one execution and follow each other; that they follow the checkpoint is seen by the ids of their
/// events. A checkpoint of another version of the fold is refused: the chain is then folded from its beginning.
pub fn build(checkpoint: Option<&[u8]>, segments: &[Segment]) -> Result<Vec<u8>, Broken> {
    let broken = |problem: state::Broken| Broken::State(problem.to_string());
    for pair in segments.windows(2) {
        if pair[0].execution != pair[1].execution {
            return Err(Broken::Mixed { first: pair[0].execution, other: pair[1].execution });
        }
        if pair[1].version != pair[0].version + 1 {
            return Err(Broken::Gap { expected: pair[0].version + 1, found: pair[1].version });
        }
    }
    let mut folded = checkpoint.map(state::restore).transpose().map_err(broken)?;
    for segment in segments {
        state::fold_lines(&mut folded, &segment.events).map_err(broken)?;
    }
    folded.as_ref().map(state::checkpoint).ok_or(Broken::Empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::samples;

    #[test]
    fn a_checkpoint_and_the_rest_are_the_whole() {
        let segments = samples::failing_loop();
        let whole = build(None, &segments).expect("a chain");
        for cut in 1..segments.len() {
            let before = build(None, &segments[..cut]).expect("a chain");
            assert_eq!(build(Some(&before), &segments[cut..]).expect("a chain"), whole);
        }
    }

    #[test]
    fn what_does_not_follow_is_refused() {
        let segments = samples::failing_loop();
        assert_eq!(build(None, &[]), Err(Broken::Empty));
        let gap = [segments[0].clone(), segments[2].clone()];
        assert_eq!(build(None, &gap), Err(Broken::Gap { expected: 2, found: 3 }));
        let before = build(None, &segments[..1]).expect("a chain");
        assert!(matches!(build(Some(&before), &segments[2..]), Err(Broken::State(_))));
        assert!(matches!(build(Some(b"nonsense"), &segments), Err(Broken::State(_))));
    }
}
